"""Checks of schedules in a cluster file: the client image, and access to the API server."""

from __future__ import annotations

from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.schedule import resolve_schedule_backend
from gangplan.rules.schedules import SCHEDULE_CLIENT
from gangplan.workspace import Workspace, suggest_nearest


def check_cluster_file_schedules(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check that the client image is in the catalog, and that the cluster offers the endpoints."""
    spec = notes.spec
    offered = spec.schedules
    if offered is None or resolve_schedule_backend(spec) == "commit":
        return
    images = workspace.catalog.images if workspace.catalog else {}
    if offered.client is None:
        message = "no image is named for the CronJobs that create runs"
        help = "Write client: with an image of the catalog that has kubectl and a shell."
        notes.report(SCHEDULE_CLIENT, ("schedules",), message, help)
    elif offered.client not in images and workspace.catalog is not None:
        message = f"image '{offered.client}' is not in images/catalog.yaml"
        notes.report(
            SCHEDULE_CLIENT, ("schedules", "client"), message, suggest_nearest(offered.client, images)
        )
    if not offered.egress:
        message = "no endpoint is named through which pods reach the API server, and namespaces are closed"
        help = "Add its address to egress, and its name here: schedules.egress."
        notes.report(SCHEDULE_CLIENT, ("schedules",), message, help)
    for index, name in enumerate(offered.egress):
        if name not in spec.egress:
            message = f"the cluster offers no endpoint '{name}'"
            notes.report(
                SCHEDULE_CLIENT, ("schedules", "egress", index), message, suggest_nearest(name, spec.egress)
            )
