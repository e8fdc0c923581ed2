"""The objects of a cluster, from a preview: the world in which commands judge runs."""

from __future__ import annotations

from dataclasses import replace

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.source import load_objects
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.validate.world import World, build_world_of_cluster


def build_previewed_world(request: Request, cluster: str, result: Result) -> World:
    """Return the platform and all tenants of a cluster as built, and its nodes.

    `result` is the preview of the request; if that was of some specs or teams, everything is rendered again.
    """
    is_part = bool(request.specs or request.teams)
    whole = (
        preview_render(replace(request, clusters=(cluster,), specs=(), teams=()), result.workspace)
        if is_part
        else result
    )
    standing = [
        body
        for path, text in sorted(whole.texts.items())
        if path.startswith(f"{cluster}/") and "/runs/" not in path
        for body in load_objects(text)
    ]
    file = result.workspace.clusters[cluster]
    return build_world_of_cluster(
        cluster, file.spec, choose_schema_versions_of(resolve_platform_of_cluster_file(file)), standing
    )
