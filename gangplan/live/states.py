"""Determine the state of a run, since when and why, from a TrainJob or MPIJob and its Workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.gitops.health import HEALTH_KINDS, MPIJOB_HEALTH, TRAINJOB_HEALTH, find_health_state
from gangplan.live.reasons import explain_kueue_eviction, explain_kueue_message, explain_kueue_preemption
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.model.backend import TRAINJOB as TRAINER
from gangplan.objects import Body
from gangplan.records import dataclass

#: States in the order in which people look at them. `missing`: in Git, but not on the cluster; `waiting`:
#: other runs must complete before it is created; `scheduled`: a schedule creates the runs.
RUN_STATES = (
    "failed",
    "missing",
    "preempted",
    "suspended",
    "queued",
    "waiting",
    "admitted",
    "running",
    "new",
    "scheduled",
    "complete",
    "stopped",
)


_BY_NAME = {one.name: one for one in HEALTH_KINDS}


@dataclass(frozen=True, slots=True)
class RunState:
    """A word of STATES, since when (RFC 3339), and the reason if there is one."""

    word: str
    since: str
    reason: str = ""


def determine_live_run_state(run: Body, workload: Body | None) -> RunState:
    """Return the state of a run.

    The TrainJob or MPIJob decides how it ended; before that the Workload decides, if Kueue created one.
    """
    row = find_health_state(_BY_NAME.get(str(run.get("kind")), TRAINJOB_HEALTH), run)
    created = str(run["metadata"].get("creationTimestamp") or "")
    if row.word in ("failed", "complete"):
        one = find_status_condition(run, row.detail) or {}
        said = str(one.get("message") or "") if row.word == "failed" else ""
        return RunState(row.word, _read_transition_time(one) or created, said)
    if row.word == "stopped":
        return RunState("stopped", created)
    if workload is not None:
        return _find_live_workload_state(run, workload, row.word, created)
    since = _read_transition_time(find_status_condition(run, "Suspended") or {}) or created
    if row.word == "running":
        return RunState("running" if _has_ready_jobs(run) else "admitted", since)
    if row.word == "queued":
        return RunState("queued", since, "Kueue has made no Workload of it yet")
    return RunState(row.word, since)


def _find_live_workload_state(run: Body, workload: Body, word: str, created: str) -> RunState:
    admitted, quota = (
        find_status_condition(workload, "Admitted"),
        find_status_condition(workload, "QuotaReserved"),
    )
    if (workload.get("spec") or {}).get("active") is False:
        off = find_status_condition(workload, "Evicted") or quota or {}
        return RunState(
            "suspended",
            _read_transition_time(off) or created,
            explain_kueue_message("The workload is deactivated"),
        )
    if _is_true(admitted):
        if word in ("queued", "preempted", "new"):  # admitted by Kueue, but the controller has not acted yet
            return RunState(
                "admitted",
                _read_transition_time(admitted),
                f"{_find_run_controller_name(run)} has not started its pods yet",
            )
        ready = find_status_condition(workload, "PodsReady")
        is_running = _is_true(ready) if ready is not None else _has_ready_jobs(run)
        if not is_running:
            return RunState("admitted", _read_transition_time(admitted))
        return RunState("running", _read_transition_time(ready) or _read_transition_time(admitted))
    if _is_true(quota):
        return RunState("queued", _read_transition_time(quota), _describe_pending_admission_checks(workload))
    why = explain_kueue_message(str((quota or {}).get("message") or ""))
    evicted = find_status_condition(workload, "Evicted")
    if evicted is not None and _is_true(evicted):
        reason, said = str(evicted.get("reason") or ""), str(evicted.get("message") or "")
        if reason == "Preempted":
            return RunState(
                "preempted",
                _read_transition_time(evicted),
                _join_distinct_reasons(explain_kueue_preemption(said), why),
            )
        return RunState(
            "queued",
            _read_transition_time(evicted),
            _join_distinct_reasons(explain_kueue_eviction(reason, said), why),
        )
    return RunState("queued", str(workload["metadata"].get("creationTimestamp") or created), why)


def _join_distinct_reasons(*parts: str) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))


def _describe_pending_admission_checks(workload: Body) -> str:
    """Return the admission checks that are not ready yet (Kueue, `status.admissionChecks`)."""
    waiting = [
        f"{one['name']} is {one['state']}{f' ({text})' if (text := str(one.get('message') or '')) else ''}"
        for one in (workload.get("status") or {}).get("admissionChecks") or ()
        if one.get("state") != "Ready"
    ]
    return f"has quota, and waits for admission checks: {', '.join(waiting)}" if waiting else "has quota"


def _find_run_controller_name(run: Body) -> str:
    return BACKEND_BY_KIND.get(str(run.get("kind")), TRAINER).controller


def _has_ready_jobs(run: Body) -> bool:
    if run.get("kind") == MPIJOB_HEALTH.name:
        return _is_true(find_status_condition(run, "Running"))
    jobs = (run.get("status") or {}).get("jobsStatus") or ()
    return any(one.get("ready") or one.get("succeeded") for one in jobs)


def find_status_condition(body: Mapping[str, Any], kind: str) -> Body | None:
    """Return the entry of `status.conditions` with a type, or None."""
    found = (body.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == kind), None)


def _is_true(one: Body | None) -> bool:
    return one is not None and one["status"] == "True"


def _read_transition_time(one: Body | None) -> str:
    return str((one or {}).get("lastTransitionTime") or "")
