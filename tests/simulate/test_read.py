"""Runs as the simulation reads them: runs that are never admitted, and the runs that wait for them."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.kueue.model import KueueWorkload
from gangplan.simulate import Event, order, read_workload, simulate_runs
from gangplan.validate.kueue.members import read_quota_setup_of_cluster
from gangplan.validate.world import World
from tests.admission.worlds import edited, table, world_of

TABLE = table()
STRICT = {"in": "ClusterQueue/a", "at": "spec.queueingStrategy", "set": "StrictFIFO"}
HUGE = {"in": "TrainJob", "at": "spec.trainer.numNodes", "set": 100}
OVER_LIMIT = {
    "in": "TrainingRuntime",
    "at": "spec.template.spec.replicatedJobs.1.template.spec.template.spec.containers.0.resources",
    "set": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
}
STOPPED = {"in": "ClusterQueue/a", "at": "spec.stopPolicy", "set": "Hold"}
NO_NAMESPACE = {"in": "ClusterQueue/a", "at": "spec.namespaceSelector", "drop": True}
REFUSED = {
    **OVER_LIMIT,
    "set": {"requests": {"pods": "1"}},
}


def taken(name: str, arrival: float, *edits: dict[str, Any]) -> tuple[World, KueueWorkload | None]:
    """Return the world and the base's run after some edits."""
    scene = edited(TABLE["base"], edits)
    world = world_of(scene)
    return world, read_workload(world, scene["run"], name, duration=10.0, arrival=arrival)


@pytest.mark.parametrize("mistake", [HUGE, OVER_LIMIT], ids=["too large", "over its limit"])
def test_a_strict_queue_waits_behind_what_is_never_admitted(mistake: dict[str, Any]) -> None:
    world, huge = taken("huge", 0, STRICT, mistake)
    _, small = taken("small", 5, STRICT)
    assert huge is not None
    assert small is not None
    assert (huge.is_hopeless, small.is_hopeless) == (True, False)
    assert simulate_runs(read_quota_setup_of_cluster(world), [huge, small]).waiting() == [huge, small]
    assert order(world, [small]) == [Event(5, "admitted", "small"), Event(15, "finished", "small")]


@pytest.mark.parametrize("mistake", [HUGE, OVER_LIMIT], ids=["too large", "over its limit"])
def test_a_run_that_is_never_admitted_is_left_out_of_other_queues(mistake: dict[str, Any]) -> None:
    assert taken("huge", 0, mistake)[1] is None


@pytest.mark.parametrize("mistake", [STOPPED, NO_NAMESPACE, REFUSED], ids=["stopped", "namespace", "refused"])
def test_runs_that_kueue_never_tries_block_no_others(mistake: dict[str, Any]) -> None:
    assert taken("run", 0, STRICT, mistake)[1] is None
