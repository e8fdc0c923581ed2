"""Jobs and pods of a run on the real control plane have what kube-state-metrics must read for the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

import pytest

from tests.lab import samples
from tests.lab.client import Object, condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e

NUMBERS = count(1)
DEADLINE_S = 30


@pytest.fixture
def team(lab: Lab) -> Iterator[str]:
    """Create a fresh namespace with a queue and a runtime."""
    if lab.profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    name = f"series-{next(NUMBERS)}"
    lab.client.apply_all(samples.queue(lab.client, name))
    lab.client.apply(samples.runtime(name, name))
    lab.client.apply_patiently(samples.run(name, "pi"), dry_run=True)
    yield name
    for run in lab.client.list("TrainJob", name):
        lab.client.delete("TrainJob", run["metadata"]["name"], name)


def jobs(lab: Lab, team: str) -> dict[str, Object]:
    """Return the Jobs of a namespace by name; check that each belongs to the JobSet with the run's name."""
    found = {job["metadata"]["name"]: job for job in lab.client.list("Job", team)}
    for job in found.values():
        (owner,) = job["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("JobSet", "pi", True)
    return found


def started(job: Object) -> bool:
    """Return whether a Job reports that pods of it are active, and since when."""
    status = job.get("status", {})
    return bool(status.get("active") and status.get("startTime"))


def test_a_waiting_run_has_a_job_without_a_start(lab: Lab, team: str) -> None:
    lab.client.apply(samples.run(team, "pi", nodes=11))
    poll(lambda: "pi-node-0" in jobs(lab, team), 30, lambda: "no Job")
    status = jobs(lab, team)["pi-node-0"].get("status", {})
    assert "startTime" not in status
    assert not status.get("active")


def test_a_running_run_has_a_start_and_the_worker_in_its_pods_names(lab: Lab, team: str) -> None:
    story = Story(Plot.RUN, namespace=team)
    lab.tell(story)
    lab.client.apply(samples.run(team, "pi"))
    poll(lambda: len(lab.client.list("Pod", team)) == 3, 30, lambda: "not three pods")
    # The Job controller writes a status only after it created the pods.
    poll(
        lambda: all(started(job) for job in jobs(lab, team).values()),
        30,
        lambda: f"not started: {jobs(lab, team)}",
    )
    assert jobs(lab, team)["pi-node-0"]["spec"]["parallelism"] == 2
    seen = set()
    for pod in lab.client.list("Pod", team):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["kind"] == "Job"
        index = re.fullmatch(r".+-([0-9]+)-[a-z0-9]+", pod["metadata"]["name"])
        assert index
        seen.add((owner["name"], index[1]))
    assert seen == {("pi-node-0", "0"), ("pi-node-0", "1"), ("pi-launcher-0", "0")}
    lab.forget(story)
    lab.client.wait("TrainJob", "pi", team, until=lambda run: condition(run, "Complete") == "True")
    # The completion time itself does not matter, only that the outcome can still be read.
    (launcher,) = [job for name, job in jobs(lab, team).items() if name == "pi-launcher-0"]
    assert condition(launcher, "Complete") == "True"
    assert launcher["status"]["completionTime"]


def test_a_failed_run_keeps_its_failed_job(lab: Lab, team: str) -> None:
    lab.tell(Story(Plot.FAIL, namespace=team, role="launcher"))
    lab.client.apply(samples.run(team, "pi"))
    lab.client.wait("TrainJob", "pi", team, until=lambda run: condition(run, "Failed") == "True")
    assert condition(jobs(lab, team)["pi-launcher-0"], "Failed") == "True"


def test_deadlines_are_on_no_job_and_a_run_past_its_deadline_is_removed(lab: Lab, team: str) -> None:
    if lab.profile.trainer.startswith("2.1."):
        pytest.skip("Trainer 2.1 has no deadline of its own")
    lab.tell(Story(Plot.RUN, namespace=team))
    run = samples.run(team, "pi")
    run["spec"]["activeDeadlineSeconds"] = DEADLINE_S
    lab.client.apply(run)
    poll(lambda: len(lab.client.list("Pod", team)) == 3, 30, lambda: "not three pods")
    assert not any("activeDeadlineSeconds" in job["spec"] for job in jobs(lab, team).values())
    lab.client.wait("TrainJob", "pi", team, until=lambda run: condition(run, "Failed") == "True")
    lab.client.wait_gone("JobSet", "pi", team)
    poll(lambda: not lab.client.list("Job", team), 30, lambda: "Jobs are left")
