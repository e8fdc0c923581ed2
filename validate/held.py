"""What changes, from one Git state to the next, for runs that the cluster creates.

Git has a template of such a run in a ConfigMap. A CronJob creates dated runs from it, or a Job creates one
run when the runs before it are complete; with a pipeline engine there is neither. A sync starts none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangplan.model import syncing
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.after import RUN_WAITS
from gangplan.rules.lifecycle import RUN_REMOVED
from gangplan.rules.runs import RUN_STARTED, RUN_STOPPED
from gangplan.rules.schedules import RUN_SCHEDULED
from gangplan.source import ManifestError, load_objects
from gangplan.validate.problems import Problem
from gangplan.validate.run_hours import Bodies, ObjectKey, describe_run_hours
from gangplan.validate.sweep_runs import build_replacement_problem

TEMPLATE, KEY, RUN = "-template", "run.yaml", "gangplan.dev/run"
# Number of words in the script's args before the names of the runs to wait for.
_FIRST = 4
_DONE = "Nothing needs to be done; gangplan plan shows what it asks for."


@dataclass(frozen=True, slots=True)
class TemplatedRun:
    """A run that Git has as a template: the object at `place`, its job, and what creates it.

    `starts` is cron and zone of a schedule, else empty. `waits` are the runs that it comes after, if a Job
    waits for them.
    """

    place: ObjectKey
    job: str
    run: Body
    starts: str = ""
    is_suspended: bool = False
    waits: tuple[str, ...] = ()

    @property
    def until(self) -> str:
        """When the run is created: `when features-0a1b2c3d is complete`."""
        are = "is" if len(self.waits) == 1 else "are"
        return f"when {' and '.join(self.waits)} {are} complete" if self.waits else "by its pipeline"


def find_templated_runs(bodies: Bodies) -> dict[ObjectKey, TemplatedRun]:
    """Return the templates of runs, by the keys of the runs; for a schedule, by the key of its base run."""
    found: dict[ObjectKey, TemplatedRun] = {}
    for place, body in bodies.items():
        data = body.get("data")
        if place[0] != "ConfigMap" or not isinstance(data, dict) or set(data) != {KEY}:
            continue
        run = _find_templated_run_in_object_text(str(data[KEY]))
        metadata = body.get("metadata") or {}
        notes = metadata.get("annotations") or {}
        if run is None or "gangplan.dev/state" in notes or syncing.ARGO_HOOK in notes:
            continue  # over, or never applied
        name = place[2].removesuffix(TEMPLATE)
        job = str((metadata.get("labels") or {}).get("gangplan.dev/job", name))
        found[run["kind"], place[1], name] = TemplatedRun(place, job, run)
    return (
        {key: _add_creator_of_templated_run(key, one, bodies) for key, one in found.items()}
        if found
        else found
    )


def _find_templated_run_in_object_text(text: str) -> Body | None:
    try:
        bodies = load_objects(text)
    except ManifestError:
        return None
    return next((body for body in bodies if body.get("kind") in BACKEND_BY_KIND), None)


def _add_creator_of_templated_run(key: ObjectKey, held: TemplatedRun, bodies: Bodies) -> TemplatedRun:
    for (kind, namespace, _), body in bodies.items():
        labels = (body.get("metadata") or {}).get("labels") or {}
        if kind not in ("CronJob", "Job") or namespace != key[1] or labels.get(RUN) != key[2]:
            continue
        spec = body["spec"]
        if kind == "CronJob":
            starts = f"{spec['schedule']} in {spec['timeZone']}"
            return TemplatedRun(held.place, held.job, held.run, starts, bool(spec.get("suspend")))
        (container,) = spec["template"]["spec"]["containers"]
        return TemplatedRun(held.place, held.job, held.run, waits=tuple(container["args"][_FIRST:]))
    return held


def compare_templated_runs(
    before: Mapping[ObjectKey, TemplatedRun],
    after: Mapping[ObjectKey, TemplatedRun],
    old: Bodies,
    new: Bodies,
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield what happens to runs that exist only as templates, by the keys of the templates.

    `old` and `new` are all objects before and after.
    """
    bodies = {**new, **{key: one.run for key, one in after.items()}}
    heirs = {
        (key[1], str((body.get("metadata") or {}).get("labels", {}).get("gangplan.dev/job", ""))): key
        for key, body in new.items()
        if key[0] in BACKEND_BY_KIND and key not in old
    }
    earlier = {(key[1], one.job): (key, one) for key, one in before.items()}
    for key, one in after.items():
        last = earlier.pop((key[1], one.job), None)
        hours = describe_run_hours(bodies, key)
        told = (_describe_schedule_change if one.starts else _describe_waiting_run_change)(
            key, one, last, old, hours
        )
        if told is not None:
            yield one.place, told
    for key, one in earlier.values():
        yield from _describe_removed_run_template(key, one, heirs.get((key[1], one.job)), new)


def _describe_schedule_change(
    key: ObjectKey, one: TemplatedRun, last: tuple[ObjectKey, TemplatedRun] | None, old: Bodies, hours: str
) -> Problem | None:
    """Return what is new about a schedule, or None if nothing is."""
    goes = f"; run {key[2]}, if it is not over, goes on next to them" if key in old else ""
    if last is not None and last[1].starts:
        if one.is_suspended:
            return None if last[1].is_suspended else _describe_suspended_schedule(one)
        if last[0] == key and (last[1].starts, last[1].is_suspended) == (one.starts, False):
            return None
        how = "starts again" if last[1].is_suspended else "changes"
        of = f"schedule {one.job} {how}: from the next start on, it creates runs of {key[2]}"
        words = f"{of} ({one.starts}), each {hours}"
        if last[0] != key:
            words += f"; a run of {last[0][2]} that is there goes on as it is"
    elif one.is_suspended:
        return None
    else:
        words = f"schedule {one.job} is new: each start creates a run ({one.starts}), {hours}{goes}"
    return Problem((), words, "Nothing needs to be done; gangplan plan shows the next starts.", RUN_SCHEDULED)


def _describe_suspended_schedule(one: TemplatedRun) -> Problem:
    words = (
        f"schedule {one.job} is suspended: it creates no more runs, and one that trains goes on to its end"
    )
    return Problem((), words, "To end that run, delete it with kubectl: no engine tracks it.", RUN_SCHEDULED)


def _describe_waiting_run_change(
    key: ObjectKey, one: TemplatedRun, last: tuple[ObjectKey, TemplatedRun] | None, old: Bodies, hours: str
) -> Problem | None:
    """Return what is new about a waiting run, or None if nothing is."""
    name = key[2]
    if key in old:  # an engine applied it
        words = f"run {name} comes after others from now on: unless it is there, it is created {one.until}"
    elif last is None or last[1].starts:
        words = f"run {name} is new: it is created {one.until}, {hours}"
    elif last[0] == key and last[1].waits == one.waits:
        return None
    elif last[0] == key:
        words = f"run {name} waits for other runs: unless it is there, it is created {one.until}, {hours}"
    else:
        words = (
            f"run {last[0][2]} is replaced in Git by {name}, which is created {one.until}, {hours};"
            " if the old one was created and is not over, both run"
        )
        return build_replacement_problem(words, last[0][2], RUN_WAITS)
    return Problem((), words, _DONE, RUN_WAITS)


def _describe_removed_run_template(
    key: ObjectKey, one: TemplatedRun, heir: ObjectKey | None, new: Bodies
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield what becomes of a template that is no longer in Git, when its job has no other template."""
    run = new.get(key)
    if one.starts:
        then = f"Git has run {heir[2]} instead" if heir is not None else "it creates no more runs"
        words = f"schedule {one.job} is removed: {then}, and those that it created stay"
        help = "gangplan status shows which are not over; to end one, delete it with kubectl."
        yield one.place, Problem((), words, help, RUN_SCHEDULED)
    elif run is None and heir is not None:
        words = f"run {key[2]} is replaced in Git by {heir[2]}; if it was created and is not over, both run"
        yield one.place, build_replacement_problem(words, key[2], RUN_WAITS)
    elif run is None:
        words = (
            f"run {key[2]} is removed from Git but not stopped: it is no longer created,"
            " and if it exists and is not over, it continues unseen"
        )
        help = "Set state: stopped in its spec first, and remove the spec in a later change."
        yield one.place, Problem((), words, help, RUN_REMOVED)
    elif "gangplan.dev/state" in (run["metadata"].get("annotations") or {}):
        words = (
            f"run {key[2]} is stopped: it is not created; if it exists, it ends whether it waits or trains"
        )
        yield key, Problem((), words, "When it is no longer needed: gangplan retire.", RUN_STOPPED)
    else:
        hours = describe_run_hours(new, key)
        words = f"run {key[2]} waits no more: unless it is there, it trains when this is synced, {hours}"
        yield key, Problem((), words, _DONE, RUN_STARTED)
