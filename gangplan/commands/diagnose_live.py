"""Evidence about one run, read from its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.absent import build_missing_team_error
from gangplan.commands.common import build_request
from gangplan.commands.connecting import ConnectionFlags, connect_with_flags
from gangplan.commands.logs import find_run_named_by_argument
from gangplan.diagnose.evidence import Evidence, SavedObject
from gangplan.diagnose.read import scan_received_log_for_signs
from gangplan.diagnose.things import find_run_part_of_saved_pod
from gangplan.errors import ToolError
from gangplan.live.logs import find_last_scheduled_run
from gangplan.live.whole import list_rights_to_inspect_run, read_live_run_objects, read_pod_log_ends
from gangplan.model.support import KUEUE_LINES
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import load_workspace


def fetch_evidence_for_diagnose_command(
    name: str, root: Path | None, clusters: Sequence[str], teams: Sequence[str], asked: ConnectionFlags
) -> tuple[str, Evidence]:
    """Return the name of a run, and what its cluster has of it. Reads only. Raises UserError and
    ToolError."""
    wanted = build_request(root, list(clusters), list(teams), None, "serial", 1)
    workspace = load_workspace(wanted.root)
    run = find_run_named_by_argument(workspace, wanted, name)
    cluster = workspace.clusters[run.cluster]
    team = workspace.teams.get(run.team)
    if team is None:
        raise build_missing_team_error(run.team, workspace)
    namespace = namespace_of(cluster.spec, run.team, team.spec)
    platform = resolve_platform_of_cluster_file(cluster)
    made = platform.backends
    access = connect_with_flags(cluster, asked, "diagnose", list_rights_to_inspect_run(namespace, made))
    if run.held is not None and run.held.by == "schedule":
        run = find_last_scheduled_run(access, namespace, run)
    line = KUEUE_LINES.get(platform.kueue.line) if platform.kueue else None
    bodies = read_live_run_objects(access, namespace, run.name, line.api_version if line else "", made)
    if not bodies:
        waits = ", ".join(run.held.waits) if run.held else ""
        why = f": it is created when {waits} has completed" if waits else ""
        raise ToolError(
            f"cluster {run.cluster} has no run {run.name} in {namespace}{why}",
            f"gangplan status --cluster {run.cluster} --team {run.team} shows its runs.",
        )
    pods = [body for body in bodies if body["kind"] == "Pod"]
    logs = [
        scan_received_log_for_signs(
            f"log of {pod['metadata']['name']}", text, find_run_part_of_saved_pod(SavedObject(pod, ""))
        )
        for pod, text in read_pod_log_ends(access, namespace, pods)
    ]
    return run.name, Evidence(
        tuple(SavedObject(body, f"cluster {run.cluster}") for body in bodies), tuple(logs)
    )
