"""What a command asks of the pipeline, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gangplan.emit import Change, FileOutcome
from gangplan.findings import Finding
from gangplan.pipeline.scope import EVERYTHING, Scope
from gangplan.pipeline.worker import PlannedRun
from gangplan.resolve.upgrade import Pairs
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
    versions: Pairs = ()  # render as if the clusters had these
    with_flows: bool = False  # a preview also says who may talk to whom


@dataclass(slots=True)
class Result:
    """What came of it. `workspace` is as it was read, whatever versions it was rendered for."""

    workspace: Workspace
    findings: list[Finding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    runs: list[PlannedRun] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    specs: int = 0
    objects: int = 0
    files: tuple[str, ...] = ()  # the specs, by their files
    active: int = 0  # runs that are not archived
    policies: set[str] = field(default_factory=set)  # those that judged
    scope: Scope = EVERYTHING  # what was worked on
    strangers: list[Finding] = field(default_factory=list)  # of --check: what is not gangplan's in the tree

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(finding.is_error for finding in self.findings)

    @property
    def differences(self) -> list[Change]:
        """The changes that are not 'same'."""
        return [change for change in self.changes if change.outcome is not FileOutcome.SAME]
