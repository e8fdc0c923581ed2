"""`gangplan retire`: runs that are over, and the next step of each on its way out of the cluster.

A run leaves in two changes (decision 0024): it becomes a record, by `state: stopped` or, for an earlier run
of its job, by its name in `retired:`; and once the record is committed, the spec or the name is removed.
Which runs are over is read from Git's history of `rendered/`, from the statuses that a cluster reported, or
from their age.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from gangplan.gitops.record import STATE_ANNOTATION, STOPPED_STATE
from gangplan.model.statuses import RunStatus
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.retire_choice import RunSelection
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.tools.git import FileEvent, history_of, read_files_at, read_texts_removed_from_git
from gangplan.workspace import RENDERED

_RUN_FILE = re.compile(r"([^/]+)/runs/([^/]+)/((.+)-[0-9a-f]{8})\.yaml")
_RECORD = re.compile(rf"^    {re.escape(STATE_ANNOTATION)}: {STOPPED_STATE}$", re.MULTILINE)
# The most that a spec may list; the rest follows in later changes.
MOST = 64
DAY_S = 24 * 3600
# Why a run that is over stays: a run that waits for a stopped one is never created.
WAITED_MESSAGE = "{}, but {} comes after it and is not known to be over"

EarlierRunNote = tuple[
    str, str, str
]  # a run that is no longer described: its name, its cluster, why it is over


@dataclass(frozen=True, slots=True)
class Retirement:
    """One step of one run: `record` makes it a record, `remove` removes the record, `left` does nothing.

    `delete` is for people with kubectl: a run that a schedule made is not in Git but in `namespace`.
    """

    action: str
    cluster: str
    team: str
    run: str
    source: str
    why: str
    namespace: str = ""


@dataclass(slots=True)
class SpecChange:
    """A change of one spec: another state, another list of runs that are over, or its removal.

    `files` are earlier runs, by their paths in `rendered/`, that come back from Git to be made records.
    """

    source: str
    state: str | None = None
    retired: tuple[str, ...] = ()
    is_removed: bool = False
    files: dict[str, str] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of a sweep: its fields with names


@dataclass(slots=True)
class Retirements:
    """All steps, and the changes of specs that they amount to, by file."""

    steps: list[Retirement] = field(default_factory=list)
    changes: dict[str, SpecChange] = field(default_factory=dict)


@dataclass(slots=True)
class GitPast:
    """What Git knows: the files of `rendered/` at HEAD, and when each file that ever existed was added and
    removed."""

    present: Mapping[str, str]
    events: Mapping[str, Sequence[FileEvent]]
    removed: dict[str, str] = field(default_factory=dict)  # texts of runs that left Git, by their paths

    def is_record(self, path: str) -> bool:
        """Return whether a file is committed as the record of a run."""
        return bool(_RECORD.search(self.present.get(path, "")))

    def added_s(self, path: str) -> int | None:
        """Return when Git got a run last, in seconds since 1970; None if it never did."""
        return next((event.time_s for event in self.events.get(path, ()) if event.is_added), None)

    def first_added_s(self, path: str) -> int | None:
        """Return when Git got a run first: the file of an earlier one comes back to be made a record."""
        return min((event.time_s for event in self.events.get(path, ()) if event.is_added), default=None)


def plan_retirements(request: Request, result: Result, chosen: RunSelection) -> Retirements:
    """Return the next step of every run that is over. Raises UserError and ToolError as
    `tools.git.history_of`."""
    past, found = read_git_past(request), Retirements()
    jobs: dict[str, list[PlannedRun]] = {}
    for run in (one for one in result.runs if one.unit.job.trial is None):
        jobs.setdefault(run.unit.job.source, []).append(run)
    earlier = find_earlier_runs_to_retire(request, past, jobs, chosen)
    waited = {}
    if any(run.unit.job.after for run in result.runs):
        from gangplan.pipeline.retire_after import find_active_followers_by_spec  # few runs come after others

        waited = find_active_followers_by_spec(
            result.runs, lambda run: explain_why_run_is_over(run, past, chosen)
        )
    for source in sorted(jobs):
        _add_job_retirements(
            source, jobs[source], earlier.get(source, ()), past, chosen, found, waited.get(source, "")
        )
    return found


def read_git_past(request: Request) -> GitPast:
    """Read what Git knows. Raises UserError and ToolError as `tools.git.history_of`."""
    events = history_of(request.root, RENDERED)
    texts = read_files_at(request.root, "HEAD", RENDERED)
    return GitPast({path: data.decode("utf-8", "replace") for path, data in texts.items()}, events)


def _add_job_retirements(
    source: str,
    runs: Sequence[PlannedRun],
    earlier: Iterable[tuple[str, str, str]],
    past: GitPast,
    chosen: RunSelection,
    found: Retirements,
    waits: str,
) -> None:
    """Add the steps of the runs of one spec; `earlier` are runs that it no longer describes.

    `waits` is a job that waits for the run that the spec describes, so that this one must stay; empty without
    one.
    """
    job = runs[0].unit.job
    change = SpecChange(source)
    gone = []
    for name in job.retired:
        where = [run for run in runs if is_earlier_run_recorded(run, name, past, chosen)]
        if where:
            gone.append(name)
            why = "its record is committed"
            found.steps.append(Retirement("remove", where[0].cluster, job.team, name, source, why))
    kept = [name for name in job.retired if name not in gone]
    for name, cluster, why in earlier:
        if name not in job.retired and len(kept) < MOST:
            kept.append(name)
            found.steps.append(Retirement("record", cluster, job.team, name, source, why))
            path = f"{cluster}/runs/{job.team}/{name}.yaml"
            if path in past.removed:
                change.files[path] = past.removed[path]
    change.retired = tuple(kept)
    if job.is_stopped and not kept and all(is_run_recorded(run, past, chosen) for run in runs):
        change.is_removed = True
        for run in runs:
            why = "its record is committed"
            found.steps.append(Retirement("remove", run.cluster, job.team, run.name, source, why))
    elif not job.is_stopped:
        _plan_retirement_of_finished_run(source, runs, past, chosen, change, found, waits)
    if change.is_removed or change.state or change.retired != job.retired:
        found.changes[source] = change


def _plan_retirement_of_finished_run(
    source: str,
    runs: Sequence[PlannedRun],
    past: GitPast,
    chosen: RunSelection,
    change: SpecChange,
    found: Retirements,
    waits: str,
) -> None:
    """Stop the run that a spec describes, if it is over on each cluster that it runs on."""
    over = {run.cluster: why for run in runs if (why := explain_why_run_is_over(run, past, chosen))}
    for run in runs:
        job = run.unit.job
        if waits and run.cluster in over:
            why = WAITED_MESSAGE.format(over[run.cluster], waits)
            found.steps.append(Retirement("left", run.cluster, job.team, run.name, source, why))
        elif len(over) == len(runs):
            change.state = STOPPED_STATE
            found.steps.append(
                Retirement("record", run.cluster, job.team, run.name, source, over[run.cluster])
            )
        elif run.cluster in over:
            others = ", ".join(one.cluster for one in runs if one.cluster not in over)
            why = f"{over[run.cluster]}, but not known to be over on {others}"
            found.steps.append(Retirement("left", run.cluster, job.team, run.name, source, why))


def explain_why_run_is_over(run: PlannedRun, past: GitPast, chosen: RunSelection) -> str:
    """Return why the run that a spec describes is over, by its status or age; empty if it is not."""
    if not chosen.takes(run.cluster) or run.unit.job.schedule:  # state: stopped ends a schedule, too
        return ""
    added_s = past.added_s(run.path) if run.path in past.present else None
    age = "" if added_s is None else _describe_age_of_run_to_retire(added_s, chosen)
    if chosen.statuses is None:
        return age if chosen.older_s is not None and not chosen.is_superseded else ""
    if run.cluster != chosen.cluster or (chosen.older_s is not None and not age):
        return ""
    end = next((one.end for one in chosen.named(run.name) if _is_of(one, run)), "")
    return f"{end}{', ' if end and age else ''}{age}" if end else ""


def find_earlier_runs_to_retire(
    request: Request, past: GitPast, jobs: Mapping[str, Sequence[PlannedRun]], chosen: RunSelection
) -> dict[str, list[EarlierRunNote]]:
    """Return runs that each spec no longer describes and a cluster may still have: name, cluster, why."""
    homes = {
        (run.cluster, run.unit.job.team, run.unit.job.name): run for runs in jobs.values() for run in runs
    }
    found: dict[str, list[EarlierRunNote]] = {}
    for name, cluster, team, job, why in sorted(_find_retirement_candidates(request, past, homes, chosen)):
        run = homes.get((cluster, team, job))
        if run is not None and run.name != name and chosen.takes(cluster):
            found.setdefault(run.unit.job.source, []).append((name, cluster, why))
    return found


def _find_retirement_candidates(
    request: Request, past: GitPast, homes: Iterable[tuple[str, str, str]], chosen: RunSelection
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield name, cluster, team, job and why of runs that left Git, or that a cluster reports as ended."""
    known = set(homes)
    removed: dict[str, FileEvent] = {}
    for path, events in past.events.items():
        match = _RUN_FILE.fullmatch(path)
        if match is None or path in past.present or events[0].is_added or not chosen.is_superseded:
            continue
        if (match[1], match[2], match[4]) in known and _is_there(match[1], match[3], chosen):
            removed[path] = events[0]
    texts = read_texts_removed_from_git(request.root, RENDERED, removed)
    past.removed.update(texts)
    for path, text in texts.items():
        match = _RUN_FILE.fullmatch(path)
        if match and not _RECORD.search(text) and _is_old_enough(past.added_s(path), chosen):
            yield match[3], match[1], match[2], match[4], "superseded"
    back: dict[str, FileEvent] = {}  # read together, because each call of git is slow
    for one in chosen.statuses or ():
        path = f"{chosen.cluster}/runs/{one.team}/{one.name}.yaml"
        is_old = _is_old_enough(past.added_s(path), chosen)
        is_ours = _RUN_FILE.fullmatch(path) is not None  # and not one that a schedule made
        if one.end and is_ours and not one.is_record and is_old and path not in texts:
            event = next(iter(past.events.get(path, ())), None)
            if event is not None and path not in past.present:
                back[path] = event
            yield one.name, chosen.cluster, one.team, one.job, one.end
    if back:
        past.removed.update(read_texts_removed_from_git(request.root, RENDERED, back))


def is_earlier_run_recorded(run: PlannedRun, name: str, past: GitPast, chosen: RunSelection) -> bool:
    """Return whether the record of an earlier run of a job is committed and old enough, and the cluster has
    it."""
    return _is_recorded(_build_run_file_path(run, name), name, run.cluster, past, chosen)


def is_run_recorded(run: PlannedRun, past: GitPast, chosen: RunSelection) -> bool:
    """Return whether the record of the run that a spec describes is committed and old enough, and the
    cluster has it."""
    return _is_recorded(run.path, run.name, run.cluster, past, chosen)


def _is_recorded(path: str, name: str, cluster: str, past: GitPast, chosen: RunSelection) -> bool:
    is_old = _is_old_enough(past.first_added_s(path), chosen)
    return is_old and past.is_record(path) and _is_seen(name, cluster, chosen)


def _is_seen(name: str, cluster: str, chosen: RunSelection) -> bool:
    """Return whether the cluster has the record, as far as it was asked: the engine may then delete it."""
    if chosen.statuses is None or cluster != chosen.cluster:
        return True
    return all(one.is_record for one in chosen.named(name))


def _is_there(cluster: str, name: str, chosen: RunSelection) -> bool:
    """Return whether a run may still be on its cluster, as far as that was asked."""
    if chosen.statuses is None or cluster != chosen.cluster:
        return True
    return any(not one.is_record for one in chosen.named(name))


def _is_old_enough(added_s: int | None, chosen: RunSelection) -> bool:
    """Return whether a run that came to Git at a time is at least as old as requested."""
    return chosen.older_s is None or (
        added_s is not None and bool(_describe_age_of_run_to_retire(added_s, chosen))
    )


def _describe_age_of_run_to_retire(since_s: int, chosen: RunSelection) -> str:
    """Return `40 days old` if a run is at least as old as requested; empty if it is younger, or without an
    age."""
    age_s = chosen.now_s - since_s
    if chosen.older_s is None or age_s < chosen.older_s:
        return ""
    days = age_s // DAY_S
    return f"{days} day{'' if days == 1 else 's'} old"


def _build_run_file_path(run: PlannedRun, name: str) -> str:
    return f"{run.path.rpartition('/')[0]}/{name}.yaml"


def _is_of(status: RunStatus, run: PlannedRun) -> bool:
    return status.namespace == run.unit.job.namespace
