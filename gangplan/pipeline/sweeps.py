"""From a sweep to texts of its trials and findings: some at a time, so that ten thousand need no more memory.

Trials are runs like any other. A finding about several trials is reported once for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import islice

from gangplan.findings import Finding, Location, reword_finding
from gangplan.model.job import Trial
from gangplan.pipeline.alike import FirstTrials
from gangplan.pipeline.worker import PlannedRun, TaskResult, WorkerState, build_cluster_world_before_runs
from gangplan.plan import RunPlan
from gangplan.records import dataclass
from gangplan.rules.sweeps import SWEEP_TOO_LARGE, TRIAL_REMOVED
from gangplan.spec.digest import compute_spec_digest
from gangplan.spec.files import read_files_mounted_by_spec
from gangplan.spec.sweep_files import SweepFile, TrialJob, build_sweep_trial_jobs
from gangplan.spec.trials import count_trials
from gangplan.validate.kueue.sweeps import count_runs_admitted_at_once
from gangplan.workspace import Spec, SpecFile

# How many trials are worked on together.
BATCH = 32
# How many findings of one rule at one place are reported one by one; the rest is counted.
_MOST_ALIKE = 8
Plan = Callable[[WorkerState, Spec, TaskResult], Iterable[tuple[str, RunPlan]]]
Render = Callable[[WorkerState, str, list[tuple[RunPlan, TaskResult]]], None]


def expand_sweep_into_rendered_trials(
    worker: WorkerState, file: SpecFile, result: TaskResult, plan: Plan, render: Render
) -> None:
    """Expand the trials of a sweep: `plan` plans the runs of a trial, `render` renders those of a cluster."""
    sweep = worker.workspace.sweeps[file.file]
    result.findings += sweep.findings
    result.is_lasting &= not sweep.reads_results
    if sweep.sweep is None:
        return
    closed = _check_sweep_trial_limits(worker, sweep, result)
    at_work = replace(worker, options=replace(worker.options, closed=worker.options.closed | closed))
    told, trials, names = _Told(sweep), build_sweep_trial_jobs(sweep, worker.workspace.templates), set[str]()
    kept = FirstTrials(worker.options.is_brief)
    while batch := list(islice(trials, BATCH)):
        _expand_sweep_trial_batch(at_work, file, batch, result, told, kept, plan, render)
        names.update(f"{sweep.name}-{one.trial.name}" for one in batch)
        result.jobs[:] = list(dict.fromkeys(result.jobs))
    result.findings += told.findings()
    removed = list(
        _check_removed_sweep_trials(worker, sweep, names, {cluster for cluster, *_ in result.jobs})
    )
    result.is_lasting &= not removed  # findings about other files in rendered/
    result.findings += removed


def _check_sweep_trial_limits(worker: WorkerState, sweep: SweepFile, result: TaskResult) -> frozenset[str]:
    """Return the clusters that allow fewer trials in a sweep, and report those that the sweep is meant
    for."""
    assert sweep.sweep is not None
    assert sweep.document is not None
    count, clusters = count_trials(sweep.sweep), worker.workspace.clusters
    closed = {name for name, file in clusters.items() if count > file.spec.limits.trials}
    if not closed:
        return frozenset()
    named = sweep.document.value["template"].get("clusters")
    team = worker.workspace.teams.get(sweep.team)
    meant = named or (team and team.spec.clusters) or clusters
    for name in sorted(closed & set(meant)):
        if sweep.team in clusters[name].spec.teams:
            most = clusters[name].spec.limits.trials
            message = f"the sweep has {count} trials; {name} allows {most} in one sweep"
            help = f"Try fewer values, draw some with random, or have limits.trials of {name} raised."
            where = sweep.document.where(("parameters",), key=True)
            result.findings.append(Finding(SWEEP_TOO_LARGE, where, message, help, clusters=(name,)))
    return frozenset(closed)


def _expand_sweep_trial_batch(
    worker: WorkerState,
    file: SpecFile,
    batch: Sequence[TrialJob],
    result: TaskResult,
    told: _Told,
    kept: FirstTrials,
    plan: Plan,
    render: Render,
) -> None:
    """Take some trials through all stages."""
    planned: dict[str, list[tuple[RunPlan, TaskResult]]] = {}
    parts: list[tuple[Trial, TaskResult]] = []
    for one in batch:
        part = TaskResult(file.file)
        part.findings += one.findings
        parts.append((one.trial, part))
        spec = _build_sweep_trial_spec(worker, file, one, part)
        if spec is not None:
            for cluster, unit in plan(worker, spec, part):
                planned.setdefault(cluster, []).append((unit, part))
    for cluster in sorted(planned):
        render(worker, cluster, planned[cluster])
    for trial, part in parts:
        told.note(trial, part.findings)
        part.runs = [
            replace(run, at_once=_count_sweep_trials_at_once(worker, run, trial)) for run in part.runs
        ]
        kept.share(part)
        _merge_sweep_trial_result(result, part)


def _count_sweep_trials_at_once(worker: WorkerState, run: PlannedRun, trial: Trial) -> int:
    """Return how many trials like this one run at the same time: as many as the sweep says, and the quota
    holds."""
    if run.verdict is None or run.verdict.outcome != "admit":
        return 0
    return min(
        trial.at_once,
        count_runs_admitted_at_once(build_cluster_world_before_runs(worker, run.cluster), run.verdict)[0],
    )


def _build_sweep_trial_spec(
    worker: WorkerState, file: SpecFile, one: TrialJob, part: TaskResult
) -> Spec | None:
    if one.spec is None or one.findings:
        return None
    files: dict[str, bytes] = {}
    if one.spec.files:
        files, findings = read_files_mounted_by_spec(
            worker.workspace.root, file.file, one.spec.files, one.document
        )
        part.is_lasting = False
        part.findings += findings
        if findings:
            return None
    return Spec(
        file, one.spec, one.document, compute_spec_digest(one.spec, files), files, one.trial, one.template
    )


def _merge_sweep_trial_result(result: TaskResult, part: TaskResult) -> None:
    """Add all results of a trial but its findings, which are reported for all trials together."""
    result.is_lasting &= part.is_lasting
    mine = part.scripts & result.scripts
    result.changes += [one for one in part.changes if one.path not in mine]
    result.scripts |= part.scripts
    result.jobs += part.jobs
    result.runs += part.runs
    result.demands += part.demands
    result.facts += part.facts
    result.texts |= part.texts
    result.objects += part.objects
    result.active += part.active
    result.policies |= part.policies
    result.telling |= part.telling
    for cluster, indexes in part.matched.items():
        result.matched.setdefault(cluster, set()).update(indexes)


@dataclass(slots=True)
class _Told:
    """The findings about trials, one for all trials that have the same."""

    sweep: SweepFile
    trials: int = 0
    found: dict[Finding, list[str]] = field(default_factory=dict)  # as of the sweep -> trials
    firsts: dict[Finding, Finding] = field(default_factory=dict)
    alike: dict[tuple[str, Location], int] = field(default_factory=dict)

    def note(self, trial: Trial, findings: Iterable[Finding]) -> None:
        """Note the findings about one trial."""
        self.trials += 1
        words = values_words(trial)
        for one in dict.fromkeys(findings):
            bare = self._bare(one)
            if bare not in self.found:
                place = (str(one.rule), one.where)
                self.alike[place] = self.alike.get(place, 0) + 1
                if self.alike[place] > _MOST_ALIKE:
                    bare = next(
                        known for known in reversed(self.found) if (str(known.rule), known.where) == place
                    )
            self.firsts.setdefault(bare, one)
            self.found.setdefault(bare, []).append(words)

    def findings(self) -> list[Finding]:
        """Return each finding once, with the number of trials if it is not about all."""
        return [self._said(bare, trials) for bare, trials in self.found.items()]

    def _bare(self, one: Finding) -> Finding:
        """Return the finding as if it were about the sweep: without names of trials and runs."""
        pattern = re.compile(rf"{re.escape(self.sweep.name)}-[a-z2-7]{{8}}(-[0-9a-f]{{8}})?(?![a-z0-9])")
        return reword_finding(one, lambda text: pattern.sub(self.sweep.name, text))

    def _said(self, bare: Finding, trials: list[str]) -> Finding:
        if len(trials) == self.trials:
            return bare
        words = f"trial {trials[0]}"
        if len(trials) > 1:
            words = f"{len(trials)} of {self.trials} trials, such as {trials[0]}"
        return replace(bare, message=f"{words}: {bare.message}")


def values_words(trial: Trial) -> str:
    """Return the values of a trial: `lr=1e-4 batch=64`."""
    return " ".join(f"{name}={text}" for name, text in trial.values)


def _check_removed_sweep_trials(
    worker: WorkerState, sweep: SweepFile, names: set[str], clusters: set[str]
) -> Iterator[Finding]:
    """Report runs in `rendered/` of trials that the sweep no longer has, and that were not ended."""
    assert sweep.document is not None
    mine = re.compile(rf"{re.escape(sweep.name)}-[a-z2-7]{{8}}")
    listed = sweep.sweep.removed if sweep.sweep else ()
    for cluster in sorted(clusters):
        folder = f"{cluster}/runs/{sweep.team}"
        for job in worker.earlier.jobs(folder):
            if not mine.fullmatch(job) or job in names:
                continue
            for run in worker.earlier.names(f"{folder}/", job):
                found = worker.earlier.read(f"{folder}/{run}.yaml")
                if found is None or found.is_record:
                    continue
                trial = job.rpartition("-")[2]
                where = sweep.document.where(("parameters",), key=True)
                message = (
                    f"trial {trial} is no longer in the sweep, and {run} on {cluster} goes on unseen by Git"
                )
                back = "take it out of removed:" if trial in listed else "put its values back"
                help = f"To end it, {back} and write stopped: [{trial}]."
                yield Finding(TRIAL_REMOVED, where, message, help, clusters=(cluster,))
