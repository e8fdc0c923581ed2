"""What real controllers do with the record of a stopped run (gangplan/gitops/record.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count

import pytest

from gangplan.gitops.record import KUEUE_QUEUE_LABEL, build_run_record
from tests.lab import samples
from tests.lab.client import ApiError, Object, condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e

NUMBERS = count(1)
QUIET_S = 8  # long enough for every controller to look again
PATIENCE_S = 60


@pytest.fixture
def team(lab: Lab) -> Iterator[str]:
    """Create a fresh namespace with a queue and a runtime, in which runs train until the story ends."""
    if lab.profile.name == "broken":
        pytest.skip("runs cannot start in this profile")
    name = f"records-{next(NUMBERS)}"
    lab.client.apply_all(samples.queue(lab.client, name))
    lab.client.apply(samples.runtime(name, name))
    lab.client.apply_patiently(samples.run(name, "pi"), dry_run=True)
    hold = Story(Plot.RUN, namespace=name)
    lab.tell(hold)
    yield name
    lab.forget(hold)
    for run in lab.client.list("TrainJob", name):
        lab.client.delete("TrainJob", run["metadata"]["name"], name)


def pods(lab: Lab, team: str) -> set[str]:
    """Return the pods of the namespace, by uid."""
    return {pod["metadata"]["uid"] for pod in lab.client.list("Pod", team)}


def reserved(lab: Lab, team: str) -> list[str]:
    """Return the Workloads that hold quota."""
    found = lab.client.list("Workload", team)
    return [one["metadata"]["name"] for one in found if condition(one, "QuotaReserved") == "True"]


def started(lab: Lab, team: str) -> Object:
    """Start a run, and wait until it trains."""
    body = samples.run(team, "pi")
    lab.client.apply(body)
    poll(lambda: len(pods(lab, team)) == 3, 60, lambda: "not three pods")
    assert len(reserved(lab, team)) == 1
    return body


def replace(lab: Lab, team: str, body: Object) -> None:
    """Delete a TrainJob and create it at once, as `kubectl replace --force` does."""
    lab.client.delete("TrainJob", "pi", team)
    poll(lambda: lab.client.find("TrainJob", "pi", team) is None, 30, lambda: "the TrainJob is still there")
    lab.client.apply(body)


def test_a_record_ends_a_run_frees_its_quota_and_starts_nothing(lab: Lab, team: str) -> None:
    (record,) = build_run_record([started(lab, team)])
    replace(lab, team, record)
    # Kueue before 0.18 takes the old Workload for that of the new TrainJob, and may start that for a moment.
    end = quiet_until = time.monotonic() + QUIET_S
    while time.monotonic() < quiet_until:
        live = lab.client.find("TrainJob", "pi", team)
        assert live is not None
        if pods(lab, team) or reserved(lab, team) or live["spec"].get("suspend") is not True:
            quiet_until = time.monotonic() + QUIET_S
            assert quiet_until < end + PATIENCE_S, f"{len(pods(lab, team))} pods, {reserved(lab, team)}"
        time.sleep(0.2)
    lab.client.delete("TrainJob", "pi", team)
    left = ("TrainJob", "JobSet", "Job", "Workload")
    poll(
        lambda: not any(lab.client.list(kind, team) for kind in left),
        60,
        lambda: str({kind: len(lab.client.list(kind, team)) for kind in left}),
    )


def test_suspending_alone_restarts_a_run(lab: Lab, team: str) -> None:
    """Show why a record is more than a suspended run: Kueue admitted the run, and starts it again."""
    body = started(lab, team)
    before = pods(lab, team)
    lab.client.apply({**body, "spec": {**body["spec"], "suspend": True}})
    poll(
        lambda: len(now := pods(lab, team)) == 3 and not now & before,
        60,
        lambda: "the pods are not new ones",
    )


def test_a_run_may_leave_its_queue_only_suspended(lab: Lab, team: str) -> None:
    """Ask what a server-side diff asks the API server about the record of a running run."""
    body = started(lab, team)
    (record,) = build_run_record([body])
    lab.client.apply(record, dry_run=True)
    labels = {
        **body["metadata"]["labels"],
        KUEUE_QUEUE_LABEL: record["metadata"]["labels"][KUEUE_QUEUE_LABEL],
    }
    moved = {**body, "metadata": {**body["metadata"], "labels": labels}}
    with pytest.raises(ApiError, match="queue-name"):
        lab.client.apply(moved, dry_run=True)
