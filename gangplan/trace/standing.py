"""Trace the objects of a cluster that exist before any run: its platform and its tenants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gangplan.component import Component
from gangplan.findings import Location
from gangplan.generators import platform_objects, tenant_objects
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.resolve import resolve_site, resolve_tenants
from gangplan.trace.cause import Cause, Path, Trace, trace_of
from gangplan.trace.files import Files
from gangplan.trace.patched import generated_path, is_touched, patch_causes
from gangplan.trace.place import StandingPlace
from gangplan.trace.table import Table, looked_up
from gangplan.trace.tracing import Tracer
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class StandingObjects:
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


def standing_of(workspace: Workspace, cluster: str, file: str, team: str = "") -> StandingObjects | None:
    """Return the objects of a cluster's platform file, or of tenant `team`; None if it is not there."""
    site = resolve_site(workspace, cluster)
    if not team:
        return StandingObjects(workspace, cluster, site, site, tuple(platform_objects(site, file)))
    tenants = (one for one in resolve_tenants(workspace, cluster) if one.team == team)
    tenant = next(tenants, None)
    if tenant is None:
        return None
    return StandingObjects(workspace, cluster, site, tenant, tuple(tenant_objects(tenant)))


def trace_standing(
    standing: StandingObjects, bodies: Sequence[Body], index: int, path: Path, component: Component
) -> Trace:
    """Return where a field of a platform's or tenant's built object comes from, like `trace` for runs."""
    before, way = standing.before[index], path
    if component.patches and is_touched(component, before):
        found = generated_path(before, bodies[index], path)
        if found is None:
            return trace_of(patch_causes(component, before, path), standing.home)
        way = found
    return trace_of(_causes(standing, before)(way), standing.home)


def standing_tracer(standing: StandingObjects, bodies: Sequence[Body], component: Component) -> Tracer:
    """Return `trace_standing` as a tracer for many fields."""
    return lambda index, path: trace_standing(standing, bodies, index, path, component)


def joined(parts: Sequence[tuple[Tracer, int]]) -> Tracer:
    """Return one tracer for the consecutive objects of several files, given the number of objects in each."""

    def tracer(index: int, path: Path) -> Trace:
        for one, count in parts:
            if index < count:
                return one(index, path)
            index -= count
        raise IndexError(index)

    return tracer


def _causes(standing: StandingObjects, before: Body) -> Callable[[Path], list[Cause]]:
    workspace, tenant = standing.workspace, standing.tenant
    files = Files(
        None,
        workspace.teams[tenant.team].document if tenant else None,
        workspace.clusters[standing.name].document,
        workspace.catalog_document,
    )
    place = StandingPlace(workspace, standing.name, standing.site, tenant, files, before)
    if workspace.sweeps:
        from gangplan.trace import sweeps  # few workspaces have sweeps

        if sweeps.is_of_sweep(place):
            return partial(sweeps.standing, place)
    return looked_up(_tables(tenant is not None).get(before["kind"]), place, before)


def _tables(is_tenant: bool) -> Mapping[str, Table]:
    """Return the tables by kind.

    They are imported with the first finding, because they slow down the start.
    """
    if is_tenant:
        from gangplan.trace.tenant import TENANT

        return TENANT
    from gangplan.trace.platform import PLATFORM

    return PLATFORM
