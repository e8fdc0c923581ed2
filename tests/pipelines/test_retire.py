"""Retiring jobs that come after others, and schedules: nothing ends that another run needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.worlds import CHAIN, runs, stock
from tests.rules.worlds import commit
from tests.schedules import worlds
from tests.test_retire import plan, retire, statuses
from tests.workspaces import SPEC, gangplan, write

THREE = {**CHAIN, "judge": SPEC + "after: [filings]\n"}


def names(root: Path) -> dict[str, str]:
    """Return the run of each job."""
    return {
        job: next(one["metadata"]["name"] for one in bodies if one["kind"] == "TrainingRuntime")
        for job, bodies in runs(root).items()
    }


@pytest.mark.parametrize(
    ("over", "ends"),
    [
        (("prepare",), {}),
        (("prepare", "filings"), {}),  # judge waits for filings, which would wait for prepare
        (("prepare", "filings", "judge"), {"prepare", "filings", "judge"}),
        (("filings", "judge"), {"filings", "judge"}),
    ],
)
def test_a_run_stays_as_long_as_one_that_comes_after_it(
    over: tuple[str, ...], ends: set[str], root: Path
) -> None:
    stock(root, THREE)
    known = names(root)
    commit(root)
    file = statuses(root, {known[job]: "Complete" for job in over})
    steps = plan(root, "--finished", file)
    assert {run.rpartition("-")[0] for action, run in steps if action == "record"} == set(ends)
    assert {run.rpartition("-")[0] for action, run in steps if action == "left"} == set(over) - set(ends)
    retire(root, "--finished", file, "--write")
    assert "after-never" not in {one.rule for one in gangplan("validate", "-C", root).findings}
    for _ in range(2 if len(ends) > 2 else 0):  # records leave first, then specs
        gangplan("render", "-C", root)
        commit(root)
        retire(root, "--write")
        assert not [one for one in gangplan("validate", "-C", root).findings if one.rule.startswith("after")]


@pytest.mark.parametrize("backend", ["cronjob", "commit"])
def test_a_schedule_does_not_end_with_its_run(backend: str, root: Path) -> None:
    """`state: stopped` would end the schedule, not the run."""
    offer = worlds.OFFER if backend == "cronjob" else "schedules: {backend: commit}\n"
    worlds.stock(root, **{"overlays/lab/cluster.yaml": worlds.CLUSTER.replace(worlds.OFFER, offer)})
    name = worlds.one(worlds.rendered(root), "TrainingRuntime")["metadata"]["name"]
    commit(root)
    assert plan(root, "--older-than", "1d", "--today", "2030-01-01") == []
    assert plan(root, "--finished", statuses(root, {name: "Complete"})) == []


def test_a_retired_template_stays_as_it_was(root: Path) -> None:
    """From the change of a schedule to the end of its record, nothing is an error."""
    worlds.stock(root)
    worlds.rendered(root)
    commit(root)
    write(root, {"specs/nlp/filings.yaml": worlds.SPEC.replace("32Gi", "48Gi")})
    for left in (2, 1):
        worlds.rendered(root)
        commit(root)
        retire(root, "--write")
        worlds.rendered(root)
        assert len(list((root / "rendered/lab/runs/nlp").glob("*-*.yaml"))) == left
        assert gangplan("validate", "-C", root).code == 0
