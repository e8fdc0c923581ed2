"""Every known way in which a run is never admitted, with the nearest case that is."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest

from gangplan.validate.kueue import AdmissionVerdict, judge_admission
from gangplan.validate.scheduler import fit_run_pods_onto_nodes
from tests.admission.worlds import Body, edited, table, world_of

TABLE = table()
CASES = TABLE["cases"]
JUDGED = [case for case in CASES if "by" not in case]
IDS = [f"{case['id']} {case['what']}" for case in JUDGED]


def scene_of(case: Body, edits: list[Body]) -> Body:
    """Return the base with the case's topology, launchers and edits."""
    scene = edited(TABLE["base"], TABLE["topology"] if case.get("topology") else [])
    jobs = scene["run"][0]["spec"]["template"]["spec"]["replicatedJobs"]
    for number in range(1, case.get("launchers", 1)):
        jobs.append({**deepcopy(jobs[1]), "name": f"launcher-{number}"})
    return edited(scene, edits)


def verdict_of(case: Body, edits: list[Body], usage: Any = None) -> AdmissionVerdict:
    """Return the solver's verdict on a scene."""
    scene = scene_of(case, edits)
    amounts = usage and {
        queue: {
            flavor: {name: Fraction(value) for name, value in used.items()} for flavor, used in of.items()
        }
        for queue, of in usage.items()
    }
    return judge_admission(world_of(scene), scene["run"], amounts)


def test_every_known_case_is_a_row() -> None:
    known = {f"A{number}" for number in range(1, 12)} | {f"B{number}" for number in range(1, 25)}
    assert {case["id"] for case in CASES} == known


def test_only_three_rows_are_not_for_the_solver() -> None:
    assert [case["id"] for case in CASES if "by" in case] == ["A9", "B19", "B23"]


@pytest.mark.parametrize("topology", [False, True])
def test_the_base_is_admitted(topology: bool) -> None:
    verdict = verdict_of({"topology": topology}, [])
    assert (verdict.outcome, verdict.reason, verdict.message, verdict.queue) == ("admit", "", "", "a")
    assert verdict.assignment == {
        "node": {"cpu": "a100", "memory": "a100", "nvidia.com/gpu": "a100"},
        "launcher": {"cpu": "cpu", "memory": "cpu"},
    }
    assert verdict.requests["node"] == (8, {"cpu": 8, "memory": 64 * 2**30, "nvidia.com/gpu": 2})
    assert verdict.requests["launcher"] == (1, {"cpu": 1, "memory": 2 * 2**30})
    assert verdict.borrowed == {}


@pytest.mark.parametrize("case", JUDGED, ids=IDS)
def test_each_mistake_is_never_admitted_or_queued(case: Body) -> None:
    if case.get("fit"):
        scene = scene_of(case, case["fail"])
        assert judge_admission(world_of(scene), scene["run"]).outcome == "admit", (
            "Kueue does not look at nodes"
        )
        assert not fit_run_pods_onto_nodes(world_of(scene), scene["run"]).fits
        return
    verdict = verdict_of(case, case["fail"], case.get("usage"))
    assert verdict.outcome == case.get("outcome", "never"), verdict
    assert (verdict.cause or verdict.reason) == case.get("reason", "")
    assert case.get("message", "") in (verdict.cause_message or verdict.message)
    if "at_last" in case:
        assert f"{verdict.reason} {verdict.message}" == case["at_last"]
    if "queue" in case:
        assert verdict.queue == case["queue"]


@pytest.mark.parametrize("case", JUDGED, ids=IDS)
def test_each_near_miss_is_admitted(case: Body) -> None:
    verdict = verdict_of(case, case["near"], case.get("near_usage"))
    assert (verdict.outcome, verdict.reason, verdict.message) == ("admit", "", ""), verdict
    assert verdict.queue
    if case.get("fit"):
        scene = scene_of(case, case["near"])
        assert fit_run_pods_onto_nodes(world_of(scene), scene["run"]).fits
