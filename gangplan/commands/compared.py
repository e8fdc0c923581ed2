"""Comparing the workspace with clusters as they are: snapshots, and dry runs on API servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.connecting import ConnectionFlags, Observing, connect_with_flags
from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.pipeline.request import Request, Result
from gangplan.workspace import Workspace, suggest_nearest


def observe_clusters_for_validate_command(
    request: Request, result: Result, observing: Observing
) -> list[Finding]:
    """Return findings from snapshots and API servers. Raises UserError and ToolError.

    Servers are asked only if everything rendered without errors, because nothing else would be applied.
    """
    found = compare_snapshots_named_by_flags(result.workspace, request.clusters, observing.snapshots)
    if observing.server is not None and not result.has_errors:
        found += _check_with_server_dry_run(request, result.workspace, observing.server)
    return found


def compare_snapshots_named_by_flags(
    workspace: Workspace, named: Sequence[str], snapshots: Sequence[Path]
) -> list[Finding]:
    """Return where the files of clusters differ from their snapshots.

    Raises UserError for a snapshot of another cluster.
    """
    if not snapshots:
        return []
    from gangplan.live.differences import compare_snapshot_with_cluster_file
    from gangplan.live.snapshot import read_cluster_snapshot

    found: list[Finding] = []
    names = named or tuple(workspace.clusters)
    for path in snapshots:
        snapshot = read_cluster_snapshot(path)
        if snapshot.cluster not in names:
            raise UserError(
                f"{path} is a snapshot of cluster '{snapshot.cluster}'",
                suggest_nearest(snapshot.cluster, names) or "Name another file.",
            )
        found += compare_snapshot_with_cluster_file(workspace.clusters[snapshot.cluster], snapshot)
    return found


def _check_with_server_dry_run(
    request: Request, workspace: Workspace, asked: ConnectionFlags
) -> list[Finding]:
    """Return what the API server of each cluster reports about what is rendered for it."""
    from gangplan.live.ask import ask_for_dry_run_verdicts, build_dry_run_questions, report_dry_run_verdicts
    from gangplan.live.rendered import is_run_record
    from gangplan.provenance.lines import (
        render_cluster_files_with_line_origins,
        render_run_files_with_line_origins,
    )

    names = request.clusters or tuple(workspace.clusters)
    if asked.context is not None and len(names) > 1:
        raise UserError("--context is of one cluster, but there are several", "Name it with --cluster NAME.")
    plain = replace(request, looked=None, progress=None, uses_cache=False)
    found: list[Finding] = []
    for name in names:
        one = replace(plain, clusters=(name,))
        files = [
            file
            for file in render_run_files_with_line_origins(workspace, one)[0]
            if not is_run_record(file.text)
        ]
        if not request.specs and not request.teams:
            files = [*render_cluster_files_with_line_origins(workspace, one, name)[0], *files]
        if files:
            access = connect_with_flags(workspace.clusters[name], asked, "validate", ())
            found += report_dry_run_verdicts(
                workspace.clusters[name], ask_for_dry_run_verdicts(access, build_dry_run_questions(files))
            )
    return found
