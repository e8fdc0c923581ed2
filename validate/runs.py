"""What becomes of runs from one state of a cluster to the next: which start, end, go on or train again.

A run is identified by its TrainJob or MPIJob. What it takes at most is read from its objects: its nodes, the
GPUs of each, its deadline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gangplan.model import syncing
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.objects import Body
from gangplan.rules.lifecycle import RUN_REMOVED, RUN_REPLACED
from gangplan.rules.model import Severity
from gangplan.rules.runs import RUN_RESUMED, RUN_RETIRED, RUN_STARTED, RUN_STOPPED
from gangplan.validate.problems import Problem
from gangplan.validate.run_hours import Bodies, ObjectKey, describe_run_hours
from gangplan.validate.sweep_runs import (
    RunChange,
    build_replacement_problem,
    merge_run_changes_of_sweep_trials,
)

if TYPE_CHECKING:
    from gangplan.validate.held import TemplatedRun

JOB = "gangplan.dev/job"
STATE, STOPPED = "gangplan.dev/state", "stopped"
SPEC_HASH = "gangplan.dev/spec-hash"
# What helps as long as rendered/ still has the earlier run.
_KEEP = "To keep the old one, write keep: true in the spec, or keepRuns: true in the file of its cluster. "


def meta_of(body: Body) -> Body:
    """Return the metadata of an object."""
    metadata: Body = body.get("metadata") or {}
    return metadata


def is_record_object(body: Body) -> bool:
    """Return whether an object is the record of a run that is over in Git, and so starts nothing."""
    return bool((meta_of(body).get("annotations") or {}).get(STATE) == STOPPED)


def is_applied(run: Body) -> bool:
    """Return whether a TrainJob or an MPIJob is to run: engines apply it, and it is not a record."""
    return (meta_of(run).get("annotations") or {}).get(
        syncing.ARGO_HOOK
    ) != syncing.SKIP_HOOK and not is_record_object(run)


def compare_run_states_between_commits(old: Bodies, new: Bodies) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield what happens to each run, by the key of its TrainJob or MPIJob, or of its template."""
    held = (_load_templated_runs(old), _load_templated_runs(new))
    yield from merge_run_changes_of_sweep_trials(_compare_applied_runs(old, new, held), new)
    if any(held):
        from gangplan.validate.held import compare_templated_runs  # few workspaces have such runs

        yield from compare_templated_runs(*held, old, new)


def _load_templated_runs(bodies: Bodies) -> Mapping[ObjectKey, TemplatedRun]:
    """Return the runs that Git has only as templates."""
    if not any(key[0] == "ConfigMap" and key[2].endswith("-template") for key in bodies):
        return {}
    from gangplan.validate.held import find_templated_runs

    return find_templated_runs(bodies)


def _compare_applied_runs(
    old: Bodies, new: Bodies, held: tuple[Mapping[ObjectKey, TemplatedRun], Mapping[ObjectKey, TemplatedRun]]
) -> Iterator[RunChange]:
    """Yield what happens to runs that are in Git themselves; `held` are those that are only templates."""
    before = {key: body for key, body in old.items() if key[0] in BACKEND_BY_KIND}
    after = {key: body for key, body in new.items() if key[0] in BACKEND_BY_KIND}
    heirs = {
        read_run_job_key(key, body): key
        for key, body in after.items()
        if key not in before and is_applied(body)
    }
    later = {(key[1], one.job): one for key, one in held[1].items()}
    told = set()
    for key, body in before.items():
        if key in after:
            if problem := _report_changed_run_state(body, after[key], describe_run_hours(new, key)):
                yield RunChange(key, problem, body)
        elif is_record_object(body):
            message = f"the record of run {key[2]} is removed: the engine deletes it from the cluster"
            yield RunChange(key, Problem((), message, "Git's history keeps what it was.", RUN_RETIRED), body)
        elif is_applied(body) and key not in held[1]:
            heir = heirs.get(read_run_job_key(key, body))
            told.add(heir)
            template = later.get(read_run_job_key(key, body))
            problem = (
                _report_run_left_to_template(key, template)
                if template is not None
                else _report_removed_run(key, body, heir, new)
            )
            yield RunChange(
                key, problem, body, heir, _explain_run_replacement(body, new[heir]) if heir else ""
            )
    for key, body in after.items():
        if (
            key not in before
            and key not in told
            and key not in _find_waiting_run_keys(held[0])
            and is_applied(body)
        ):
            message = f"run {key[2]} is new: it trains when this is synced, {describe_run_hours(new, key)}"
            help = "Nothing needs to be done; gangplan plan shows what it asks for."
            yield RunChange(key, Problem((), message, help, RUN_STARTED), body)


def _find_waiting_run_keys(held: Mapping[ObjectKey, TemplatedRun]) -> set[ObjectKey]:
    return {key for key, one in held.items() if not one.starts}


def _report_run_left_to_template(key: ObjectKey, template: TemplatedRun) -> Problem:
    """Report a run whose job is now started by a schedule, or now waits for others under another name."""
    heir = f"schedule {template.job}" if template.starts else template.place[2].removesuffix("-template")
    message = f"run {key[2]} is replaced in Git by {heir}; if it is not over, it goes on"
    return build_replacement_problem(message, key[2], RUN_REPLACED)


def _report_changed_run_state(old: Body, new: Body, hours: str) -> Problem | None:
    """Return what happens to a run that keeps its name, or None if it goes on as it was."""
    name = meta_of(new).get("name")
    if is_applied(old) and is_record_object(new):
        message = f"run {name} is stopped: it ends whether it waits or trains (it could have taken {hours})"
        return Problem((), message, "When it is no longer needed: gangplan retire.", RUN_STOPPED)
    if is_record_object(old) and is_applied(new):
        message = f"run {name} was stopped and starts again, {hours}"
        return Problem(
            (),
            message,
            "Write state: stopped if it is to stay over; with Flux, raise run: to start it again.",
            RUN_RESUMED,
        )
    return None


def _report_removed_run(key: ObjectKey, body: Body, heir: ObjectKey | None, new: Bodies) -> Problem:
    """Report a run that leaves Git without having been stopped: it goes on unseen."""
    if heir is None:
        message = f"run {key[2]} is removed from Git but not stopped: if it is not over, it continues unseen"
        help = "Set state: stopped in its spec first, and remove the spec in a later change."
        return Problem((), message, help, RUN_REMOVED)
    is_same = is_same_spec(body, new[heir])
    message = (
        f"run {key[2]} is replaced in Git by {heir[2]} ({_explain_run_replacement(body, new[heir])},"
        f" {describe_run_hours(new, heir)}); if the old one is not over, both run"
    )
    problem = build_replacement_problem(message, key[2], RUN_REPLACED)
    return replace(problem, help=f"{_KEEP}{problem.help}", level=Severity.WARNING) if is_same else problem


def is_same_spec(old: Body, new: Body) -> bool:
    """Return whether two runs are of the same spec: then only the platform or gangplan changed."""
    return bool(_read_spec_hash(old)) and _read_spec_hash(old) == _read_spec_hash(new)


def _explain_run_replacement(old: Body, new: Body) -> str:
    if is_same_spec(old, new):
        return "the platform changed, not its spec, and the job is retrained"
    return "its spec changed"


def read_run_job_key(key: ObjectKey, body: Body) -> tuple[str, str]:
    """Return namespace and job of a run, which all runs of the job share."""
    return key[1], str((meta_of(body).get("labels") or {}).get(JOB, key[2]))


def _read_spec_hash(body: Body) -> str:
    return str((meta_of(body).get("annotations") or {}).get(SPEC_HASH, ""))
