"""`run-count`: a namespace has room for every run that Git has for it, active or over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.schedules import worlds
from tests.workspaces import gangplan, write

LIMIT = "limits: {{objects: {{runs: {}}}}}\n"
PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: ResourceQuota, name: training}
  patch: |-
    - {op: add, path: /spec/hard/count~1trainingruntimes.trainer.kubeflow.org, value: "2"}
"""


def told(root: Path, *flags: str) -> list[tuple[str, str, str]]:
    """Return severity, place and message of findings about counts."""
    outcome = gangplan("validate", "-C", root, *flags)
    return [(one.severity, one.place, one.message) for one in outcome.findings if one.rule == "run-count"]


def test_records_and_archived_runs_count_like_active_ones(root: Path) -> None:
    write(root, {"specs/nlp/fourth.yaml": workspaces.SPEC})
    workspaces.render(root)
    (old,) = (root / "rendered/lab/runs/nlp").glob("fourth-*.yaml")
    write(
        root,
        {
            "overlays/lab/cluster.yaml": workspaces.CLUSTER + LIMIT.format(4),
            "specs/nlp/second.yaml": workspaces.SPEC + "state: stopped\n",
            "specs/nlp/third.yaml": workspaces.SPEC + "state: archived\n",
            "specs/nlp/fourth.yaml": f"{workspaces.SPEC}run: 2\nretired: [{old.stem}]\n",
        },
    )
    ((severity, place, message),) = told(root)
    line = workspaces.CLUSTER.count("\n") + 1
    assert (severity, place.rpartition(":")[0]) == ("error", f"overlays/lab/cluster.yaml:{line}")
    assert "may hold 4 trainjobs on lab, and Git has 5 runs of nlp" in message


@pytest.mark.parametrize(("limit", "severity"), [(1, "warning"), (2, "")])
def test_a_namespace_that_is_nearly_full_is_a_warning(limit: int, severity: str, root: Path) -> None:
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + LIMIT.format(limit)})
    assert [one[0] for one in told(root)] == [severity] * bool(severity)


def test_a_count_that_a_patch_adds_is_reported_there(root: Path) -> None:
    more = {f"specs/nlp/more{number}.yaml": workspaces.SPEC for number in range(2)}
    write(root, {"overlays/lab/kustomization.yaml": PATCH, **more})
    ((severity, place, message),) = told(root)
    assert (severity, place.split(":")[0]) == ("error", "overlays/lab/kustomization.yaml")
    assert "may hold 2 trainingruntimes" in message


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/spec/hard/pods", "overlays/lab/cluster.yaml"),
        ("/metadata/annotations/site.example.com~1a", "overlays/lab/cluster.yaml"),
        ("/spec/hard/count~1trainjobs.trainer.kubeflow.org", "overlays/lab/kustomization.yaml"),
    ],
)
def test_a_patch_of_another_field_is_not_blamed(path: str, file: str, root: Path) -> None:
    patch = PATCH.replace("/spec/hard/count~1trainingruntimes.trainer.kubeflow.org", path).replace(
        '"2"', '"1"'
    )
    limited = workspaces.CLUSTER + LIMIT.format(1)
    write(root, {"overlays/lab/kustomization.yaml": patch, "overlays/lab/cluster.yaml": limited})
    assert {place.split(":")[0] for _, place, _ in told(root)} == {file}


def test_a_part_of_the_specs_reports_no_count(root: Path) -> None:
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + LIMIT.format(1)})
    assert told(root, str(root / "specs/nlp/filings.yaml")) == []
    assert len(told(root, "--cluster", "lab")) == 1


def test_kept_answers_count_too(root: Path) -> None:
    """The second validation reads everything from what the first one kept."""
    write(
        root,
        {
            "overlays/lab/cluster.yaml": workspaces.CLUSTER + LIMIT.format(1),
            "specs/nlp/second.yaml": workspaces.SPEC,
        },
    )
    first = told(root)
    assert [one[0] for one in first] == ["error"]
    assert told(root) == first == told(root, "--no-cache")


def test_shards_leave_counts_to_the_merge(root: Path, tmp_path: Path) -> None:
    write(
        root,
        {
            "overlays/lab/cluster.yaml": workspaces.CLUSTER + LIMIT.format(1),
            "specs/nlp/second.yaml": workspaces.SPEC,
        },
    )
    files = []
    for number in (1, 2):
        file = tmp_path / f"{number}.json"
        outcome = gangplan("validate", "-C", root, "--shard", f"{number}/2", "--format", f"json={file}")
        assert "run-count" not in {one.rule for one in outcome.findings}
        files.append(file)
    merged = gangplan("report", "merge", "-C", root, *files)
    assert [one.severity for one in merged.findings if one.rule == "run-count"] == ["error"]


BOTH = workspaces.CLUSTER.replace('trainer: "2.3.0",', 'trainer: "2.3.0", mpiOperator: "0.8.2",')
MPIJOB = workspaces.SPEC + "backend: mpijob\n"


@pytest.mark.parametrize("limit", [3, 4])
def test_mpijobs_and_trainjobs_are_counted_separately(limit: int, root: Path) -> None:
    """Two of each kind: each kind has its own limit, and Workloads belong to both."""
    old = {"specs/nlp/gone.yaml": MPIJOB}
    write(root, {"overlays/lab/cluster.yaml": BOTH, **old})
    workspaces.render(root)
    (record,) = (root / "rendered/lab/runs/nlp").glob("gone-*.yaml")
    jobs = {
        "specs/nlp/second.yaml": workspaces.SPEC,
        "specs/nlp/third.yaml": MPIJOB,
        "specs/nlp/gone.yaml": f"{MPIJOB}run: 2\nretired: [{record.stem}]\n",
    }
    write(root, {"overlays/lab/cluster.yaml": BOTH + LIMIT.format(limit), **jobs})
    for _ in range(2):
        words = [message.partition(": ")[0] for _, _, message in told(root)]
        many = "namespace nlp may hold {} {} on lab, and Git has {} runs of nlp for it"
        assert words == ([many.format(3, "mpijobs", 3)] if limit == 3 else [])
        workspaces.render(root)


QUOTA = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {{kind: ResourceQuota, name: training}}
  patch: |-
    - {{op: add, path: /spec/hard/{}, value: "{}"}}
"""


@pytest.mark.parametrize("key", ["configmaps", "count~1configmaps"])
@pytest.mark.parametrize(("limit", "severity"), [(3, "error"), (4, "warning"), (5, "")])
def test_config_maps_of_runs_scripts_and_certificates_are_counted(
    key: str, limit: int, severity: str, root: Path
) -> None:
    """Two runs by MPI with a hostfile each, the team's launch scripts, and kube-root-ca.crt."""
    write(root, {"specs/nlp/two.yaml": workspaces.SPEC})
    workspaces.render(root)
    write(root, {"overlays/lab/kustomization.yaml": QUOTA.format(key, limit)})
    for flags in ((), (), ("--no-cache",)):
        assert [one[0] for one in told(root, *flags)] == [severity] * bool(severity)


@pytest.mark.parametrize(
    ("more", "config_maps", "secrets"),
    [
        ("", 3, 1),
        ("files: {./cfg.json: /etc/cfg.json}\n", 4, 1),
        ("timeout: 6h\nschedule: {cron: 0 2 * * 0, keep: 3}\n", 7, 4),
        ("state: stopped\n", 3, 1),
    ],
)
def test_what_a_run_brings_is_counted(more: str, config_maps: int, secrets: int, root: Path) -> None:
    """The scripts and certificates of a namespace are two ConfigMaps; a run by MPI has one more, and keys."""
    worlds.stock(root, workspaces.SPEC + more, **{"specs/nlp/cfg.json": "{}"})
    for key, count in (("configmaps", config_maps), ("secrets", secrets)):
        for limit, severity in ((count - 1, "error"), (count, "warning")):
            write(root, {"overlays/lab/kustomization.yaml": QUOTA.format(key, limit)})
            ((given, _, message),) = told(root)
            assert (given, f"{count} are needed" in message) == (severity, True), message


def test_runs_without_mpi_bring_neither_hostfile_nor_keys(root: Path) -> None:
    write(root, {"overlays/lab/kustomization.yaml": QUOTA.format("secrets", 0)})
    assert [one[0] for one in told(root)] == ["error"]
    spec = workspaces.SPEC.replace("image: openmpi", "image: torch")
    write(root, {"specs/nlp/filings.yaml": spec})
    assert told(root) == []
