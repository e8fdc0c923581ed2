"""Few objects are left to the garbage collector: what a run or a team creates is freed after use."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from gangplan.pipeline.clusters import expand_cluster_platform_and_tenants
from gangplan.pipeline.runs import expand_spec_files
from gangplan.pipeline.worker import WorkerOptions, create_pipeline_worker
from gangplan.workspace import load_workspace
from tests.proofs.test_growth import written


@pytest.mark.parametrize(("what", "numbers"), [("teams", (5, 25)), ("runs", (25, 45))])
def test_runs_and_teams_leave_few_cycles(what: str, numbers: tuple[int, int], tmp_path: Path) -> None:
    """Twenty more runs or teams leave few more cycles.

    Creating macros again for every object of a team left 500. The first runs are rendered from templates, the
    others from what was learned from these.
    """
    left = []
    for number in numbers:
        teams, specs = (number, 2) if what == "teams" else (5, number)
        workspace = load_workspace(written(tmp_path / str(number), teams, 1, specs))
        worker = create_pipeline_worker(workspace, WorkerOptions())
        gc.collect()
        gc.disable()
        try:
            expand_cluster_platform_and_tenants(worker, "lab0")
            expand_spec_files(worker, workspace.spec_files)
            left.append(gc.collect())
        finally:
            gc.enable()
    assert left[1] - left[0] < 20 * 20
