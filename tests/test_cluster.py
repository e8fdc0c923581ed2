"""`gangplan cluster`: what a cluster has, what other versions would change, and how Kueue is configured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.report.cluster import format_value_on_one_line
from gangplan.report.kueue_config import go_duration
from gangplan.report.upgrade import ABSENT_TEXT
from tests import plain, workspaces
from tests.workspaces import Outcome, gangplan

CLUSTER = "overlays/lab/cluster.yaml"
PAIR = 'trainer: "2.3.0", kueue: "0.19.2"'
OLD = 'trainer: "2.1.0", kueue: "0.15.2"'


def change(root: Path, old: str, new: str) -> None:
    """Change the cluster file."""
    text = (root / CLUSTER).read_text()
    assert old in text
    (root / CLUSTER).write_text(text.replace(old, new))


def check(root: Path, *arguments: str) -> Outcome:
    """Run `gangplan cluster check`."""
    return gangplan("cluster", "check", "-C", root, *arguments)


def rows(outcome: Outcome) -> dict[str, tuple[str, str]]:
    """Return version and state by component, as the table shows them."""
    found = re.findall(r"^  (\w.*?)  +(\S+) +(yes|no|missing|untried|unused|-)(?:  |$)", outcome.out, re.M)
    return {name: (version, state) for name, version, state in found}


# The table


def test_the_table_shows_versions_states_and_consequences(root: Path) -> None:
    outcome = check(root)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    assert rows(outcome) == {
        "Kubernetes": ("1.34.4", "yes"),
        "Trainer": ("2.3.0", "yes"),
        "JobSet": ("-", "yes"),
        "Kueue": ("0.19.2", "yes"),
        "GPU operator": ("25.10.0", "yes"),
    }
    assert "a queue starts runs through runtimePatches" in outcome.out
    assert "a run has at most 18 kinds of pods" in outcome.out
    assert "waitForPodsReady is on unless configured" in outcome.out


def test_older_versions_have_other_consequences(root: Path) -> None:
    change(root, PAIR, OLD)
    outcome = check(root)
    assert outcome.code == Exit.CLEAN
    for words in (
        "through podTemplateOverrides",
        "the deadline is on the launcher's Job",
        "at most 8 kinds",
        "waitForPodsReady is off",
        "a flavor with topology cannot change",
    ):
        assert words in outcome.out
    assert "a run cannot be edited" not in outcome.out


STATES = {
    "no Kueue": ((', kueue: "0.19.2"', ""), "Kueue", ("-", "missing"), Exit.FINDINGS),
    "a Kueue of another Trainer": (("0.19.2", "0.16.1"), "Kueue", ("0.16.1", "no"), Exit.FINDINGS),
    "a Kueue that nobody knows": (("0.19.2", "0.20.0"), "Kueue", ("0.20.0", "no"), Exit.FINDINGS),
    "a Trainer that nobody knows": (("2.3.0", "2.9.0"), "Trainer", ("2.9.0", "no"), Exit.FINDINGS),
    "no GPU operator": ((', gpuOperator: "25.10.0"', ""), "GPU operator", ("-", "missing"), Exit.CLEAN),
    "another JobSet": (
        (PAIR, f'{PAIR}, jobset: "0.11.0"'),
        "JobSet",
        ("0.11.0", "untried"),
        Exit.CLEAN,
    ),
    "an old OpenShift": (
        (PAIR, f'{PAIR}, openshift: "4.13"'),
        "OpenShift",
        ("4.13", "no"),
        Exit.FINDINGS,
    ),
    "the right OpenShift": ((PAIR, f'{PAIR}, openshift: "4.21"'), "OpenShift", ("4.21", "yes"), Exit.CLEAN),
    "an old Argo CD": ((PAIR, f'{PAIR}, argocd: "2.14.1"'), "Argo CD", ("2.14.1", "untried"), Exit.CLEAN),
    "the MPI operator": (
        (PAIR, f'{PAIR}, mpiOperator: "0.8.2"'),
        "MPI operator",
        ("0.8.2", "yes"),
        Exit.CLEAN,
    ),
    "Volcano other than Kueue": (
        ("region:", "gang: volcano\nregion:"),
        "Kueue",
        ("0.19.2", "unused"),
        Exit.CLEAN,
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_each_component_has_its_state_and_exit_code(name: str, root: Path) -> None:
    (old, new), component, expected, code = STATES[name]
    change(root, old, new)
    outcome = check(root)
    assert rows(outcome)[component] == expected
    assert outcome.code == code
    assert bool(outcome.errors()) is (code == Exit.FINDINGS)


def test_an_openshift_that_is_too_old_is_unsupported(root: Path) -> None:
    change(root, '"1.34.4"', '"1.28.3", openshift: "4.15"')
    outcome = check(root)
    assert rows(outcome)["OpenShift"] == ("4.15", "no")
    assert "4.17 or later is needed, which is Kubernetes 1.30" in outcome.out
    assert [rule for _, rule in outcome.errors()] == ["version-unsupported"]


def test_json_has_components_and_findings(root: Path) -> None:
    change(root, ', gpuOperator: "25.10.0"', "")
    outcome = check(root, "--format", "json")
    document = json.loads(outcome.out)
    assert document["version"] == 1
    assert [one["name"] for one in document["clusters"]] == ["lab"]
    gpu = document["clusters"][0]["components"][-1]
    assert (gpu["key"], gpu["stated"], gpu["state"]) == ("gpuOperator", "", "missing")
    assert [finding["rule"] for finding in document["findings"]] == ["gpu-operator-unstated"]
    assert document["clusters"][0]["upgrade"] is None


def test_a_cluster_file_that_cannot_be_read_is_bad_input(root: Path) -> None:
    change(root, "count: 4, cpu: 60", "count: many, cpu: 60")
    outcome = check(root)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert outcome.errors() == [("overlays/lab/cluster.yaml:7:16", "spec-type")]


FLAGS = {
    "an unknown cluster": (["--cluster", "lap"], "there is no cluster 'lap'", "Did you mean 'lab'?"),
    "an unknown component": (["--as", "kueu=0.19"], "there is no component 'kueu'", "Did you mean 'kueue'?"),
    "no version": (["--as", "kueue=new"], "'new' is not a version of kueue", "--as kueue=1.2"),
    "no component": (["--as", "0.19"], "'0.19' does not name a component and its version", "trainer=2.3"),
    "nothing": (["--as", ""], "'' does not name a component and its version", "trainer=2.3"),
    "a component twice": (["--as", "kueue=0.18,kueue=0.19"], "kueue is given twice", "once"),
    "an unknown format": (["--format", "xml"], "there is no format 'xml'", "text, json"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_wrong_flags_are_refused_with_help(name: str, root: Path) -> None:
    arguments, message, help = FLAGS[name]
    outcome = check(root, *arguments)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert message in outcome.err
    assert help in outcome.err


# Other versions


def upgrade(root: Path, versions: str) -> dict[str, Any]:
    """Return what other versions would change."""
    outcome = check(root, "--as", versions, "--format", "json")
    assert outcome.code == Exit.CLEAN, outcome.out
    found: dict[str, Any] = json.loads(outcome.out)["clusters"][0]["upgrade"]
    return found


def many(root: Path, count: int) -> Path:
    """Create the small workspace with more jobs."""
    names = {f"specs/nlp/job-{index:03}.yaml": workspaces.SPEC for index in range(1, count)}
    return workspaces.write(root, names)


def test_runs_that_change_in_the_same_way_share_one_line(root: Path) -> None:
    change(root, PAIR, OLD)
    outcome = check(many(root, 30), "--as", "trainer=2.3,kueue=0.19")
    assert outcome.code == Exit.CLEAN
    line = "spec.activeDeadlineSeconds: (absent) -> 86400  (30 objects, first nlp/filings)"
    assert outcome.out.count(line) == 1
    assert "30 runs get a new name and would train again:" in outcome.out
    assert re.search(r"nlp/filings: filings-[0-9a-f]{8} -> filings-[0-9a-f]{8}\n", outcome.out)
    assert "    and 20 more\n" in outcome.out
    assert "keepRuns: true in the cluster's file" in outcome.out
    assert outcome.out.count("\n") < 60


def test_new_names_are_those_that_a_render_gives(root: Path) -> None:
    change(root, PAIR, OLD)
    (renamed,) = upgrade(root, "trainer=2.3,kueue=0.19")["renamed"]
    workspaces.render(root)
    assert (root / f"rendered/lab/runs/nlp/{renamed['old']}.yaml").exists()
    change(root, OLD, PAIR)
    workspaces.render(root)
    assert (root / f"rendered/lab/runs/nlp/{renamed['new']}.yaml").exists()


def test_fields_that_differ_between_runs_share_one_line(root: Path) -> None:
    change(root, PAIR, OLD)
    for hours in range(1, 9):
        workspaces.write(root, {f"specs/nlp/job-{hours}.yaml": f"{workspaces.SPEC}timeout: {hours}h\n"})
    deltas = upgrade(root, "trainer=2.3,kueue=0.19")["differences"]
    deadlines = [delta for delta in deltas if delta["path"] == "spec.activeDeadlineSeconds"]
    assert [(delta["count"], delta["values"]) for delta in deadlines] == [(9, 9)]


def test_versions_that_change_no_name_rename_no_run(root: Path) -> None:
    found = upgrade(root, "trainer=2.2,kueue=0.18")
    assert found["renamed"] == []
    assert "no run gets a new name" in check(root, "--as", "trainer=2.2,kueue=0.18").out


def test_an_archived_run_does_not_train_again(root: Path) -> None:
    change(root, PAIR, OLD)
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "state: archived\n"})
    outcome = check(root, "--as", "trainer=2.3,kueue=0.19")
    assert "no run gets a new name" in outcome.out
    assert upgrade(root, "trainer=2.3,kueue=0.19")["renamed"][0]["is_over"] is True


def test_another_kubernetes_changes_only_namespaces(root: Path) -> None:
    found = upgrade(root, "kubernetes=1.35")
    assert {delta["kind"] for delta in found["differences"]} == {"Namespace"}
    assert found["renamed"] == []


def test_openshift_brings_its_kubernetes(root: Path) -> None:
    change(root, PAIR, f'{PAIR}, openshift: "4.21"')
    outcome = check(root, "--as", "openshift=4.20")
    assert outcome.code == Exit.CLEAN
    assert "lab with Kubernetes 1.33 (was 1.34.4), OpenShift 4.20 (was 4.21)" in outcome.out


def test_trainer_brings_its_jobset(root: Path) -> None:
    change(root, PAIR, f'{PAIR}, jobset: "0.12.0"')
    outcome = check(root, "--as", "trainer=2.2")
    assert (outcome.code, outcome.findings) == (Exit.CLEAN, [])
    assert "JobSet as it comes (was 0.12.0)" in outcome.out


def test_a_pair_that_does_not_work_is_refused(root: Path) -> None:
    outcome = check(root, "--as", "kueue=0.16")
    assert outcome.code == Exit.FINDINGS
    assert outcome.errors() == [("overlays/lab/cluster.yaml:3:59", "version-pair")]
    assert "not compared: see the findings" in outcome.out


def test_comparing_versions_writes_nothing(root: Path) -> None:
    workspaces.render(root)
    before = workspaces.tree(root)
    check(root, "--as", "trainer=2.2,kueue=0.18")
    after = workspaces.tree(root)
    assert {name: text for name, text in after.items() if not name.startswith(".gangplan/")} == {
        name: text for name, text in before.items() if not name.startswith(".gangplan/")
    }


def test_a_workspace_that_does_not_render_is_bad_input(root: Path) -> None:
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("32Gi", "32GB")})
    outcome = check(root, "--as", "kueue=0.18")
    assert outcome.code == Exit.INPUT
    assert outcome.errors() == [("specs/nlp/filings.yaml:8:9", "spec-value")]


def test_only_the_named_cluster_changes(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "workspace")
    workspaces.write(root, {"overlays/far/cluster.yaml": workspaces.CLUSTER})
    workspaces.write(root, {"specs/nlp/team.yaml": workspaces.TEAM.replace("[lab]", "[lab, far]")})
    outcome = check(root, "--cluster", "far", "--as", "kubernetes=1.35")
    assert outcome.code == Exit.CLEAN
    assert outcome.out.startswith("far\n")
    assert "lab" not in re.findall(r"^\S+", outcome.out, re.M)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ABSENT_TEXT, "(absent)"),
        ("a\nb\n", "a text of 2 lines"),
        ("x" * 80, '"' + "x" * 56 + "..."),
        (3, "3"),
        ({}, "{}"),
    ],
)
def test_long_values_are_shortened(value: object, text: str) -> None:
    assert format_value_on_one_line(value) == text


# Kueue's configuration


def config(root: Path) -> tuple[dict[str, Any], str]:
    """Return the printed configuration, and its text."""
    outcome = gangplan("cluster", "kueue-config", "-C", root)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    return plain.load(outcome.out), outcome.out


def test_the_printed_kueue_configuration_is_complete(root: Path) -> None:
    document, text = config(root)
    assert document == {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {
            "frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"]
        },
        "waitForPodsReady": {
            "timeout": "30m",
            "recoveryTimeout": "30m",
            "blockAdmission": False,
            "requeuingStrategy": {
                "timestamp": "Eviction",
                "backoffBaseSeconds": 60,
                "backoffMaxSeconds": 3600,
            },
        },
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {
            "matchExpressions": [{"key": "gangplan.dev/team", "operator": "Exists"}]
        },
    }
    assert "Kueue 0.19: on by default" in text


def test_the_selector_matches_the_rendered_namespaces(root: Path) -> None:
    workspaces.render(root)
    bodies = [
        body
        for path in (root / "rendered/lab/tenants").rglob("*.yaml")
        for body in plain.load_all(path.read_text())
    ]
    (namespace,) = [body for body in bodies if body["kind"] == "Namespace"]
    key = config(root)[0]["managedJobsNamespaceSelector"]["matchExpressions"][0]["key"]
    assert key in namespace["metadata"]["labels"]


def test_every_setting_has_a_reason(root: Path) -> None:
    lines = config(root)[1].splitlines()
    bare = [
        line.strip()
        for above, line in zip(["", *lines], lines, strict=False)
        if not line.strip().startswith("#") and not above.strip().startswith("#")
    ]
    # Lines without a reason: the second key of a pair, and keys that open a block.
    assert bare == [
        "kind: Configuration",
        "frameworks:",
        "requeuingStrategy:",
        "matchExpressions:",
        "operator: Exists",
    ]


def test_the_cluster_file_decides_the_settings(root: Path) -> None:
    change(root, PAIR, 'trainer: "2.2.1", kueue: "0.18.2", mpiOperator: "0.8.2"')
    assert "metrics" not in config(root)[0]
    change(root, "region:", "podsReadyTimeout: 1h30m\nfairSharing: false\nmonitoring: {}\nregion:")
    document, text = config(root)
    assert "fairSharing" not in document
    assert document["metrics"] == {"enableClusterQueueResources": True}
    assert document["waitForPodsReady"]["timeout"] == "1h30m"
    assert document["integrations"]["frameworks"][-1] == "kubeflow.org/mpijob"
    assert "Kueue 0.18: off unless this block is there" in text


def test_openshift_gets_the_object_from_which_its_operator_configures_kueue(root: Path) -> None:
    """The operator overwrites the manager's ConfigMap."""
    change(root, "versions: {", 'versions: {openshift: "4.21", mpiOperator: "0.8.2", ')
    sharing = "{usageHalfLifeTime: 7d, usageSamplingInterval: 5m, resourceWeights: {memory: 0, cpu: 1.5}}"
    change(root, "region:", f"kueue: {{admissionFairSharing: {sharing}}}\npodsReadyTimeout: 10s\nregion:")
    document, text = config(root)
    assert document == {
        "apiVersion": "kueue.openshift.io/v1",
        "kind": "Kueue",
        "metadata": {"name": "cluster"},
        "spec": {
            "managementState": "Managed",
            "config": {
                "integrations": {"frameworks": ["BatchJob", "JobSet", "TrainJob", "MPIJob"]},
                "workloadManagement": {"labelPolicy": "None"},
                "gangScheduling": {
                    "policy": "ByWorkload",
                    "byWorkload": {"admission": "Parallel", "timeoutSeconds": 30},
                },
                "preemption": {"preemptionPolicy": "FairSharing"},
                "admissionFairSharing": {
                    "configuration": "Custom",
                    "custom": {
                        "usageHalfLifeTimeSeconds": 604800,
                        "usageSamplingIntervalSeconds": 300,
                        "resourceWeights": [
                            {"name": "cpu", "weight": "1.5"},
                            {"name": "memory", "weight": "0"},
                        ],
                    },
                },
            },
        },
    }
    assert "ConfigMap is lost" in text
    assert "takes 30 seconds to a day" in text


def test_what_the_operator_has_no_field_for_is_named(root: Path) -> None:
    change(root, "versions: {", 'versions: {openshift: "4.21", ')
    change(root, "region:", "kueue: {resources: {excludeResourcePrefixes: [example.com/]}}\nregion:")
    _, text = config(root)
    assert "# The operator has no field for kueue.resources of overlays/lab/cluster.yaml." in text


def test_a_cluster_without_kueue_has_no_configuration(root: Path) -> None:
    change(root, ', kueue: "0.19.2"', "")
    change(root, "region:", "gang: volcano\nregion:")
    outcome = gangplan("cluster", "kueue-config", "-C", root)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert "no cluster starts runs through Kueue" in outcome.err
    outcome = gangplan("cluster", "kueue-config", "-C", root, "--cluster", "lab")
    assert "cluster lab starts runs without Kueue (gang: volcano)" in outcome.err


def test_a_pair_that_does_not_work_has_no_configuration(root: Path) -> None:
    change(root, "0.19.2", "0.16.1")
    outcome = gangplan("cluster", "kueue-config", "-C", root)
    assert (outcome.code, outcome.out) == (Exit.FINDINGS, "")


@pytest.mark.parametrize(
    ("seconds", "text"), [(1800, "30m"), (5400, "1h30m"), (172_800, "48h"), (61, "1m1s"), (10, "10s")]
)
def test_durations_are_written_as_go_reads_them(seconds: int, text: str) -> None:
    assert go_duration(seconds) == text


@pytest.mark.parametrize("engine", ["serial", "process"])
def test_workers_render_for_the_other_versions(engine: str, root: Path) -> None:
    request = Request(many(root, 60), engine=engine, jobs=2, versions=(("kubernetes", "1.35"),))
    (tenant,) = [text for path, text in preview_render(request).texts.items() if path.endswith("tenant.yaml")]
    assert "pod-security.kubernetes.io/enforce-version: v1.35" in tenant


# Names that go into objects


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: Cluster\n", "kind: Cluster\ndomain: Cluster local\n", "domain"),
        ("label: topology.example.com/rack", "label: rack of the node", "label"),
        (
            "{queue: training}",
            "{queue: training, persistentVolumes: {old: {nfs: {server: nfs server, path: /a}, size: 1Ti}}}",
            "server",
        ),
    ],
    ids=["domain", "topology", "nfs"],
)
def test_names_that_no_object_may_have_are_refused_where_they_are(
    old: str, new: str, words: str, root: Path
) -> None:
    change(root, old, new)
    (one,) = [one for one in gangplan("validate", "-C", root).findings if one.severity == "error"]
    assert (one.rule, one.place.startswith(CLUSTER)) == ("spec-value", True)
    assert words in one.message
