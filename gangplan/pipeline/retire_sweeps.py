"""`gangplan retire` for trials: a sweep lists those that are over in `stopped`, later in `removed`.

Which trials are over is found as for any run. A trial whose record is committed moves from `stopped` to
`removed`; once all have, the sweep itself is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.retire import (
    WAITED_MESSAGE,
    EarlierRunNote,
    GitPast,
    Retirement,
    Retirements,
    SpecChange,
    explain_why_run_is_over,
    find_earlier_runs_to_retire,
    is_earlier_run_recorded,
    is_run_recorded,
    read_git_past,
)
from gangplan.pipeline.retire_after import find_active_followers_by_spec
from gangplan.pipeline.retire_choice import RunSelection
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.spec.sweep import Sweep


@dataclass(slots=True)
class _Lists:
    """The lists of a sweep as they will be."""

    stopped: list[str]
    removed: list[str]
    retired: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # what leaves `stopped`


def add_sweep_retirements(request: Request, result: Result, chosen: RunSelection, found: Retirements) -> None:
    """Add the steps of trials. Raises UserError and ToolError as `retirements`."""
    past = read_git_past(request)
    trials: dict[str, list[PlannedRun]] = {}
    for run in result.runs:
        if run.unit.job.trial is not None:
            trials.setdefault(run.unit.job.source, []).append(run)
    earlier = find_earlier_runs_to_retire(request, past, trials, chosen)
    waited = find_active_followers_by_spec(
        result.runs, lambda run: explain_why_run_is_over(run, past, chosen)
    )
    for source in sorted(trials):
        sweep = result.workspace.sweeps[source].sweep
        if sweep is not None:
            _retire_sweep_trials(
                source, sweep, trials[source], earlier.get(source, []), past, chosen, found, waited
            )


def _retire_sweep_trials(
    source: str,
    sweep: Sweep,
    runs: Sequence[PlannedRun],
    earlier: Sequence[EarlierRunNote],
    past: GitPast,
    chosen: RunSelection,
    found: Retirements,
    waited: Mapping[str, str],
) -> None:
    lists = _Lists(list(sweep.stopped), list(sweep.removed))
    change, team = SpecChange(source), runs[0].unit.job.team
    homes = list({run.cluster: run for run in runs}.values())
    listed = frozenset(sweep.retired)
    for name in sweep.retired:
        where = next((run for run in homes if is_earlier_run_recorded(run, name, past, chosen)), None)
        if where is None:
            lists.retired.append(name)
        else:
            why = "its record is committed"
            found.steps.append(Retirement("remove", where.cluster, team, name, source, why))
    for name, cluster, why in earlier:
        if name not in listed:
            lists.retired.append(name)
            found.steps.append(Retirement("record", cluster, team, name, source, why))
            path = f"{cluster}/runs/{team}/{name}.yaml"
            if path in past.removed:
                change.files[path] = past.removed[path]
    by_trial: dict[str, list[PlannedRun]] = {}
    for run in runs:
        if run.unit.job.trial is not None:
            by_trial.setdefault(run.unit.job.trial.name, []).append(run)
    for trial, own in by_trial.items():
        _add_trial_retirement(trial, own, lists, past, chosen, found, waited.get(source, ""))
    lists.stopped = [one for one in lists.stopped if one not in lists.gone]
    change.is_removed = by_trial.keys() <= set(lists.removed) and not lists.retired
    change.lists = {"stopped": tuple(lists.stopped), "removed": tuple(lists.removed)}
    change.lists["retired"] = tuple(lists.retired)
    before = {"stopped": sweep.stopped, "removed": sweep.removed, "retired": sweep.retired}
    if change.is_removed or change.lists != before:
        found.changes[source] = change


def _add_trial_retirement(
    trial: str,
    runs: Sequence[PlannedRun],
    lists: _Lists,
    past: GitPast,
    chosen: RunSelection,
    found: Retirements,
    waits: str,
) -> None:
    """Add the next step of a trial on all of its clusters together; `waits` is a job that follows the
    sweep."""
    job = runs[0].unit.job
    if job.is_stopped:
        if all(is_run_recorded(run, past, chosen) for run in runs):
            lists.gone.add(trial)
            lists.removed.append(trial)
            why = "its record is committed"
            found.steps += [
                Retirement("remove", run.cluster, job.team, run.name, job.source, why) for run in runs
            ]
        return
    over = {run.cluster: why for run in runs if (why := explain_why_run_is_over(run, past, chosen))}
    if waits:
        for run in runs:
            if run.cluster in over:
                why = WAITED_MESSAGE.format(over[run.cluster], waits)
                found.steps.append(Retirement("left", run.cluster, job.team, run.name, job.source, why))
        return
    if len(over) == len(runs):
        lists.stopped.append(trial)
        found.steps += [
            Retirement("record", run.cluster, job.team, run.name, job.source, over[run.cluster])
            for run in runs
        ]
        return
    others = ", ".join(one.cluster for one in runs if one.cluster not in over)
    for run in runs:
        if run.cluster in over:
            why = f"{over[run.cluster]}, but not known to be over on {others}"
            found.steps.append(Retirement("left", run.cluster, job.team, run.name, job.source, why))
