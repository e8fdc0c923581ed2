"""The request of a command to the pipeline, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from gangplan.emit import FileOutcome, TreeChange, is_run_file
from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.incremental.look import Look
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.known import KnownResults
from gangplan.pipeline.scope import WHOLE_SCOPE, WorkScope
from gangplan.pipeline.shard import SpecShard
from gangplan.pipeline.told import ShardRecorder, ShardRecords
from gangplan.pipeline.whole import WholeTeam
from gangplan.pipeline.worker import PlannedRun, TaskResult, WorkerState
from gangplan.records import dataclass
from gangplan.resolve.upgrade import VersionPairs
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Request:
    """What a command asks for."""

    root: Path
    clusters: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()  # the files that are named, specs or others
    engine: str = "auto"
    jobs: int = 0
    keep_runs: bool = False
    versions: VersionPairs = ()  # render as if the clusters had these
    with_flows: bool = False  # a preview also says who may talk to whom
    uses_cache: bool = False  # use what earlier commands found out about the same files
    looked: Look | None = None  # the workspace as it was when the command began
    with_facts: bool = False  # also say which files have new schema facts
    shard: SpecShard | None = None  # only this part of the specs
    told: ShardRecords | None = None  # what shards found out
    progress: Callable[[int, int], None] | None = None  # called with how many specs are done, of how many
    # Results of specs and clusters from elsewhere, by their files and folders.
    taken: Mapping[str, TaskResult] = field(default_factory=dict)
    like: WorkerState | None = None  # a worker on another workspace with the same platform
    noted: dict[str, TaskResult] | None = None  # where to put all results, for another request
    in_sums: bool = False  # for runs that are as they were, their number and findings are enough
    is_brief: bool = False  # a preview needs neither texts of trials that are alike nor source files of runs


@dataclass(slots=True)
class ShardResult:
    """What a shard reports in addition to its own findings; `telling` collects its results for the whole.

    `teams` are those whose specs it has, `others` all teams with specs; `elsewhere` are findings for the
    first shard to report; `secrets` must not be repeated, and `has_secrets` says that the workspace is
    refused for one.
    """

    telling: ShardRecorder
    teams: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    elsewhere: frozenset[Finding] = frozenset()
    secrets: set[str] = field(default_factory=set)
    has_secrets: bool = False


@dataclass(slots=True)
class Result:
    """The result of a command. `workspace` is as it was read, even where it was rendered for other
    versions."""

    workspace: Workspace
    findings: list[Finding] = field(default_factory=list)
    changes: list[TreeChange] = field(default_factory=list)
    runs: list[PlannedRun] = field(default_factory=list)
    facts: list[RunFacts] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    specs: int = 0
    objects: int = 0
    files: tuple[str, ...] = ()  # the specs, by their files
    active: int = 0  # runs that are neither stopped nor archived
    policies: set[str] = field(default_factory=set)  # those that were evaluated
    telling: set[str] = field(default_factory=set)  # files with schema facts that the others lack
    unjudged: list[str] = field(
        default_factory=list
    )  # files of `rendered/` that a second judge still has to see
    scope: WorkScope = WHOLE_SCOPE  # what was worked on
    known: KnownResults | None = (
        None  # what earlier commands found out, and where this one's results are kept
    )
    strangers: list[Finding] = field(default_factory=list)  # with --check: unmanaged files in the tree
    worker: WorkerState | None = None  # the worker in this process
    shard: ShardResult | None = None  # where only a part of the specs is worked on
    wholes: list[WholeTeam] = field(default_factory=list)  # teams whose changes are not among the `changes`

    def count(self, outcome: FileOutcome) -> int:
        """Return how many files have an outcome."""
        wholes = sum(one.same for one in self.wholes) if outcome is FileOutcome.SAME else 0
        return sum(1 for change in self.changes if change.outcome is outcome) + wholes

    @property
    def run_files(self) -> int:
        """The number of files of runs, without those that are removed."""
        there = (one for one in self.changes if one.outcome is not FileOutcome.REMOVED)
        return sum(is_run_file(one.path) for one in there) + sum(one.runs for one in self.wholes)

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(finding.is_error for finding in self.findings)

    @property
    def differences(self) -> list[TreeChange]:
        """The changes that are not 'same'."""
        return [change for change in self.changes if change.outcome is not FileOutcome.SAME]


def require_objects_in_scope(request: Request, result: Result, done: str) -> None:
    """Raise UserError if the selected specs, teams and clusters have no object in common: a command that did
    nothing must not look successful. `done` is what it would have done, such as "checked".
    """
    if result.has_errors or result.objects or result.scope.named_teams:
        return
    none = "the spec does not run" if result.specs == 1 else f"none of {result.specs} specs runs"
    where = f"on cluster {', '.join(request.clusters)}" if request.clusters else "on any cluster"
    raise UserError(
        f"nothing was {done}: {none} {where}",
        "Name other specs or clusters, or add the cluster to the team or the spec.",
    )
