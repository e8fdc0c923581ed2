"""The files that a planned run comes from, kept so that rendered values can be traced."""

from __future__ import annotations

from collections.abc import Callable

from gangplan.records import dataclass
from gangplan.source import Document
from gangplan.spec.waiver_files import WaiverFile
from gangplan.workspace import ClusterFile, Spec, TeamFile, Workspace


def _unpickle_no_sources() -> None:
    """Return None: what sources become when they are unpickled in another process."""


@dataclass(frozen=True, slots=True)
class RunSources:
    """The files that a job was resolved from, for as long as it stays in its process.

    Documents are large compared with the jobs made from them, so a pickled run has none.
    """

    spec: Spec
    team: TeamFile
    cluster: ClusterFile
    catalog_document: Document
    waivers: tuple[WaiverFile, ...] = ()

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _unpickle_no_sources, ()


def collect_source_files_of_run(workspace: Workspace, spec: Spec, cluster: str) -> RunSources | None:
    """Return the files that a spec's run on a cluster comes from; None if one is missing."""
    catalog, team = workspace.catalog_document, workspace.teams.get(spec.source.team)
    if catalog is None or team is None:
        return None
    return RunSources(spec, team, workspace.clusters[cluster], catalog, tuple(workspace.waivers))
