"""`gangplan logs`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gangplan.commands.absent import build_missing_team_error
from gangplan.commands.connecting import ConnectionFlags, connect_with_flags
from gangplan.commands.status import select_clusters_from_flags
from gangplan.errors import Exit, ToolError, UserError
from gangplan.live.logs import (
    PodSelection,
    find_last_scheduled_run,
    list_live_run_pods,
    list_rights_to_read_logs,
    read_run_pod_logs,
    select_log_sources,
)
from gangplan.live.rendered import RunInGit, find_runs_in_git
from gangplan.live.runs import join_live_runs_with_git
from gangplan.model.support import KUEUE_LINES
from gangplan.pipeline.request import Request
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.root import find_path_from_root
from gangplan.workspace import Workspace, load_workspace, suggest_nearest


def logs(
    request: Request, asked: ConnectionFlags, name: str, which: PodSelection, follow: bool, tail: int | None
) -> Exit:
    """Print the logs of a run, or of the run of a spec, each line after the name of its pod.

    Raises UserError for a run that Git does not have, unless its cluster and team are named, and ToolError.
    """
    workspace = load_workspace(request.root)
    run = find_run_named_by_argument(workspace, request, name)
    cluster = workspace.clusters[run.cluster]
    team = workspace.teams.get(run.team)
    if team is None:
        raise build_missing_team_error(run.team, workspace)
    namespace = namespace_of(cluster.spec, run.team, team.spec)
    platform = resolve_platform_of_cluster_file(cluster)
    made = platform.backends
    access = connect_with_flags(cluster, asked, "logs", list_rights_to_read_logs(namespace, made))
    if run.held is not None and run.held.by == "schedule":
        schedule, run = run.job, find_last_scheduled_run(access, namespace, run)
        sys.stderr.write(f"{run.name}, the last run of schedule {schedule}\n")
    pods = list_live_run_pods(access, namespace, run.name, made)
    if not pods:
        line = KUEUE_LINES.get(platform.kueue.line) if platform.kueue else None
        api = line.api_version if line else ""
        rows = join_live_runs_with_git(
            access, run.cluster, {run.team: namespace}, [run], api, is_all=False, made=made
        )
        row = next((one for one in rows if one.name == run.name), None)
        why = f"it is {row.state.word}" if row else "the cluster has no such run"
        more = f" ({row.state.reason})" if row and row.state.reason else ""
        raise ToolError(
            f"run {run.name} has no pods on cluster {run.cluster}: {why}{more}",
            f"gangplan status --cluster {run.cluster} --team {run.team} shows its runs.",
        )
    chosen = select_log_sources(pods, which, run.name)
    width = max(len(one.label) for one in chosen)
    remarks = 0
    for label, text, is_remark in read_run_pod_logs(access, namespace, chosen, follow, tail):
        stream = sys.stderr if is_remark else sys.stdout
        remarks += is_remark
        stream.write(f"{label.ljust(width)} | {text}\n")
        if follow:
            stream.flush()
    return Exit.ENVIRONMENT if remarks == len(chosen) else Exit.CLEAN


def find_run_named_by_argument(workspace: Workspace, request: Request, name: str) -> RunInGit:
    """Return the run with a name, or the current run of a spec, on the only cluster that has it.

    Raises UserError if there is none, or if several clusters have it.
    """
    clusters = [one.name for one in select_clusters_from_flags(workspace, request)]
    every = list(find_runs_in_git(request.root, clusters, request.teams))
    spec = _find_spec_path_of_argument(request.root, name)
    if spec is not None:
        found = [one for one in every if one.source == spec and not one.is_record]
        if not found:
            raise UserError(f"{spec} has no active run in rendered/", "Run gangplan render, or name a run.")
    else:
        found = [one for one in every if one.name == name] or _find_schedules_of_dated_run(every, name)
    where = sorted({one.cluster for one in found})
    if len(where) > 1:
        message = f"'{name}' runs on several clusters: {', '.join(where)}"
        raise UserError(message, "Name one with --cluster NAME.")
    if len(found) > 1:
        names = ", ".join(one.name for one in found[:3]) + (", ..." if len(found) > 3 else "")
        raise UserError(f"'{name}' has {len(found)} runs on cluster {where[0]}: {names}", "Name one of them.")
    if found:
        return found[0]
    if len(request.clusters) == 1 and len(request.teams) == 1:
        return RunInGit(request.clusters[0], request.teams[0], name, "", is_record=False)
    raise UserError(
        f"rendered/ has no run '{name}'",
        suggest_nearest(name, sorted({one.name for one in every}))
        or "A run that Git no longer has needs --cluster NAME and --team NAME.",
    )


def _find_schedules_of_dated_run(every: Iterable[RunInGit], name: str) -> list[RunInGit]:
    """Return the run with a name that ends in its start time, once for each cluster whose schedule may have
    started it."""
    job = re.sub(r"-\d{8}-\d{4}\Z", "", name)
    return [
        replace(one, name=name, held=None)
        for one in every
        if one.held is not None and one.held.by == "schedule" and one.job == job != name
    ]


def _find_spec_path_of_argument(root: Path, name: str) -> str | None:
    """Return the path of a spec from the root if the name is that of a file; None for the name of a run.

    Raises UserError for a spec that does not exist.
    """
    for start in (Path.cwd(), root):
        path = find_path_from_root(root, start, name)
        if not path.startswith("../") and (root / path).is_file():
            return path
    if name.endswith((".yaml", ".yml")):
        raise UserError(
            f"there is no spec {name}", "Name a file in specs/, or a run as gangplan status shows it."
        )
    return None
