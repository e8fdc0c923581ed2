"""MultiKueue: what has to be the same on the clusters that runs are handed to."""

from __future__ import annotations

from gangplan.resolve.checks.notes import Notes
from gangplan.workspace import Workspace


def check(notes: Notes, workspace: Workspace) -> None:
    """Findings about worker clusters."""
    spec = notes.spec
    if spec.multi_kueue is None:
        return
    for name, pool in spec.node_pools.items():
        if pool.autoscale:
            notes.error(
                "multikueue-autoscale",
                ("nodePools", name, "autoscale"),
                "Kueue makes a queue inactive that both asks for nodes and hands runs to other clusters",
                "Remove autoscale here and set it on the worker clusters, or remove multiKueue.",
                key=True,
            )
    for name in spec.multi_kueue.clusters:
        path = ("multiKueue", "clusters", name)
        if name == notes.cluster.name:
            notes.error(
                "multikueue-self", path, "a cluster cannot hand runs to itself", "Remove it.", key=True
            )
            continue
        worker = workspace.clusters.get(name)
        if worker is None:
            continue  # a cluster of somebody else's workspace
        for team, queue in spec.teams.items():
            there = worker.spec.teams.get(team)
            if there is None or there.queue != queue.queue:
                found = "is not there" if there is None else f"has queue '{there.queue}' there"
                notes.error(
                    "multikueue-queue",
                    path,
                    f"team '{team}' {found}: its runs are never handed to {name}, which needs queue '{queue.queue}'",
                    f"Add {team}: {{queue: {queue.queue}}} to the teams of {name}.",
                    key=True,
                )
