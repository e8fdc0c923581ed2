"""The cost of a run does not grow with teams, clusters, or the runs before it.

Lines that are executed in the proofs are counted, not time. Each count is of a run after the first of its
cluster, which reads the world, and with different requests, so that no cached answer applies.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gangplan
from gangplan.pipeline.clusters import expand_cluster_platform_and_tenants
from gangplan.pipeline.platform import check_platform_files
from gangplan.pipeline.runs import expand_spec_files
from gangplan.pipeline.worker import WorkerOptions, build_cluster_world_before_runs, create_pipeline_worker
from gangplan.validate.kueue.standing import read_kueue_world
from gangplan.workspace import load_workspace
from tests import workspaces

PACKAGE = Path(gangplan.__file__).parent
PROOFS = tuple(
    str(PACKAGE / place)
    for place in (
        *("validate/kueue", "validate/network", "validate/scheduler", "validate/promise", "validate/world"),
        *("validate/trainer/launching", "validate/podsecurity", "validate/proofs", "kueue"),
    )
)
PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: TrainingRuntime}
  patch: |-
    - op: add
      path: /metadata/labels/site.example.com~1monitoring
      value: "true"
"""
# Beyond its team's quota in every case: other queues own what it borrows, which is a finding.
BORROWS = workspaces.SPEC.replace("workers: 4", "workers: 40").replace("gpus: 2", "gpus: 8")


def written(root: Path, teams: int, clusters: int, specs: int = 2, patch: str = "") -> Path:
    """Write a workspace whose first team has runs; the others only have their share of the cluster."""
    names = [f"team-{number:02}" for number in range(teams)]
    places = [f"lab{number}" for number in range(clusters)]
    cluster = workspaces.CLUSTER.replace("{count: 4, cpu: 124", "{count: 64, cpu: 124").replace(
        "  nlp: {queue: training}\n", "".join(f"  {name}: {{queue: gpu}}\n" for name in names)
    )
    files = {f"overlays/{place}/cluster.yaml": cluster for place in places}
    files |= {f"overlays/{place}/kustomization.yaml": patch for place in places if patch}
    team = f"apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [{', '.join(places)}]\n"
    files |= {f"specs/{name}/team.yaml": team for name in names}
    files["images/catalog.yaml"] = workspaces.CATALOG
    for number in range(specs - 1):
        files[f"specs/team-00/run-{number}.yaml"] = BORROWS.replace("40", f"{41 + number}")
    files["specs/team-00/wide.yaml"] = BORROWS
    return workspaces.write(root, files)


@pytest.fixture(autouse=True, scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fill the caches that do not depend on the workspace: answers of `solve`, parsed quantities."""
    lines(tmp_path_factory.mktemp("warm"), 2, 1)


@contextmanager
def counted(places: tuple[str, ...] = PROOFS) -> Iterator[list[int]]:
    """Count the lines that are executed in modules whose files begin with these paths."""
    lines = [0]

    def line(frame: FrameType, event: str, _: Any) -> Any:
        lines[0] += event == "line"
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(places) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield lines
    finally:
        sys.settrace(before)


def lines(root: Path, teams: int, clusters: int, specs: int = 2, patch: str = "") -> tuple[int, list[str]]:
    """Return the lines executed for the last run, and the rules that it breaks."""
    workspace = load_workspace(written(root, teams, clusters, specs, patch))
    worker = create_pipeline_worker(workspace, WorkerOptions())
    *others, last = workspace.spec_files
    expand_spec_files(worker, others)
    with counted() as found:
        (outcome,) = expand_spec_files(worker, [last])
    assert last.file.endswith("wide.yaml")
    return found[0], sorted({str(finding.rule) for finding in outcome.findings})


@pytest.mark.parametrize("patch", ["", PATCH], ids=["as generated", "patched"])
def test_the_cost_of_a_run_does_not_grow_with_teams(tmp_path: Path, patch: str) -> None:
    few, rules = lines(tmp_path / "few", 5, 1, patch=patch)
    many, same = lines(tmp_path / "many", 50, 1, patch=patch)

    assert rules == same == ["preemptible-without-checkpoint"]
    # The amounts differ, and so does the work to write them.
    assert 1000 < many < few * 1.01


def test_the_cost_of_a_run_is_the_same_for_each_cluster(tmp_path: Path) -> None:
    one, _ = lines(tmp_path / "one", 5, 1)
    twelve, _ = lines(tmp_path / "twelve", 5, 12)

    assert twelve == 12 * one


def test_the_cost_of_a_run_does_not_grow_with_earlier_runs(tmp_path: Path) -> None:
    few, _ = lines(tmp_path / "few", 5, 1, specs=2)
    many, _ = lines(tmp_path / "many", 5, 1, specs=8)

    assert few == many


RESOLVE = (f"{PACKAGE}/resolve", f"{PACKAGE}/spec", f"{PACKAGE}/kueue")
JUDGE = (f"{PACKAGE}/validate", f"{PACKAGE}/kueue", f"{PACKAGE}/pipeline", f"{PACKAGE}/resolve")


@pytest.mark.parametrize(("teams", "places"), [(40, RESOLVE), (10, JUDGE)], ids=["checks", "objects"])
def test_the_cost_of_a_cluster_grows_linearly_with_teams(
    tmp_path: Path, teams: int, places: tuple[str, ...]
) -> None:
    """Its files are checked, or its objects are rendered, checked and read for the proofs."""
    found = []
    for number in (teams, 4 * teams):
        workspace = load_workspace(written(tmp_path / str(number), number, 1))
        worker = create_pipeline_worker(workspace, WorkerOptions())
        with counted(places) as lines:
            if places == RESOLVE:
                check_platform_files(workspace)
            else:
                expand_cluster_platform_and_tenants(worker, "lab0")
                assert len(read_kueue_world(build_cluster_world_before_runs(worker, "lab0")).quotas) == number
        found.append(lines[0])

    assert found[1] < 4.1 * found[0]
