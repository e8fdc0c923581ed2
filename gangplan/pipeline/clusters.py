"""What stands on a cluster before any run, its platform and tenants, as texts and findings."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.emit import header_lines
from gangplan.findings import Finding, about
from gangplan.generators import platform_objects, tenant_objects
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body, dump_all
from gangplan.pipeline.checks import check_objects, check_standing
from gangplan.pipeline.worker import Expanded, WorkerState, build, policies_say, put
from gangplan.resolve import resolve_site, resolve_tenants
from gangplan.trace import StandingObjects, joined, standing_tracer
from gangplan.waivers import excuse_standing, unmarked


def expand_cluster(worker: WorkerState, cluster: str, teams: Sequence[str] = ()) -> Expanded:
    """Expand what stands on a cluster before any run: the platform, and its tenants.

    With `teams`, only those tenants.
    """
    result = Expanded()
    site = resolve_site(worker.workspace, cluster)
    parts: list[tuple[str, Site | Tenant, list[Body]]] = []
    if not teams:
        parts.append((f"{cluster}/platform/platform.yaml", site, platform_objects(site)))
    tenants = resolve_tenants(worker.workspace, cluster)
    for tenant in tenants:
        if not teams or tenant.team in teams:
            path = f"{cluster}/tenants/{tenant.team}/tenant.yaml"
            parts.append((path, tenant, tenant_objects(tenant)))
    built = build(worker, cluster, [bodies for _, _, bodies in parts], result)
    wrong: list[Finding] = []
    builder, tracers = worker.builders[cluster], []
    for (path, owner, before), bodies in zip(parts, built, strict=True):
        standing = StandingObjects(worker.workspace, cluster, site, owner, tuple(before))
        tracers.append((standing_tracer(standing, bodies, builder.component), len(bodies)))
        wrong += check_objects(bodies, before, site.platform, tracers[-1][0], builder)
        if bodies:
            put(worker, result, path, dump_all(bodies, header_lines(owner.source)))
        result.objects += len(bodies)
    result.findings += wrong
    if not teams and not wrong:
        flat = [
            [body for group in groups for body in group] for groups in (built, [part[2] for part in parts])
        ]
        spec = worker.workspace.clusters[cluster].spec
        result.findings += check_standing(spec, site, flat[0], flat[1], joined(tracers), builder.component)
    if not wrong:
        waived = [getattr(owner, "waived", ()) for _, owner, _ in parts]
        bare = [unmarked(body, own) for own, bodies in zip(waived, built, strict=True) for body in bodies]
        tracer = joined(tracers)
        result.findings += policies_say(worker, cluster, bare, tracer, result, result.findings)
    owners = {tenant.namespace: tenant.team for tenant in tenants}
    findings = excuse_standing(result.findings, worker.workspace.waivers, cluster, owners)
    result.findings = about(cluster, findings)
    return result
