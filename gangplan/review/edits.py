"""What a change does to each run: it starts, is replaced, is retrained, ends, is retired, or leaves Git."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from gangplan.model.run_facts import RunFacts
from gangplan.records import dataclass
from gangplan.review.fields import ChangedField
from gangplan.review.sides import Side


class EditKind(StrEnum):
    """What happens to a job on a cluster, in the order of reports."""

    NEW = "new"
    CHANGED = "changed"
    RETRAINED = "retrained"
    RESUMED = "resumed"
    SCHEDULED = "scheduled"  # nothing starts with a sync: the next start of the schedule uses it
    WAITS = "waits"  # for others than before, unless it was created
    RELEASED = "released"  # it waits for nothing any more, and starts unless it was created
    STOPPED = "stopped"
    RETIRED = "retired"
    REMOVED = "removed"
    ARCHIVED = "archived"
    BROKEN = "broken"


# Edits by which a run starts with the sync, and so takes GPU-hours.
STARTING_EDITS = frozenset((EditKind.NEW, EditKind.CHANGED, EditKind.RETRAINED, EditKind.RESUMED))


@dataclass(frozen=True, slots=True)
class RunEdit:
    """What happens to a job on a cluster: its run before and after, None if it has none.

    `spec` is its file, after or else before. `run` is the one that is retired, if that is another. `waits`
    are the runs that must be complete before today's run is created; for a sweep, its name.

    A retrained run has `causes`, which are fields of shared files, each with its place; `why` names them in
    words, and `keeping` are the steps that keep the run before.
    """

    edit: EditKind
    spec: str
    before: RunFacts | None
    after: RunFacts | None
    run: str = ""
    waits: tuple[str, ...] = ()
    causes: tuple[ChangedField, ...] = ()
    why: str = ""
    keeping: tuple[str, ...] = ()

    @property
    def facts(self) -> RunFacts:
        """The run that the edit is about: today's, if there is one."""
        one = self.after or self.before
        assert one is not None
        return one

    @property
    def goes_on(self) -> str:
        """The run that continues next to the new one, unless it is over; empty without one."""
        old, new = self.before, self.after
        if old is None or not old.is_active or (new is not None and old.name in (new.name, *new.retired)):
            return ""
        if old.schedule:  # its runs are not in Git, and continue in any case
            return ""
        ended = (EditKind.CHANGED, EditKind.RETRAINED, EditKind.REMOVED, EditKind.SCHEDULED)
        return old.name if self.edit in ended else ""


def list_run_edits_between_sides(before: Side, after: Side) -> list[RunEdit]:
    """Return what happens to every job whose runs differ, by kind of edit, spec and cluster."""
    has_errors = any(one.is_error for one in after.findings)
    found = []
    for key in {**before.runs, **after.runs}:
        old, new = before.runs.get(key), after.runs.get(key)
        spec = (new or before.runs[key]).source
        if new is None and has_errors and spec in after.specs:  # what happens to it is not known
            found.append(RunEdit(EditKind.BROKEN, spec, old, None))
            continue
        edit, now = _classify_run_edit(old, new), _list_awaited_runs_of_side(after, new)
        if edit is None and _list_runs_until_created(before, old) != _list_runs_until_created(after, new):
            edit = EditKind.WAITS if now else EditKind.RELEASED
        if edit is not None:
            found.append(RunEdit(edit, spec, old, new, waits=now))
        found += [
            RunEdit(EditKind.RETIRED, spec, old, new, run) for run in _list_newly_retired_runs(old, new)
        ]
    order = list(EditKind)
    return sorted(found, key=lambda one: (order.index(one.edit), one.spec, one.facts.cluster, one.run))


def _classify_run_edit(old: RunFacts | None, new: RunFacts | None) -> EditKind | None:
    """Return what happens to the run that a spec describes; None if nothing does."""
    if new is None:
        return EditKind.REMOVED
    if new.schedule and new.is_active:
        was = old is not None and old.is_active and (old.name, old.schedule) == (new.name, new.schedule)
        return None if was else EditKind.SCHEDULED
    if old is None or (old.schedule and new.is_active):
        return {"active": EditKind.NEW, "archived": EditKind.ARCHIVED}.get(new.state, EditKind.STOPPED)
    if old.is_active and not new.is_active and old.name not in (new.name, *new.retired):
        return EditKind.REMOVED  # another run is stopped, and this one goes on
    if old.state != new.state:
        return {"active": EditKind.RESUMED, "archived": EditKind.ARCHIVED}.get(new.state, EditKind.STOPPED)
    if not new.is_active or old.name == new.name:
        return None
    return EditKind.RETRAINED if old.spec_hash == new.spec_hash else EditKind.CHANGED


def _list_awaited_runs_of_side(side: Side, run: RunFacts | None) -> tuple[str, ...]:
    """Return the runs that must be complete before another is created; for a sweep, its name."""
    if run is None or run.schedule or not (run.after and run.is_active):  # a schedule follows names, not runs
        return ()
    found = ((name, side.runs.get((run.cluster, run.team, name))) for name in run.after.split())
    return tuple(name if one is None else one.name for name, one in found)


def _list_runs_until_created(side: Side, run: RunFacts | None) -> list[str]:
    """Return the runs that must be complete before another is created, those of trials one by one."""
    found: list[str] = []
    if run is None:
        return found
    sweeps = {(one.team, one.name): file for file, one in side.workspace.sweeps.items()}
    for name in _list_awaited_runs_of_side(side, run):
        file = sweeps.get((run.team, name))
        trials = [one for one in side.runs.values() if (one.source, one.cluster) == (file, run.cluster)]
        found += sorted(one.name for one in trials if one.is_active) if file else [name]
    return found


def _list_newly_retired_runs(old: RunFacts | None, new: RunFacts | None) -> Iterator[str]:
    """Yield the runs that are listed as over and were not before."""
    known = old.retired if old else ()
    yield from (one for one in (new.retired if new else ()) if one not in known)
