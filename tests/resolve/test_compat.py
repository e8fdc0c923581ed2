"""Versions of a cluster file: which are known, which work together, and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.findings import Finding
from gangplan.model import support
from gangplan.resolve.compat import check_versions, either
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.validate.apiserver.schema import SchemaVersions, build_kind_schema
from gangplan.workspace import load_workspace
from tests import workspaces

HEAD = """\
apiVersion: gangplan.dev/v1
kind: Cluster
versions: {%s}
region: eu-central
location: on-prem
"""
POOLS = """\
nodePools:
  cpu: {count: 4, cpu: 60, memory: 240Gi}
"""
GPU_POOLS = """\
nodePools:
  cpu: {count: 4, cpu: 60, memory: 240Gi}
  a100: {count: 4, cpu: 60, memory: 240Gi, gpu: {model: a100-80gb, count: 8}}
"""
MIG_POOLS = GPU_POOLS.replace("count: 8}", "count: 7, resource: nvidia.com/mig-1g.10gb, mig: 1g.10gb}")


def findings(root: Path, versions: str, rest: str = "", pools: str = POOLS) -> list[Finding]:
    """Return the findings of a cluster file with these versions."""
    workspaces.write(root, {"overlays/lab/cluster.yaml": HEAD % versions + pools + rest})
    workspace = load_workspace(root)
    wrong = workspace.findings
    assert not wrong
    cluster = workspace.clusters["lab"]
    return check_versions(cluster, resolve_platform_of_cluster_file(cluster))


def told(found: list[Finding]) -> list[str]:
    """Return findings as `line:column severity rule`."""
    return [f"{one.where.line}:{one.where.column} {one.severity.word} {one.rule}" for one in found]


def of(kubernetes: str = "1.34.4", trainer: str = "2.3.0", kueue: str = "0.19.2", **more: str) -> str:
    """Return a versions block; an empty text leaves out a component."""
    stated = {"kubernetes": kubernetes, "trainer": trainer, "kueue": kueue, **more}
    return ", ".join(f'{name}: "{version}"' for name, version in stated.items() if version)


PAIRS = [
    (trainer, kueue, kueue in lines)
    for trainer, lines in {
        "2.1": ("0.15", "0.16"),
        "2.2": ("0.17", "0.18", "0.19"),
        "2.3": ("0.17", "0.18", "0.19"),
    }.items()
    for kueue in ("0.15", "0.16", "0.17", "0.18", "0.19")
]


@pytest.mark.parametrize(("trainer", "kueue", "works"), PAIRS)
def test_only_tried_pairs_of_trainer_and_kueue_are_accepted(
    trainer: str, kueue: str, works: bool, root: Path
) -> None:
    found = findings(root, of(trainer=f"{trainer}.0", kueue=f"{kueue}.1"))
    assert told(found) == ([] if works else ["3:59 error version-pair"])
    assert all("stay suspended forever" in one.message for one in found)


@pytest.mark.parametrize(
    ("trainer", "kueue", "help"),
    [
        ("2.1.0", "0.18.2", "With Trainer 2.1 use Kueue 0.16; with Kueue 0.18 use Trainer 2.2 or 2.3."),
        ("2.1.0", "0.17.0", "With Trainer 2.1 use Kueue 0.16; with Kueue 0.17 use Trainer 2.2 or 2.3."),
        ("2.2.1", "0.16.1", "With Trainer 2.2 use Kueue 0.17; with Kueue 0.16 use Trainer 2.1."),
        ("2.3.0", "0.15.2", "With Trainer 2.3 use Kueue 0.17; with Kueue 0.15 use Trainer 2.1."),
    ],
)
def test_the_nearest_pair_is_offered(trainer: str, kueue: str, help: str, root: Path) -> None:
    (found,) = findings(root, of(trainer=trainer, kueue=kueue))
    assert found.help == help
    assert f"Kueue {kueue} and Trainer {trainer}" in found.message


UNKNOWN = {
    "Kubernetes before the first": (of(kubernetes="1.29.9"), "3:24", "Supported: 1.30, 1.31"),
    "Kubernetes after the last": (of(kubernetes="1.38.0"), "3:24", "1.36, 1.37."),
    "Trainer before the first": (of(trainer="2.0.1"), "3:43", "Supported: 2.1, 2.2, 2.3."),
    "Trainer after the last": (of(trainer="2.4.0"), "3:43", "Supported: 2.1, 2.2, 2.3."),
    "Trainer of another major": (of(trainer="1.9.0"), "3:43", "Supported: 2.1, 2.2, 2.3."),
    "Kueue before the first": (of(kueue="0.14.5"), "3:59", "Supported with Trainer 2.3: 0.17, 0.18, 0.19."),
    "Kueue after the last": (of(kueue="0.20.0"), "3:59", "Supported with Trainer 2.3: 0.17, 0.18, 0.19."),
    "JobSet after the last": (of(jobset="0.13.0"), "3:77", "Supported: 0.10, 0.11, 0.12."),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_version_is_unsupported(name: str, root: Path) -> None:
    versions, place, help = UNKNOWN[name]
    (found,) = findings(root, versions)
    assert told([found]) == [f"{place} error version-unsupported"]
    assert help in found.help


@pytest.mark.parametrize("kubernetes", ["1.30.0", "1.37.9", "v1.34", "1.34"])
def test_a_known_kubernetes_has_no_finding(kubernetes: str, root: Path) -> None:
    assert findings(root, of(kubernetes=kubernetes)) == []


def test_two_unknown_versions_are_two_findings(root: Path) -> None:
    found = findings(root, of(trainer="1.9.0", kueue="0.9.1"))
    assert told(found) == ["3:43 error version-unsupported", "3:59 error version-unsupported"]
    assert found[1].help == "Supported: 0.15, 0.16, 0.17, 0.18, 0.19."


OPENSHIFT = {
    "the right Kubernetes": (of(openshift="4.21"), []),
    "the first with a known Kubernetes": (of("1.30.1", openshift="4.17.3"), []),
    "one line off": (of("1.33.1", openshift="4.21"), ["3:24 error openshift-kubernetes"]),
    "too old": (of(openshift="4.13"), ["3:80 error version-unsupported"]),
    "of another major": (of(openshift="3.11"), ["3:80 error version-unsupported"]),
    "not known yet": (of(openshift="4.22"), ["3:80 error version-unsupported"]),
    "too old, with a Kubernetes that it never had": (
        of("1.29.1", openshift="4.14"),
        ["3:24 error version-unsupported", "3:80 error version-unsupported"],
    ),
}


@pytest.mark.parametrize("name", OPENSHIFT)
def test_openshift_needs_its_kubernetes(name: str, root: Path) -> None:
    versions, expected = OPENSHIFT[name]
    assert told(findings(root, versions)) == expected


def test_openshift_names_the_right_kubernetes(root: Path) -> None:
    (found,) = findings(root, of("1.33.1", openshift="4.21"))
    assert found.message == "OpenShift 4.21 is Kubernetes 1.34, not 1.33"
    assert found.help == 'Write kubernetes: "1.34", or openshift: "4.20".'
    (found,) = findings(root, of("1.36.0", openshift="4.21"))
    assert found.help == 'Write kubernetes: "1.34".'


def test_an_openshift_that_is_too_old_is_refused_once_with_its_reason(root: Path) -> None:
    # 4.14 to 4.16 were once listed as supported.
    for line, inside in {"4.14": "1.27", "4.15": "1.28", "4.16": "1.29"}.items():
        (found,) = findings(root, of(f"{inside}.1", openshift=line))
        assert (found.rule, str(found.where).rpartition(":")[0].endswith(":3")) == (
            "version-unsupported",
            True,
        )
        assert found.message == (
            f"OpenShift {line} is too old: it is Kubernetes {inside};"
            " gangplan needs Kubernetes 1.30, which is OpenShift 4.17, or later"
        )
        assert found.help == "Supported: 4.17, 4.18, 4.19, 4.20, 4.21."
        assert line not in support.OPENSHIFT_LINES
    assert set(support.OPENSHIFT_LINES.values()) <= set(support.KUBERNETES_LINES)


@pytest.mark.parametrize(
    ("versions", "rest", "expected"),
    [
        (of(openshift="4.21"), "cni: openshift-sdn\n", ["8:6 error cni-removed"]),
        (of("1.30.1", openshift="4.17"), "cni: openshift-sdn\n", ["8:6 error cni-removed"]),
        (of(), "cni: openshift-sdn\n", ["8:6 warning cni-deprecated"]),
        (of(openshift="4.21"), "cni: ovn-kubernetes\n", []),
    ],
)
def test_old_network_plugins_are_reported(versions: str, rest: str, expected: list[str], root: Path) -> None:
    found = findings(root, versions, rest)
    assert [line for line in told(found) if "version-unsupported" not in line] == expected


@pytest.mark.parametrize(
    ("trainer", "jobset", "expected"),
    [
        ("2.1.0", "0.10.1", []),
        ("2.2.1", "0.11.3", []),
        ("2.3.0", "0.12.0", []),
        ("2.3.0", "0.11.0", ["3:77 warning jobset-pair"]),
        ("2.1.0", "0.12.0", ["3:77 warning jobset-pair"]),
    ],
)
def test_another_jobset_than_trainers_own_is_a_warning(
    trainer: str, jobset: str, expected: list[str], root: Path
) -> None:
    kueue = "0.16.1" if trainer == "2.1.0" else "0.19.2"
    assert told(findings(root, of(trainer=trainer, kueue=kueue, jobset=jobset))) == expected


GANG = {
    "kueue without its version": (of(kueue=""), "", ["3:11 error gang-without-kueue"]),
    "volcano without Kueue": (of(kueue=""), "gang: volcano\n", []),
    "coscheduling without Kueue": (of(kueue=""), "gang: coscheduling\n", []),
    "volcano other than Kueue": (of(), "gang: volcano\n", ["3:59 warning kueue-unused"]),
    "volcano next to a Kueue that would not go with this Trainer": (
        of(kueue="0.15.2"),
        "gang: volcano\n",
        ["3:59 warning kueue-unused"],
    ),
    "none in production": (of(kueue=""), "gang: none\n", ["8:7 error gang-none-in-prod"]),
    "none for development": (of(kueue=""), "gang: none\nenvironment: dev\n", []),
}


@pytest.mark.parametrize("name", GANG)
def test_gang_scheduling_fits_the_versions(name: str, root: Path) -> None:
    versions, rest, expected = GANG[name]
    assert told(findings(root, versions, rest)) == expected


@pytest.mark.parametrize(
    ("versions", "pools", "expected"),
    [
        (of(), GPU_POOLS, ["8:3 note gpu-operator-unstated"]),
        (of(gpuOperator="25.10.0"), GPU_POOLS, []),
        (of(), POOLS, []),
        (of(), MIG_POOLS, []),
    ],
)
def test_gpu_pools_need_a_stated_gpu_operator(
    versions: str, pools: str, expected: list[str], root: Path
) -> None:
    assert told(findings(root, versions, pools=pools)) == expected


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (of(argocd="3.5.1", mpiOperator="0.8.2"), []),
        (of(argocd="3.1.0", flux="2.5.0"), []),
        (of(argocd="3.0.9"), ["3:77 warning version-untried"]),
        (of(argocd="3.6.0"), ["3:77 warning version-untried"]),
        (of(flux="2.10.0"), ["3:75 warning version-untried"]),
        (of(mpiOperator="0.7.0"), ["3:82 warning version-untried"]),
    ],
)
def test_untried_tools_are_a_warning(versions: str, expected: list[str], root: Path) -> None:
    assert told(findings(root, versions)) == expected


def test_every_known_line_has_its_schemas() -> None:
    """A version in the tables is one that rendered objects can be checked against."""
    for trainer, kueue in ((trainer, kueue) for trainer, kueue, works in PAIRS if works):
        jobset = support.TRAINER_LINES[trainer].jobset.line
        assert jobset in support.JOBSET_LINES
        versions = SchemaVersions("1.34", trainer, kueue, jobset)
        for api, kind in (
            ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
            (support.KUEUE_LINES[kueue].api_version, "LocalQueue"),
        ):
            assert build_kind_schema(versions, api, kind) is not None
    for kubernetes in support.KUBERNETES_LINES:
        assert build_kind_schema(SchemaVersions(kubernetes), "v1", "Namespace") is not None


def test_tables_of_trainer_and_kueue_agree() -> None:
    assert {(trainer, kueue) for trainer, kueue, works in PAIRS if works} == {
        (trainer, kueue) for trainer in support.TRAINER_LINES for kueue in support.list_kueue_lines(trainer)
    }
    assert all(support.list_trainer_lines(kueue) for kueue in support.KUEUE_LINES)
    assert support.list_kueue_lines("9.9") == support.list_trainer_lines("9.9") == ()


def test_either_joins_words_with_or() -> None:
    assert [either("a"), either("ab"), either("abc")] == ["a", "a or b", "a, b or c"]


@pytest.mark.parametrize(
    ("versions", "rest", "expected"),
    [
        (of(openshift="4.21"), "monitoring: {}\n", ["8:1 warning monitoring-label-enforced"]),
        (of(openshift="4.21"), "monitoring: {allNamespaces: true}\n", []),
        (of(openshift="4.21"), "", []),
        (of(), "monitoring: {}\n", []),
    ],
)
def test_monitoring_on_openshift_needs_all_namespaces(
    versions: str, rest: str, expected: list[str], root: Path
) -> None:
    assert told(findings(root, versions, rest)) == expected


def test_the_help_for_monitoring_names_namespace_and_configuration(root: Path) -> None:
    (found,) = findings(root, of(openshift="4.21"), "monitoring: {namespace: watch}\n")
    assert "namespacesWithoutLabelEnforcement: [watch]" in (found.help or "")
    assert "user-workload-monitoring-config" in (found.help or "")
