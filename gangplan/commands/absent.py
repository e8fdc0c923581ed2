"""What is said of a cluster that a flag names and the workspace does not have."""

from __future__ import annotations

from gangplan.errors import UserError
from gangplan.workspace import OVERLAYS, Workspace, nearest


def no_cluster(name: str, workspace: Workspace | None) -> UserError:
    """Why there is no such cluster: nobody describes it, or what does so cannot be read."""
    if workspace is not None and name in workspace.unread:
        return UserError(f"{OVERLAYS}/{name}/cluster.yaml cannot be read", "`gangplan validate` says why.")
    known = workspace.clusters if workspace is not None else {}
    return UserError(f"there is no cluster '{name}'", nearest(name, known))
