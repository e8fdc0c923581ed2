"""Elastic runs on the real controllers: lost workers alone are replaced, and the first worker ends the
run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests.e2e import story, world
from tests.e2e.drift import drift
from tests.e2e.test_disruptions import PATIENCE, Played
from tests.golden import render_example
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
EXAMPLE = story.ROOT / "tests/examples/elastic-torch"
TEAM = "research"
INDEX = "batch.kubernetes.io/job-completion-index"
Object = dict[str, Any]


@pytest.fixture
def run() -> Iterator[Played]:
    """Start the example, and wait until all its four workers are ready."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the example is for the versions of profile new")
    spec = load_workspace(EXAMPLE / "input").clusters["lab"].spec
    with Lab(profile) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.RUN, namespace=None, run=None))
        for folder in ("platform", "tenants", "runs"):
            for path in sorted((render_example(EXAMPLE.name) / "lab" / folder).rglob("*.yaml")):
                for body in load_objects(path.read_text()):
                    answer = lab.client.apply_patiently(body)
                    assert [*answer.warnings, *drift(body, answer.object)] == []
        (path,) = world.run_files(render_example(EXAMPLE.name) / "lab")
        played = Played(lab, TEAM, path.stem, 4)
        played.until_ready(0)
        yield played


def by_number(run: Played) -> dict[str, Object]:
    return {pod["metadata"]["annotations"][INDEX]: pod for pod in run.pods(0)}


def succeed(run: Played, pod: Object) -> None:
    """Let a pod succeed, as the kubelet reports it."""
    terminated = {"exitCode": 0, "reason": "Completed"}
    statuses = [
        {**one, "ready": False, "started": False, "state": {"terminated": terminated}}
        for one in pod["status"]["containerStatuses"]
    ]
    conditions = [one for one in pod["status"]["conditions"] if one["type"] != "Ready"]
    change = {"status": {"phase": "Succeeded", "containerStatuses": statuses, "conditions": conditions}}
    run.lab.client.patch("Pod", pod["metadata"]["name"], change, TEAM, "status")


def test_a_lost_worker_is_replaced_while_the_others_run_on(run: Played) -> None:
    before = by_number(run)
    run.end(before["2"], 143, is_disrupted=True)

    def is_back() -> bool:
        now = by_number(run)
        return len(now) == 4 and now["2"]["metadata"]["uid"] != before["2"]["metadata"]["uid"]

    poll(is_back, PATIENCE, run.story)
    now = by_number(run)
    for number in ("0", "1", "3"):
        assert now[number]["metadata"]["uid"] == before[number]["metadata"]["uid"]
    # It has the same name, so that the others find it.
    assert now["2"]["spec"]["hostname"] == before["2"]["spec"]["hostname"]
    assert run.restarts() == (0, 0)
    assert run.failures() == {}
    (workload,) = run.lab.client.list("Workload", TEAM)
    assert condition(workload, "Admitted") == "True"
    (counted,) = workload["status"]["admission"]["podSetAssignments"]
    assert (counted["count"], counted["resourceUsage"]["cpu"]) == (4, "16")


def test_the_run_is_complete_with_its_first_worker(run: Played) -> None:
    """The other workers end with it, whether or not they have finished."""
    for number in ("1", "0"):
        succeed(run, by_number(run)[number])

    def complete() -> bool:
        found = run.lab.client.list("TrainJob", TEAM)
        return bool(found) and all(condition(one, "Complete") == "True" for one in found)

    poll(complete, PATIENCE, run.story)
    assert run.pods(0) == []


def test_a_worker_that_fails_by_itself_restarts_the_run(run: Played) -> None:
    run.end(by_number(run)["3"], 1)
    run.until_ready(1)
    assert run.restarts() == (1, 1)
