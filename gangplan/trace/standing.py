"""Trace the objects of a cluster that exist before any run: its platform and its tenants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gangplan.component import Component
from gangplan.findings import FieldPath, Location
from gangplan.generators import generate_platform_objects, generate_tenant_objects
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.resolve import resolve_site, resolve_tenants
from gangplan.trace.cause import Cause, Trace, build_trace_from_causes
from gangplan.trace.files import TracedFiles
from gangplan.trace.patched import is_touched, trace_patch_causes, trace_path_back_through_patch
from gangplan.trace.place import ClusterObjectContext
from gangplan.trace.table import CauseTable, build_cause_finder_from_table
from gangplan.trace.tracing import Tracer
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TracedClusterObjects:
    """A file of a cluster's platform, or a tenant: its sources and its generated objects."""

    workspace: Workspace
    name: str
    site: Site
    owner: Site | Tenant
    before: tuple[Body, ...]

    @property
    def tenant(self) -> Tenant | None:
        """The tenant; None for the platform."""
        return self.owner if isinstance(self.owner, Tenant) else None

    @property
    def home(self) -> Location:
        """The file that all objects come from."""
        return Location(self.owner.source, 1, 1)


def find_traced_cluster_objects(
    workspace: Workspace, cluster: str, file: str, team: str = ""
) -> TracedClusterObjects | None:
    """Return the objects of a cluster's platform file, or of tenant `team`; None if it is not there."""
    site = resolve_site(workspace, cluster)
    if not team:
        return TracedClusterObjects(
            workspace, cluster, site, site, tuple(generate_platform_objects(site, file))
        )
    tenants = (one for one in resolve_tenants(workspace, cluster) if one.team == team)
    tenant = next(tenants, None)
    if tenant is None:
        return None
    return TracedClusterObjects(workspace, cluster, site, tenant, tuple(generate_tenant_objects(tenant)))


def trace_standing(
    standing: TracedClusterObjects, bodies: Sequence[Body], index: int, path: FieldPath, component: Component
) -> Trace:
    """Return where a field of a platform's or tenant's built object comes from, like `trace` for runs."""
    before, way = standing.before[index], path
    if component.patches and is_touched(component, before):
        found = trace_path_back_through_patch(before, bodies[index], path)
        if found is None:
            return build_trace_from_causes(
                trace_patch_causes(component, before, bodies[index], path), standing.home
            )
        way = found
    return build_trace_from_causes(
        _build_cause_finder_of_cluster_object(standing, before)(way), standing.home
    )


def build_cluster_tracer(
    standing: TracedClusterObjects, bodies: Sequence[Body], component: Component
) -> Tracer:
    """Return `trace_standing` as a tracer for many fields."""
    return lambda index, path: trace_standing(standing, bodies, index, path, component)


def join_tracers(parts: Sequence[tuple[Tracer, int]]) -> Tracer:
    """Return one tracer for the consecutive objects of several files, given the number of objects in each."""

    def tracer(index: int, path: FieldPath) -> Trace:
        for one, count in parts:
            if index < count:
                return one(index, path)
            index -= count
        raise IndexError(index)

    return tracer


def _build_cause_finder_of_cluster_object(
    standing: TracedClusterObjects, before: Body
) -> Callable[[FieldPath], list[Cause]]:
    workspace, tenant = standing.workspace, standing.tenant
    files = TracedFiles(
        None,
        workspace.teams[tenant.team].document if tenant else None,
        workspace.clusters[standing.name].document,
        workspace.catalog_document,
    )
    place = ClusterObjectContext(workspace, standing.name, standing.site, tenant, files, before)
    if workspace.sweeps:
        from gangplan.trace import sweeps  # few workspaces have sweeps

        if sweeps.is_of_sweep(place):
            return partial(sweeps.trace_sweep_object_causes, place)
    return build_cause_finder_from_table(
        _load_cause_tables_of_traced_objects(tenant is not None).get(before["kind"]), place, before
    )


def _load_cause_tables_of_traced_objects(is_tenant: bool) -> Mapping[str, CauseTable]:
    """Return the tables by kind.

    They are imported with the first finding, because they slow down the start.
    """
    if is_tenant:
        from gangplan.trace.tenant import TENANT_TABLES

        return TENANT_TABLES
    from gangplan.trace.platform import PLATFORM_TABLES

    return PLATFORM_TABLES
