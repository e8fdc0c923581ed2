"""Comparing the workspace with clusters as they are: snapshots, and dry runs on API servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.connecting import Asked, Observing, connected
from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.pipeline.request import Request, Result
from gangplan.workspace import Workspace, nearest


def observed(request: Request, result: Result, observing: Observing) -> list[Finding]:
    """Return findings from snapshots and API servers. Raises UserError and ToolError.

    Servers are asked only if everything rendered without errors, because nothing else would be applied.
    """
    found = compared(result.workspace, request.clusters, observing.snapshots)
    if observing.server is not None and not result.has_errors:
        found += _asked(request, result.workspace, observing.server)
    return found


def compared(workspace: Workspace, named: Sequence[str], snapshots: Sequence[Path]) -> list[Finding]:
    """Return where the files of clusters differ from their snapshots.

    Raises UserError for a snapshot of another cluster.
    """
    if not snapshots:
        return []
    from gangplan.live.differences import differences
    from gangplan.live.snapshot import read_snapshot

    found: list[Finding] = []
    names = named or tuple(workspace.clusters)
    for path in snapshots:
        snapshot = read_snapshot(path)
        if snapshot.cluster not in names:
            raise UserError(
                f"{path} is a snapshot of cluster '{snapshot.cluster}'",
                nearest(snapshot.cluster, names) or "Name another file.",
            )
        found += differences(workspace.clusters[snapshot.cluster], snapshot)
    return found


def _asked(request: Request, workspace: Workspace, asked: Asked) -> list[Finding]:
    """Return what the API server of each cluster reports about what is rendered for it."""
    from gangplan.live.ask import ask, findings, questions
    from gangplan.live.rendered import is_record
    from gangplan.provenance.lines import runs_of, standing_on

    names = request.clusters or tuple(workspace.clusters)
    if asked.context is not None and len(names) > 1:
        raise UserError("--context is of one cluster, but there are several", "Name it with --cluster NAME.")
    plain = replace(request, looked=None, progress=None, uses_cache=False)
    found: list[Finding] = []
    for name in names:
        one = replace(plain, clusters=(name,))
        files = [file for file in runs_of(workspace, one)[0] if not is_record(file.text)]
        if not request.specs and not request.teams:
            files = [*standing_on(workspace, one, name)[0], *files]
        if files:
            access = connected(workspace.clusters[name], asked, "validate", ())
            found += findings(workspace.clusters[name], ask(access, questions(files)))
    return found
