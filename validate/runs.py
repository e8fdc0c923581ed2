"""What becomes of runs from one state of a cluster to the next: which start, end, go on or train again.

A run is identified by its TrainJob or MPIJob. What it takes at most is read from its objects: its nodes, the
GPUs of each, its deadline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gangplan.model import syncing
from gangplan.model.backend import BY_KIND
from gangplan.rules.lifecycle import RUN_REMOVED, RUN_REPLACED
from gangplan.rules.model import Severity
from gangplan.rules.runs import RUN_RESUMED, RUN_RETIRED, RUN_STARTED, RUN_STOPPED
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.problems import Problem
from gangplan.validate.run_hours import Bodies, Key, hours_of, sum_of
from gangplan.validate.sweep_runs import Change, together

if TYPE_CHECKING:
    from gangplan.validate.held import Held

JOB = "gangplan.dev/job"
STATE, STOPPED = "gangplan.dev/state", "stopped"
SPEC_HASH = "gangplan.dev/spec-hash"


def meta_of(body: Body) -> Body:
    """Return the metadata of an object."""
    metadata: Body = body.get("metadata") or {}
    return metadata


def is_record(body: Body) -> bool:
    """Return whether an object is the record of a run that is over in Git, and so starts nothing."""
    return bool((meta_of(body).get("annotations") or {}).get(STATE) == STOPPED)


def is_applied(run: Body) -> bool:
    """Return whether a TrainJob or an MPIJob is to run: engines apply it, and it is not a record."""
    return (meta_of(run).get("annotations") or {}).get(syncing.HOOK) != syncing.SKIPPED and not is_record(run)


def changes_of_runs(old: Bodies, new: Bodies) -> Iterator[tuple[Key, Problem]]:
    """Yield what happens to each run, by the key of its TrainJob or MPIJob, or of its template."""
    held = (_held(old), _held(new))
    yield from together(_changes(old, new, held), new)
    if any(held):
        from gangplan.validate.held import changes_of_held  # few workspaces have such runs

        yield from changes_of_held(*held, old, new)


def _held(bodies: Bodies) -> Mapping[Key, Held]:
    """Return the runs that Git has only as templates."""
    if not any(key[0] == "ConfigMap" and key[2].endswith("-template") for key in bodies):
        return {}
    from gangplan.validate.held import held_in

    return held_in(bodies)


def _changes(
    old: Bodies, new: Bodies, held: tuple[Mapping[Key, Held], Mapping[Key, Held]]
) -> Iterator[Change]:
    """Yield what happens to runs that are in Git themselves; `held` are those that are only templates."""
    before = {key: body for key, body in old.items() if key[0] in BY_KIND}
    after = {key: body for key, body in new.items() if key[0] in BY_KIND}
    heirs = {_job(key, body): key for key, body in after.items() if key not in before and is_applied(body)}
    later = {(key[1], one.job): one for key, one in held[1].items()}
    total = _total(before, after, heirs, new)
    told = set()
    for key, body in before.items():
        if key in after:
            if problem := _in_place(body, after[key], hours_of(new, key)):
                yield Change(key, problem, body)
        elif is_record(body):
            message = f"the record of run {key[2]} is removed: the engine deletes it from the cluster"
            yield Change(key, Problem((), message, "Git's history keeps what it was.", RUN_RETIRED), body)
        elif is_applied(body) and key not in held[1]:
            heir = heirs.get(_job(key, body))
            told.add(heir)
            template = later.get(_job(key, body))
            problem = _left_to(key, template) if template is not None else _gone(key, body, heir, new)
            if total and problem.level is not None:  # once, with the first run that is retrained
                problem, total = replace(problem, message=f"{problem.message}; {total}"), ""
            yield Change(key, problem, body, heir, _why(body, new[heir]) if heir else "")
    for key, body in after.items():
        if key not in before and key not in told and key not in _waiting(held[0]) and is_applied(body):
            message = f"run {key[2]} is new: it trains when this is synced, {hours_of(new, key)}"
            help = "Nothing needs to be done; gangplan plan shows what it asks for."
            yield Change(key, Problem((), message, help, RUN_STARTED), body)


def _waiting(held: Mapping[Key, Held]) -> set[Key]:
    return {key for key, one in held.items() if not one.starts}


def _left_to(key: Key, template: Held) -> Problem:
    """Report a run whose job is now started by a schedule, or now waits for others under another name."""
    heir = f"schedule {template.job}" if template.starts else template.place[2].removesuffix("-template")
    message = f"run {key[2]} is replaced in Git by {heir}; if it is not over, it goes on"
    return Problem((), message, f"To end it, add to the spec: retired: [{key[2]}].", RUN_REPLACED)


def _in_place(old: Body, new: Body, hours: str) -> Problem | None:
    """Return what happens to a run that keeps its name, or None if it goes on as it was."""
    name = meta_of(new).get("name")
    if is_applied(old) and is_record(new):
        message = f"run {name} is stopped: it ends whether it waits or trains (it could have taken {hours})"
        return Problem((), message, "When it is no longer needed: gangplan retire.", RUN_STOPPED)
    if is_record(old) and is_applied(new):
        message = f"run {name} was stopped and starts again, {hours}"
        return Problem(
            (),
            message,
            "Write state: stopped if it is to stay over; with Flux, raise run: to start it again.",
            RUN_RESUMED,
        )
    return None


def _gone(key: Key, body: Body, heir: Key | None, new: Bodies) -> Problem:
    """Report a run that leaves Git without having been stopped: it goes on unseen."""
    if heir is None:
        message = f"run {key[2]} is removed from Git but not stopped: if it is not over, it continues unseen"
        help = "Set state: stopped in its spec first, and remove the spec in a later change."
        return Problem((), message, help, RUN_REMOVED)
    is_same = _is_same(body, new[heir])
    message = (
        f"run {key[2]} is replaced in Git by {heir[2]} ({_why(body, new[heir])}, {hours_of(new, heir)});"
        " if the old one is not over, both run"
    )
    help = f"To end the old one, add to the spec: retired: [{key[2]}]."
    if is_same:
        help = f"To keep the old one, write keep: true in the spec or render with --keep-runs. {help}"
    return Problem((), message, help, RUN_REPLACED, level=Severity.WARNING if is_same else None)


def _is_same(old: Body, new: Body) -> bool:
    return bool(_spec_hash(old)) and _spec_hash(old) == _spec_hash(new)


def _why(old: Body, new: Body) -> str:
    if _is_same(old, new):
        return "the platform changed, not its spec, and the job is retrained"
    return "its spec changed"


def _job(key: Key, body: Body) -> tuple[str, str]:
    return key[1], str((meta_of(body).get("labels") or {}).get(JOB, key[2]))


def _spec_hash(body: Body) -> str:
    return str((meta_of(body).get("annotations") or {}).get(SPEC_HASH, ""))


def _total(before: Bodies, after: Bodies, heirs: Mapping[tuple[str, str], Key], new: Bodies) -> str:
    """Describe what all runs that are retrained take together; "" for at most one run."""
    again = [
        heir
        for key, body in before.items()
        if key not in after and is_applied(body) and (heir := heirs.get(_job(key, body)))
        if _is_same(body, new[heir])
    ]
    return f"all {len(again)} runs that are retrained take {sum_of(new, again)}" if len(again) > 1 else ""
