"""The state of a run and its reason, from objects that real controllers wrote (tests/gitops/statuses/)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.live.reasons import (
    explain_failed_live_pods,
    explain_kueue_eviction,
    explain_kueue_message,
    explain_kueue_preemption,
    explain_unready_live_pods,
)
from gangplan.live.states import RUN_STATES, determine_live_run_state

FOLDER = Path(__file__).parents[1] / "gitops/statuses"
NOW = "2026-01-01T00:00:00Z"
# Case -> state, and the beginning of the reason.
CASES = {
    "running": ("admitted", ""),  # recorded before the pods were ready
    "queued": ("queued", "waits for quota: 22 CPU more in pool cpu"),
    "preempted": (
        "preempted",
        "preempted for a run in queue nlp: prioritization in the ClusterQueue; waits for quota",
    ),
    "complete": ("complete", ""),
    "failed": ("failed", "jobset failed due to one or more job failures"),
    "stopped": ("stopped", ""),
    "suspended": ("suspended", ""),
    "deactivated": ("suspended", "deactivated: "),
}


def recorded(profile: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return objects by kind and case."""
    bodies = json.loads((FOLDER / f"{profile}.json").read_text())
    return {(one["object"]["kind"], one["case"]): one["object"] for one in bodies}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("profile", ["new", "middle", "old"])
def test_recorded_runs_have_their_state_and_reason(profile: str, case: str) -> None:
    bodies = recorded(profile)
    found = determine_live_run_state(bodies["TrainJob", case], bodies.get(("Workload", case)))
    word, begins = CASES[case]
    assert found.word in (word, "running" if case == "running" else word)
    assert found.word in RUN_STATES
    assert found.reason.startswith(begins), found
    assert found.since in (NOW, "")


def run(**conditions: str) -> dict[str, Any]:
    """Return a TrainJob in a queue."""
    listed = [
        {"type": name, "status": status, "lastTransitionTime": NOW} for name, status in conditions.items()
    ]
    metadata = {"name": "a", "creationTimestamp": NOW, "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}
    return {"metadata": metadata, "status": {"conditions": listed}}


def workload(*conditions: tuple[str, str, str, str], **more: Any) -> dict[str, Any]:
    """Return a Workload with conditions: type, status, reason, message."""
    names = ("type", "status", "reason", "message")
    listed = [dict(zip(names, one, strict=True)) | {"lastTransitionTime": NOW} for one in conditions]
    return {"metadata": {"creationTimestamp": NOW}, "spec": {}, "status": {"conditions": listed, **more}}


READY = {"jobsStatus": [{"name": "node", "ready": 1}]}
CHECK = {"admissionChecks": [{"name": "scale-up", "state": "Pending", "message": "asked for 4 nodes"}]}


@pytest.mark.parametrize(
    ("made", "word", "reason"),
    [
        (None, "queued", "Kueue has made no Workload of it yet"),
        (workload(), "queued", ""),
        (workload(("QuotaReserved", "True", "", "")), "queued", "has quota"),
        (
            workload(("QuotaReserved", "True", "", ""), **CHECK),
            "queued",
            "has quota, and waits for admission checks: scale-up is Pending (asked for 4 nodes)",
        ),
        (workload(("Admitted", "True", "", "")), "admitted", "Trainer has not started its pods yet"),
        (
            workload(
                ("QuotaReserved", "False", "Pending", "LocalQueue gpu doesn't exist"),
                ("Evicted", "True", "PodsReadyTimeout", "Exceeded the PodsReady timeout nlp/a"),
            ),
            "queued",
            "its pods were not ready in time, and it went back to the queue; LocalQueue gpu doesn't exist",
        ),
    ],
)
def test_waiting_runs_have_a_state_and_a_reason(made: dict[str, Any] | None, word: str, reason: str) -> None:
    found = determine_live_run_state(run(Suspended="True"), made)
    assert (found.word, found.reason) == (word, reason)


def test_a_run_is_running_once_its_pods_are_ready() -> None:
    started = run(Suspended="False")
    admitted = ("Admitted", "True", "", "")
    assert (
        determine_live_run_state(started, workload(admitted, ("PodsReady", "False", "", ""))).word
        == "admitted"
    )
    assert (
        determine_live_run_state(started, workload(admitted, ("PodsReady", "True", "", ""))).word == "running"
    )
    # If Kueue does not look at pods, the JobSet does, by way of the TrainJob.
    assert determine_live_run_state(started, workload(admitted)).word == "admitted"
    started["status"] |= READY
    assert determine_live_run_state(started, workload(admitted)).word == "running"
    assert determine_live_run_state(started, None).word == "running"


_NODE = "couldn't assign flavors to pod set node"
_SPOT = "8 more needed, insufficient unused quota for nvidia.com/gpu in flavor a100-spot, 16 more needed"
_SUM = "previously considered podsets requests (0) + current podset request (90)"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            f"{_NODE}: insufficient unused quota for nvidia.com/gpu in flavor a100, {_SPOT}",
            "waits for quota: 8 GPUs more in pool a100 or 16 GPUs more in pool a100-spot",
        ),
        (
            "couldn't assign flavors to pod set node: insufficient unused quota for memory in flavor cpu, 64Gi more needed",
            "waits for quota: 64 GiB of memory more in pool cpu",
        ),
        (
            f"{_NODE}: insufficient quota for cpu in flavor cpu, {_SUM} > maximum capacity (60)",
            "pool cpu can never give it more than 60 CPU",
        ),
        (
            'couldn\'t assign flavors to pod set node: topology "racks" allows to fit only 3 out of 4 pod(s)',
            "waits for nodes close together: only 3 of 4 pods fit into the topology 'racks'",
        ),
        (
            "couldn't assign flavors to pod set node: untolerated taint {spot true NoSchedule <nil>} in flavor spot",
            "pool spot has the taint spot, which the run does not tolerate",
        ),
        ("ClusterQueue nlp is inactive", "ClusterQueue nlp is inactive"),
        ("Pending the preemption of 2 workload(s)", "waits for runs that it preempts to end"),
        ("something\nnew", "Kueue says: something new"),
        ("", ""),
    ],
)
def test_messages_of_kueue_are_put_into_plain_words(message: str, words: str) -> None:
    assert explain_kueue_message(message) == words


def test_preemptions_and_evictions_are_explained() -> None:
    said = "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to reclamation within the cohort; preemptor path: /training/vision"
    assert (
        explain_kueue_preemption(said) == "preempted for a run in queue vision: reclamation within the cohort"
    )
    assert explain_kueue_preemption("odd") == "Kueue says: odd"
    assert explain_kueue_eviction("NodeFailures", "x") == "nodes under it failed"
    assert explain_kueue_eviction("Unheard", "of it") == "Kueue says: of it"


def pod(name: str, **status: Any) -> dict[str, Any]:
    """Return a pod with a status."""
    return {"metadata": {"name": name}, "status": {"phase": "Pending", **status}}


def scheduled(status: str, reason: str, message: str = "") -> list[dict[str, str]]:
    """Return the scheduler's condition of a pod."""
    return [{"type": "PodScheduled", "status": status, "reason": reason, "message": message}]


def test_waiting_pods_are_counted_by_reason() -> None:
    full = pod(
        "a", conditions=scheduled("False", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")
    )
    gated = pod("b", conditions=scheduled("False", "SchedulingGated"))
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image x"}}
    image = pod("c", containerStatuses=[{"name": "node", "state": waiting}])
    ready = pod("d", phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    assert explain_unready_live_pods([full, full, gated]) == (
        "2 of 3 pods: no node fits: 0/3 nodes are available: 3 Insufficient cpu.; "
        "1 of 3 pods: held back until Kueue has placed it"
    )
    assert (
        explain_unready_live_pods([image, ready])
        == "1 of 2 pods: its image cannot be pulled (Back-off pulling image x)"
    )
    assert explain_unready_live_pods([ready]) == ""
    assert explain_unready_live_pods([pod("e")]) == "1 of 1 pods: being created"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ({"exitCode": 199}, "a ended with 199: MPI did not reach all workers"),
        ({"exitCode": 137, "reason": "OOMKilled"}, "a ended with 137: out of memory"),
        ({"exitCode": 2}, "a ended with 2"),
        ({"exitCode": 0}, ""),
    ],
)
def test_failed_pods_are_explained(end: dict[str, Any], words: str) -> None:
    assert explain_failed_live_pods([pod("a", containerStatuses=[{"state": {"terminated": end}}])]) == words


def test_the_first_pod_that_failed_is_named() -> None:
    """Pods that were ended because of it come later."""
    ends = [("b", 143, "2026-01-01T00:00:09Z"), ("a", 3, "2026-01-01T00:00:01Z")]
    pods = [
        pod(name, containerStatuses=[{"state": {"terminated": {"exitCode": code, "finishedAt": when}}}])
        for name, code, when in ends
    ]
    assert explain_failed_live_pods(pods) == "a ended with 3"
