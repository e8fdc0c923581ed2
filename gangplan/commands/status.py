"""`gangplan status`."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence

from gangplan import clock
from gangplan.commands.absent import build_missing_cluster_error, build_missing_team_error
from gangplan.commands.common import print_findings_to_stderr
from gangplan.commands.connecting import ConnectionFlags, connect_with_flags
from gangplan.commands.fatal import print_fatal
from gangplan.commands.listing import format_terminal_table
from gangplan.errors import Exit, ToolError, UserError
from gangplan.findings import sort_findings
from gangplan.live.rendered import find_runs_in_git
from gangplan.live.rights import Right
from gangplan.live.runs import RunRow, join_live_runs_with_git, list_run_rights
from gangplan.model.support import KUEUE_LINES
from gangplan.pipeline.request import Request
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.rules.model import Severity
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import ClusterFile, Workspace, load_workspace

_LONGEST_NAME = 63  # the names of a run, a team and a cluster are shown in full, because people copy them
_FORMATS = ("table", "json")


def run_status_command(request: Request, asked: ConnectionFlags, format: str) -> Exit:
    """Print the runs of teams on their clusters, joined with those in Git. Raises UserError and ToolError.

    A cluster that cannot be reached is reported; the others are shown, and the exit code is 3.
    """
    if format not in _FORMATS:
        raise UserError(f"there is no format '{format}'", "Formats: table, json.")
    workspace = load_workspace(request.root)
    wrong = [finding for finding in workspace.findings if finding.severity is Severity.ERROR]
    if wrong:
        print_findings_to_stderr(sort_findings(wrong))
        return Exit.INPUT
    clusters = select_clusters_from_flags(workspace, request)
    if asked.context is not None and len(clusters) > 1:
        raise UserError("--context is of one cluster, but there are several", "Name it with --cluster NAME.")
    rows: list[RunRow] = []
    stops: list[ToolError] = []
    for cluster in clusters:
        try:
            rows += _list_cluster_rows_for_status_command(workspace, request, cluster, asked)
        except ToolError as stop:
            if len(clusters) == 1:
                raise
            stops.append(stop)
            print_fatal(ToolError(f"{cluster.name}: {stop.message}", stop.help))
    if format == "json":
        document = {
            "version": 1,
            "runs": [_build_facts_for_status_command(row) for row in rows],
            "unread": len(stops),
        }
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    elif rows:
        now = datetime.datetime.fromtimestamp(clock.read_unix_time(), datetime.UTC)
        sys.stdout.write(
            format_terminal_table(
                [_build_cells_for_status_command(row, now) for row in rows], widest=_LONGEST_NAME
            )
        )
    elif not stops:
        sys.stderr.write("there are no runs, neither on the cluster nor in rendered/\n")
    return Exit.ENVIRONMENT if stops else Exit.CLEAN


def select_clusters_from_flags(workspace: Workspace, request: Request) -> list[ClusterFile]:
    """Return the requested clusters, those of the requested teams, or all. Raises UserError."""
    for name in request.clusters:
        if name not in workspace.clusters:
            raise build_missing_cluster_error(name, workspace)
    for name in request.teams:
        if name not in workspace.teams:
            raise build_missing_team_error(name, workspace)
    names = request.clusters or tuple(workspace.clusters)
    found = [workspace.clusters[name] for name in names]
    return [
        one
        for one in found
        if request.clusters or set(_list_cluster_teams_for_status_command(workspace, one, request.teams))
    ]


def _list_cluster_teams_for_status_command(
    workspace: Workspace, cluster: ClusterFile, named: Sequence[str]
) -> list[str]:
    return [
        name
        for name, team in workspace.teams.items()
        if name in cluster.spec.teams and cluster.name in (team.spec.clusters or (cluster.name,))
        if not named or name in named
    ]


def _list_cluster_rows_for_status_command(
    workspace: Workspace, request: Request, cluster: ClusterFile, asked: ConnectionFlags
) -> list[RunRow]:
    teams = _list_cluster_teams_for_status_command(workspace, cluster, request.teams)
    homes = {name: namespace_of(cluster.spec, name, workspace.teams[name].spec) for name in teams}
    platform = resolve_platform_of_cluster_file(cluster)
    line = KUEUE_LINES.get(platform.kueue.line) if platform.kueue else None
    spaces = sorted(set(homes.values())) if request.teams else [""]
    needs = tuple(
        Right(one.group, one.resource, one.verb, space)
        for space in spaces
        for one in list_run_rights(platform.backends)
    )
    access = connect_with_flags(cluster, asked, "status", needs)
    in_git = find_runs_in_git(request.root, [cluster.name], request.teams)
    api = line.api_version if line else ""
    every = not request.teams
    return join_live_runs_with_git(
        access, cluster.name, homes, in_git, api, is_all=every, made=platform.backends
    )


def _build_facts_for_status_command(row: RunRow) -> dict[str, object]:
    return {
        "run": row.name,
        "team": row.team,
        "cluster": row.cluster,
        "namespace": row.namespace,
        "state": row.state.word,
        "since": row.state.since or None,
        "position": row.position,
        "reason": row.state.reason or None,
        "git": row.git or None,
        "spec": row.source or None,
    }


def _build_cells_for_status_command(row: RunRow, now: datetime.datetime) -> dict[str, object]:
    return {
        "run": row.name,
        "team": row.team,
        "cluster": row.cluster,
        "state": row.state.word,
        "for": format_age_column(row.state.since, now),
        "place": row.position,
        "git": row.git or None,
        "reason": row.state.reason or None,
    }


def format_age_column(since: str, now: datetime.datetime) -> str:
    """Format how long ago a time (RFC 3339) was: `45s`, `12m`, `3h20m`, `5d`; empty for anything else."""
    try:
        then = datetime.datetime.fromisoformat(since.replace("Z", "+00:00"))
    except ValueError:
        return ""
    seconds = max(0, int((now - then).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days >= 2:
        return f"{days}d"
    if hours:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{minutes}m" if minutes else f"{seconds}s"
