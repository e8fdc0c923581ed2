"""Determine the state of a run, since when and why, from a TrainJob or MPIJob and its Workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.gitops.health import KINDS, MPIJOB, TRAINJOB, state_of
from gangplan.live.reasons import of_eviction, of_kueue, of_preemption
from gangplan.model.backend import BY_KIND
from gangplan.model.backend import TRAINJOB as TRAINER
from gangplan.records import dataclass

Body = dict[str, Any]
#: States in the order in which people look at them. `missing`: in Git, but not on the cluster; `waiting`:
#: other runs must complete before it is created; `scheduled`: a schedule creates the runs.
STATES = (
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


_BY_NAME = {one.name: one for one in KINDS}


@dataclass(frozen=True, slots=True)
class State:
    """A word of STATES, since when (RFC 3339), and the reason if there is one."""

    word: str
    since: str
    reason: str = ""


def state(run: Body, workload: Body | None) -> State:
    """Return the state of a run.

    The TrainJob or MPIJob decides how it ended; before that the Workload decides, if Kueue created one.
    """
    row = state_of(_BY_NAME.get(str(run.get("kind")), TRAINJOB), run)
    created = str(run["metadata"].get("creationTimestamp") or "")
    if row.word in ("failed", "complete"):
        one = condition(run, row.detail) or {}
        said = str(one.get("message") or "") if row.word == "failed" else ""
        return State(row.word, _time(one) or created, said)
    if row.word == "stopped":
        return State("stopped", created)
    if workload is not None:
        return _of_workload(run, workload, row.word, created)
    since = _time(condition(run, "Suspended") or {}) or created
    if row.word == "running":
        return State("running" if _has_ready_jobs(run) else "admitted", since)
    if row.word == "queued":
        return State("queued", since, "Kueue has made no Workload of it yet")
    return State(row.word, since)


def _of_workload(run: Body, workload: Body, word: str, created: str) -> State:
    admitted, quota = condition(workload, "Admitted"), condition(workload, "QuotaReserved")
    if (workload.get("spec") or {}).get("active") is False:
        off = condition(workload, "Evicted") or quota or {}
        return State("suspended", _time(off) or created, of_kueue("The workload is deactivated"))
    if _is_true(admitted):
        if word in ("queued", "preempted", "new"):  # admitted by Kueue, but the controller has not acted yet
            return State("admitted", _time(admitted), f"{_controller(run)} has not started its pods yet")
        ready = condition(workload, "PodsReady")
        is_running = _is_true(ready) if ready is not None else _has_ready_jobs(run)
        if not is_running:
            return State("admitted", _time(admitted))
        return State("running", _time(ready) or _time(admitted))
    if _is_true(quota):
        return State("queued", _time(quota), _checks(workload))
    why = of_kueue(str((quota or {}).get("message") or ""))
    evicted = condition(workload, "Evicted")
    if evicted is not None and _is_true(evicted):
        reason, said = str(evicted.get("reason") or ""), str(evicted.get("message") or "")
        if reason == "Preempted":
            return State("preempted", _time(evicted), _joined(of_preemption(said), why))
        return State("queued", _time(evicted), _joined(of_eviction(reason, said), why))
    return State("queued", str(workload["metadata"].get("creationTimestamp") or created), why)


def _joined(*parts: str) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))


def _checks(workload: Body) -> str:
    """Return the admission checks that are not ready yet (Kueue, `status.admissionChecks`)."""
    waiting = [
        f"{one['name']} is {one['state']}{f' ({text})' if (text := str(one.get('message') or '')) else ''}"
        for one in (workload.get("status") or {}).get("admissionChecks") or ()
        if one.get("state") != "Ready"
    ]
    return f"has quota, and waits for admission checks: {', '.join(waiting)}" if waiting else "has quota"


def _controller(run: Body) -> str:
    return BY_KIND.get(str(run.get("kind")), TRAINER).controller


def _has_ready_jobs(run: Body) -> bool:
    if run.get("kind") == MPIJOB.name:
        return _is_true(condition(run, "Running"))
    jobs = (run.get("status") or {}).get("jobsStatus") or ()
    return any(one.get("ready") or one.get("succeeded") for one in jobs)


def condition(body: Mapping[str, Any], kind: str) -> Body | None:
    """Return the entry of `status.conditions` with a type, or None."""
    found = (body.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == kind), None)


def _is_true(one: Body | None) -> bool:
    return one is not None and one["status"] == "True"


def _time(one: Body | None) -> str:
    return str((one or {}).get("lastTransitionTime") or "")
