"""Evidence about one run, read from its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.absent import no_team
from gangplan.commands.common import request
from gangplan.commands.connecting import Asked, connected
from gangplan.commands.logs import run_named
from gangplan.diagnose.evidence import Evidence, Thing
from gangplan.diagnose.read import of_text
from gangplan.diagnose.things import who_of
from gangplan.errors import ToolError
from gangplan.live.whole import logs_of, objects_of, rights
from gangplan.model.support import KUEUE
from gangplan.resolve.platform import resolve_platform
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import load_workspace


def fetched(
    name: str, root: Path | None, clusters: Sequence[str], teams: Sequence[str], asked: Asked
) -> tuple[str, Evidence]:
    """Return the name of a run, and what its cluster has of it. Reads only. Raises UserError and
    ToolError."""
    wanted = request(root, list(clusters), list(teams), None, "serial", 1)
    workspace = load_workspace(wanted.root)
    run = run_named(workspace, wanted, name)
    cluster = workspace.clusters[run.cluster]
    team = workspace.teams.get(run.team)
    if team is None:
        raise no_team(run.team, workspace)
    namespace = namespace_of(cluster.spec, run.team, team.spec)
    platform = resolve_platform(cluster)
    made = platform.backends
    access = connected(cluster, asked, "diagnose", rights(namespace, made))
    line = KUEUE.get(platform.kueue.line) if platform.kueue else None
    bodies = objects_of(access, namespace, run.name, line.api_version if line else "", made)
    if not bodies:
        raise ToolError(
            f"cluster {run.cluster} has no run {run.name} in {namespace}",
            f"gangplan status --cluster {run.cluster} --team {run.team} shows its runs.",
        )
    pods = [body for body in bodies if body["kind"] == "Pod"]
    logs = [
        of_text(f"log of {pod['metadata']['name']}", text, who_of(Thing(pod, "")))
        for pod, text in logs_of(access, namespace, pods)
    ]
    return run.name, Evidence(tuple(Thing(body, f"cluster {run.cluster}") for body in bodies), tuple(logs))
