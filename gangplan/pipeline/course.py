"""The state of a command in the pipeline: what it has, and what it has found so far."""

from __future__ import annotations

from dataclasses import field, replace

from gangplan.emit import FileOutcome, StagingFolder, TreeChange, is_run_file
from gangplan.errors import InternalError
from gangplan.findings import Finding, Location
from gangplan.pipeline.known import KnownResults
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.whole import can_ranked_runs_clash, clash_rank_of
from gangplan.pipeline.worker import TaskResult, WorkerState
from gangplan.records import dataclass
from gangplan.rules.core import JOB_NAME_TWICE
from gangplan.validate.kueue.contention import RunDemand
from gangplan.workspace import SpecFile, Workspace


@dataclass(slots=True)
class PipelineState:
    """The state of a command in the pipeline: what it has, and what it has found so far.

    `workspace` has the requested versions. Some results of tasks can only be judged together: patches that
    matched, by cluster; jobs by cluster, namespace and name; the demands of runs on Kueue, by cluster.
    """

    request: Request
    workspace: Workspace
    stage: StagingFolder | None
    result: Result
    files: list[SpecFile] = field(default_factory=list)
    known: KnownResults | None = None
    worker: WorkerState | None = None
    matched: dict[str, set[int]] = field(default_factory=dict)
    places: dict[tuple[str, str, str], Location] = field(default_factory=dict)
    demands: dict[str, dict[str, tuple[Location, RunDemand]]] = field(default_factory=dict)
    scripts: set[str] = field(default_factory=set)  # files of launch scripts, which many specs have in common
    whole: set[str] = field(default_factory=set)  # teams that were taken as a whole
    others: set[tuple[str, str]] = field(default_factory=set)  # cluster and job of runs of these teams
    is_complete: bool = False  # the demands of these teams were added, and `others`

    @property
    def started(self) -> WorkerState:
        """The worker. Raises InternalError before it is started."""
        if self.worker is None:
            raise InternalError("a worker was used before it was started")
        return self.worker

    def take(self, outcome: TaskResult) -> None:
        """Add the result of a task."""
        result = self.result
        result.findings += outcome.findings
        result.changes += self._new_changes(outcome)
        result.runs += outcome.runs
        result.facts += outcome.facts
        result.texts |= outcome.texts
        result.objects += outcome.objects
        result.active += outcome.active
        result.policies |= outcome.policies
        result.telling |= outcome.telling
        for cluster, indexes in outcome.matched.items():
            self.matched.setdefault(cluster, set()).update(indexes)
        for cluster, job, place, demand in outcome.demands:
            self.demands.setdefault(cluster, {})[job] = (place, demand)
        for cluster, namespace, job, place in outcome.jobs:
            self._check_unique(cluster, namespace, job, place)

    def _new_changes(self, outcome: TaskResult) -> list[TreeChange]:
        """Return a task's changes without launch scripts of earlier tasks; count those that are new."""
        found = []
        for change in outcome.changes:
            if not is_run_file(change.path) and "/runs/" in change.path:
                if change.path in self.scripts:
                    continue
                self.scripts.add(change.path)
                self.result.objects += change.outcome is not FileOutcome.REMOVED
            found.append(change)
        return found

    def take_whole(self, team: str) -> None:
        """Add what is known of a team as a whole, unless that was done."""
        if self.known is not None and team not in self.whole:
            self.whole.add(team)
            self.result.wholes.append(self.known.wholes[team])
            self.take(self.known.wholes[team].outcome)

    def complete(self) -> None:
        """Add the demands and jobs of teams taken as a whole, unless that was done.

        Needed where their runs could conflict with others or are asked about. Raises VanishedError.
        """
        wholes = [] if self.is_complete else self.result.wholes
        self.is_complete = True
        for whole in wholes:
            for one in self.known.details(whole) if self.known else ():
                self.others.update((cluster, job) for cluster, _, job, _ in one.jobs)
                self.take(replace(one, changes=[], jobs=[]))

    @property
    def could_clash(self) -> bool:
        """Whether some runs could conflict with each other, by what is known of teams as a whole."""
        ranks = {name: {clash_rank_of(own) for _, own in one.values()} for name, one in self.demands.items()}
        for whole in self.result.wholes:
            for cluster, own in whole.ranks.items():
                ranks.setdefault(cluster, set()).update(own)
        return bool(self.result.wholes) and any(map(can_ranked_runs_clash, ranks.values()))

    def _check_unique(self, cluster: str, namespace: str, job: str, place: Location) -> None:
        """Report a job that two files of one namespace describe."""
        first = self.places.setdefault((cluster, namespace, job), place)
        if first != place:
            message = f"job '{job}' is defined twice in namespace {namespace}; first in {first}"
            help = "Rename one of the files, or set name: in one."
            self.result.findings.append(Finding(JOB_NAME_TWICE, place, message, help))
