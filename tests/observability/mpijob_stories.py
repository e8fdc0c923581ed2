"""Runs that are MPIJobs, as kube-state-metrics sees them: the launcher's Job, and the workers' pods.

The operator (v0.8.2) creates the launcher's Job at once, suspended, and all workers when the run is admitted.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.observability.stories import (
    NAMED,
    NS,
    RUN,
    WHO,
    Series,
    Story,
    alert,
    count,
    firing,
    series,
    story,
)

NAME = f'namespace="{NS}",job_name="{RUN}-launcher"'


def launcher(at: Mapping[str, str]) -> Series:
    """Return the series of the launcher's Job, and of its pod from minute 10 on."""
    owner = f'{NAME},owner_kind="MPIJob",owner_name="{RUN}",owner_is_controller="true"'
    found = series("kube_job_owner", owner, "1x3000") | series("kube_job_spec_parallelism", NAME, "1x3000")
    for metric, values in at.items():
        condition = ',condition="true"' if metric in ("kube_job_failed", "kube_job_complete") else ""
        found |= series(metric, NAME + condition, values)
    pod = f'namespace="{NS}",pod="{RUN}-launcher-abcde"'
    found |= series("kube_pod_owner", f'{pod},owner_kind="Job",owner_name="{RUN}-launcher"', "_x10 1x3000")
    return found | series("kube_pod_status_ready", f'{pod},condition="true"', "_x10 1x3000")


def worker(number: int, ready: str) -> Series:
    """Return the series of a pod that the MPIJob itself owns."""
    pod = f'namespace="{NS}",pod="{RUN}-worker-{number}"'
    owner = series("kube_pod_owner", f'{pod},owner_kind="MPIJob",owner_name="{RUN}"', "_x10 1x3000")
    restarts = series("kube_pod_container_status_restarts_total", f'{pod},container="node"', "_x10 1x3000")
    return owner | restarts | series("kube_pod_status_ready", f'{pod},condition="true"', ready)


def everything() -> list[Story]:
    """Return stories from the queue to the end, with the alerts on the way."""
    begun = {
        "kube_job_created": "0x3000",
        "kube_job_status_start_time": "_x10 600x3000",
        "kube_job_status_active": "0x9 1x3000",
        "kube_job_spec_active_deadline_seconds": "3600x3000",
    }
    ended = begun | {
        "kube_job_status_active": "0x9 1x19 0x3000",
        "kube_job_complete": "_x30 1x3000",
        "kube_job_status_completion_time": "_x30 1800x3000",
    }
    failed = begun | {"kube_job_status_active": "0x9 1x10 0x3000", "kube_job_failed": "0x20 1x3000"}
    workers = worker(0, "_x10 1x3000") | worker(1, "_x10 0x4 1x3000")
    said = "mpijob_count{team='team-cv'} == 1"
    numbers = {'{worker_id="0"}': 1.0, '{worker_id="1"}': 1.0, '{worker_id="launcher"}': 1.0}
    return [
        story(
            "an MPIJob is pending, starting, running, succeeded",
            launcher(ended) | workers,
            (8, said, {count("pending"): 1}),
            (13, said, {count("starting"): 1}),
            (20, said, {count("running"): 1}),
            (20, "count by (worker_id) (gangplan_run_pod)", numbers),
            (20, "gangplan_run_held", {}),  # workers restart in place, so no pod is kept
            (33, said, {count("succeeded"): 1}),
            (40, "mpijob_duration_seconds", {f"mpijob_duration_seconds{{{NAMED}}}": 1200}),
        ),
        story(
            "an MPIJob that has failed",
            launcher(failed) | workers,
            (15, alert("GangplanRunFailed"), {}),
            (25, alert("GangplanRunFailed"), firing("GangplanRunFailed", "warning", WHO)),
            (25, "mpijob_count{state='failed',team='team-cv'}", {count("failed"): 1}),
        ),
        story(
            "an MPIJob has the deadline that it states",
            launcher(begun) | workers,
            (20, "gangplan_run_deadline_seconds", {f"gangplan_run_deadline_seconds{{{WHO}}}": 3600}),
            (20, "gangplan_run_remaining_seconds", {f"gangplan_run_remaining_seconds{{{WHO}}}": 3000}),
        ),
    ]
