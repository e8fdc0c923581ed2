"""What is rendered for a schedule: a CronJob, the template of its runs, and what they refer to."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gangplan.objects import walk_leaves
from gangplan.source import load_objects
from tests import workspaces
from tests.schedules import worlds
from tests.workspaces import gangplan, write


def test_a_schedule_renders_and_validates(root: Path) -> None:
    worlds.stock(root)
    bodies = worlds.rendered(root)
    assert gangplan("validate", "-C", root).findings == []
    assert [body["kind"] for body in bodies] == ["NetworkPolicy", "TrainingRuntime", "ConfigMap", "CronJob"]
    job = worlds.one(bodies, "CronJob")
    assert job["metadata"]["name"] == "filings"
    spec = job["spec"]
    assert (spec["schedule"], spec["timeZone"]) == ("0 4 * * *", "Europe/Berlin")
    assert (spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == ("Forbid", 3600)
    assert spec["suspend"] is False
    (container,) = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example.com/kubectl@sha256:{'ab' * 32}"


def test_dated_runs_have_the_spec_and_labels_of_runs(root: Path) -> None:
    worlds.stock(root)
    plain = workspaces.SPEC + "timeout: 20h\n"
    write(root, {"specs/nlp/plain.yaml": plain})
    bodies = worlds.rendered(root)
    dated, run = worlds.template(bodies), worlds.one(bodies, "TrainJob")
    assert dated["metadata"]["name"] == "filings-20001231-2359"
    assert dated["spec"]["runtimeRef"]["name"] in {
        body["metadata"]["name"] for body in bodies if body["kind"] == "TrainingRuntime"
    }
    assert {**dated["spec"], "runtimeRef": None} == {**run["spec"], "runtimeRef": None}
    labels = dated["metadata"]["labels"]
    assert labels.pop("gangplan.dev/schedule") == "filings"
    assert labels.keys() == run["metadata"]["labels"].keys()
    assert labels["kueue.x-k8s.io/queue-name"] == "training"
    assert not any(
        "tracking" in key or "instance" in key for key in (*labels, *dated["metadata"]["annotations"])
    )


def test_an_engine_prunes_the_schedule_and_no_run(root: Path) -> None:
    worlds.stock(root)
    bodies = worlds.rendered(root)
    guard = "kustomize.toolkit.fluxcd.io/prune"
    kept = {body["kind"] for body in bodies if guard in body["metadata"]["annotations"]}
    assert kept == {"ConfigMap", "NetworkPolicy", "TrainingRuntime"}
    assert (
        "Prune=false" in worlds.template(bodies)["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    )


def test_network_policies_select_dated_runs_but_not_their_creator(root: Path) -> None:
    worlds.stock(root)
    bodies = worlds.rendered(root)
    wanted = worlds.one(bodies, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    runtime = worlds.one(bodies, "TrainingRuntime")
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]["metadata"]["labels"]
        assert wanted.items() <= pod.items()
    creator = worlds.one(bodies, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert not wanted.items() <= creator.items()
    standing = worlds.rendered(root, "tenants")
    way = worlds.one(standing, "NetworkPolicy", "gangplan-scheduler")["spec"]
    assert way["podSelector"]["matchLabels"].items() <= creator.items()
    assert way["egress"] == [
        {"to": [{"ipBlock": {"cidr": "10.96.0.1/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}
    ]


def test_the_account_may_only_create_and_see_runs(root: Path) -> None:
    worlds.stock(root)
    standing = worlds.rendered(root, "tenants")
    binding = worlds.one(standing, "RoleBinding", "gangplan-scheduler")
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "gangplan-scheduler", "namespace": "nlp"}
    ]
    role = worlds.one(worlds.rendered(root, "platform"), "ClusterRole", binding["roleRef"]["name"])
    assert role["rules"] == [
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["trainjobs"],
            "verbs": ["create", "get", "list"],
        }
    ]
    assert not any("aggregate" in key for key in role["metadata"]["labels"])


@pytest.mark.parametrize("state", ["stopped", "archived"])
def test_a_stopped_schedule_is_suspended_and_an_archived_one_removed(state: str, root: Path) -> None:
    worlds.stock(root, worlds.SPEC + f"state: {state}\n")
    bodies = worlds.rendered(root)
    jobs = [body for body in bodies if body["kind"] == "CronJob"]
    assert [job["spec"]["suspend"] for job in jobs] == ([True] if state == "stopped" else [])


def test_edits_change_what_the_next_start_creates(root: Path) -> None:
    worlds.stock(root)
    before = worlds.one(worlds.rendered(root), "CronJob")["metadata"]
    worlds.stock(root, worlds.SPEC.replace("0 4", "0 5"))
    later = worlds.one(worlds.rendered(root), "TrainingRuntime")["metadata"]["name"]
    assert later == before["labels"]["gangplan.dev/run"]
    worlds.stock(root, worlds.SPEC.replace("memory: 32Gi", "memory: 48Gi"))
    edited = worlds.rendered(root)
    name, job = worlds.one(edited, "TrainingRuntime")["metadata"]["name"], worlds.one(edited, "CronJob")
    assert name != later
    assert job["metadata"]["name"] == before["name"]
    volumes = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["configMap"]["name"] == f"{name}-template"


def test_a_kept_schedule_keeps_its_template(root: Path) -> None:
    worlds.stock(root)
    before = worlds.template(worlds.rendered(root))
    changed = worlds.CATALOG.replace("1b0f7c64", "2b0f7c64")
    worlds.stock(root, worlds.SPEC + "keep: true\n", **{"images/catalog.yaml": changed})
    assert worlds.template(worlds.rendered(root))["spec"] == before["spec"]
    worlds.stock(root, **{"images/catalog.yaml": changed})
    assert worlds.template(worlds.rendered(root))["spec"] != before["spec"]


def test_a_retired_template_becomes_a_record_without_runs(root: Path) -> None:
    worlds.stock(root)
    old = worlds.one(worlds.rendered(root), "TrainingRuntime")["metadata"]["name"]
    worlds.stock(root, worlds.SPEC.replace("32Gi", "48Gi") + f"retired: [{old}]\n")
    worlds.rendered(root)
    record = load_objects((root / f"rendered/lab/runs/nlp/{old}.yaml").read_text(encoding="utf-8"))
    assert {body["kind"] for body in record} == {"NetworkPolicy", "TrainingRuntime", "ConfigMap"}
    assert all(body["metadata"]["annotations"]["gangplan.dev/state"] == "stopped" for body in record)
    before = (root / f"rendered/lab/runs/nlp/{old}.yaml").read_bytes()
    worlds.rendered(root)  # the template vouches for the runtime by its name
    assert (root / f"rendered/lab/runs/nlp/{old}.yaml").read_bytes() == before


def test_a_plain_run_that_got_a_schedule_can_be_retired(root: Path) -> None:
    worlds.stock(root, workspaces.SPEC)
    old = worlds.one(worlds.rendered(root), "TrainJob")["metadata"]["name"]
    worlds.stock(root, worlds.SPEC.replace("32Gi", "48Gi") + f"retired: [{old}]\n")
    worlds.rendered(root)
    record = load_objects((root / f"rendered/lab/runs/nlp/{old}.yaml").read_text(encoding="utf-8"))
    assert worlds.one(record, "TrainJob")["metadata"]["name"] == old
    assert {body["kind"] for body in record} == {"NetworkPolicy", "TrainingRuntime", "TrainJob"}


def test_a_name_too_long_for_dated_pods_is_refused(root: Path) -> None:
    """For an MPI job: JobSet's pods may have 63 characters, and the date takes 13 of them."""
    for length, code in ((30, 0), (31, 2)):
        worlds.stock(root, worlds.SPEC + f"name: {'n' * length}\n")
        outcome = gangplan("validate", "-C", root)
        assert outcome.code == code, outcome.err
        assert [one.rule for one in outcome.findings] == ([] if code == 0 else ["name-too-long"])


PROGRAM = """\
import sys
from gangplan.entry import main
sys.argv[1:] = ["validate", "--no-cache", "-C", sys.argv[1]]
try:
    main()
except SystemExit:
    pass
print(sorted(sys.modules))
"""
ONLY_FOR_SCHEDULES = (
    *("gangplan.model.schedule", "gangplan.model.cron", "gangplan.model.starts", "gangplan.trace.schedule"),
    *("gangplan.resolve.schedule", "gangplan.resolve.checks.schedules", "gangplan.generators.schedules"),
)


def test_workspaces_without_schedules_import_no_schedule_code(root: Path) -> None:
    workspaces.stock(root)
    asked = [sys.executable, "-c", PROGRAM, str(root)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert "gangplan.generators.trainjob" in done.stdout
    assert [name for name in ONLY_FOR_SCHEDULES if f"'{name}'" in done.stdout] == []


# What may differ between a dated run and an ordinary one; all else must be the same.
DIFFERENT = {
    *(
        ("NetworkPolicy", f"spec.{path}.{label}")
        for path in (
            "egress.0.to.0.podSelector.matchLabels",
            "ingress.0.from.0.podSelector.matchLabels",
            "podSelector.matchLabels",
        )
        for label in ("gangplan.dev/run", "jobset.sigs.k8s.io/jobset-name")
    ),
    ("TrainJob", "metadata.labels.gangplan.dev/schedule"),
    ("TrainJob", "metadata.name"),
}
# Variables of its containers that may differ if the cluster has a proxy: they contain the names of its pods.
VARIABLES = {"NO_PROXY", "no_proxy", "GANGPLAN_RUN"}
PROXY = 'proxy: {http: "http://10.1.2.3:3128", https: "http://10.1.2.3:3128", noProxy: [.example.org]}\n'


def leaves(body: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return every value by kind and path; a variable of a container has its name in the path."""
    found = {}
    for path, value in walk_leaves(body):
        steps = [str(step) for step in path]
        if "env" in steps:
            at = steps.index("env") + 2
            inside: Any = body
            for step in path[:at]:
                inside = inside[step]
            steps = [*steps[: at - 1], inside["name"], *steps[at:]]
        found[body["kind"], ".".join(steps)] = value
    return found


def named(bodies: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the objects of a run by kind, without its hash."""
    text = re.sub(r"filings-[0-9a-f]{8}", "filings-0a1b2c3d", json.dumps(bodies))
    return {body["kind"]: body for body in json.loads(text)}


@pytest.mark.parametrize("proxy", ["", PROXY], ids=["plain", "proxy"])
def test_a_dated_run_differs_from_an_ordinary_one_only_in_its_names(proxy: str, root: Path) -> None:
    """Environment, resources, volumes, security, network and queue must not differ."""
    more = "timeout: 20h\nnetwork: {egress: [internet]}\nenv: {MODE: fast}\n" if proxy else "timeout: 20h\n"
    cluster = {"overlays/lab/cluster.yaml": worlds.CLUSTER + proxy}
    worlds.stock(root, workspaces.SPEC + more, **cluster)
    plain = named(worlds.rendered(root))
    worlds.stock(root, workspaces.SPEC + worlds.NIGHTLY + more.replace("timeout: 20h\n", ""), **cluster)
    bodies = worlds.rendered(root)
    dated = named([*bodies, worlds.template(bodies)])
    differs, names = set(), set()
    for kind, body in plain.items():
        old, new = leaves(body), leaves(dated[kind])
        for key in {*old, *new}:
            if old.get(key) != new.get(key):
                path = key[1].split(".env.")
                names |= {path[1].partition(".")[0]} if len(path) > 1 else set()
                differs |= {key} if len(path) == 1 else set()
    assert differs == DIFFERENT
    assert names == (VARIABLES if proxy else set())
    if proxy:
        text = json.dumps(dated["TrainingRuntime"])
        assert text.count(",.$(GANGPLAN_RUN),localhost,") == 4, "launcher and workers, in both spellings"
        assert "metadata.labels['jobset.sigs.k8s.io/jobset-name']" in text


@pytest.mark.parametrize("proxy", ["", PROXY], ids=["plain", "proxy"])
@pytest.mark.parametrize(
    ("to", "folder"), [("filings", "/checkpoints/filings"), ("lidar", "s3://lidar/filings")]
)
def test_each_start_has_checkpoints_of_its_own(to: str, folder: str, proxy: str, root: Path) -> None:
    """Otherwise every night would resume the finished training of the night before."""
    spec = f"{worlds.SPEC}checkpoint: {{to: {to}}}\n"
    worlds.stock(root, spec, **{"overlays/lab/cluster.yaml": worlds.CLUSTER + proxy})
    runtime = worlds.one(worlds.rendered(root), "TrainingRuntime")
    assert gangplan("validate", "-C", root).findings == []
    seen = 0
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            names = [one["name"] for one in container["env"]]
            values = {one["name"]: one.get("value") for one in container["env"]}
            assert values["CHECKPOINT_DIR"] == f"{folder}/$(GANGPLAN_RUN)"
            # The kubelet expands only variables that come before.
            assert names.index("GANGPLAN_RUN") < names.index("CHECKPOINT_DIR")
            assert names.count("GANGPLAN_RUN") == 1
            seen += 1
    assert seen == 2, "launcher and workers"
