"""Rendering and checks of a cluster's platform and tenants, before any run."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.emit import header_lines
from gangplan.findings import Finding, about
from gangplan.generators import PLATFORM_GENERATORS, tenant_objects
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body, dump_all
from gangplan.pipeline.checks import check_standing
from gangplan.pipeline.worker import (
    Expanded,
    Standing,
    WorkerState,
    build,
    check,
    policies_say,
    put,
    standing_on,
)
from gangplan.policy.export import exported
from gangplan.policy.objects import POLICY_FILE
from gangplan.resolve import resolve_site, resolve_tenants
from gangplan.waivers import excuse_standing, unmarked


def expand_cluster(worker: WorkerState, cluster: str, teams: Sequence[str] = ()) -> Expanded:
    """Render and check a cluster's platform and tenants, before any run.

    With `teams`, only those tenants.
    """
    # Imports tables of eleven modules, which a command for named specs does not need.
    from gangplan.trace.standing import StandingObjects, joined, standing_tracer

    result = Expanded()
    made = _of_teams(worker, cluster, teams) if teams else standing_on(worker, cluster)
    for outcome in made.outcomes:
        result.findings += outcome.findings
        result.is_lasting &= outcome.is_lasting
        for name, numbers in outcome.matched.items():
            result.matched.setdefault(name, set()).update(numbers)
    site, built, parts = made.site, made.built, _parts(cluster, made)
    wrong: list[Finding] = []
    builder, tracers = worker.builders[cluster], []
    for (path, owner, before), bodies in zip(parts, built, strict=True):
        standing = StandingObjects(worker.workspace, cluster, site, owner, tuple(before))
        tracers.append((standing_tracer(standing, bodies, builder.component), len(bodies)))
        found, is_telling = check(worker, cluster, bodies, before, site.platform, tracers[-1][0])
        wrong += found
        if bodies:
            put(worker, result, path, dump_all(bodies, header_lines(owner.source)), is_telling)
        result.objects += len(bodies)
    if not teams:
        _put_policies(worker, cluster, result)
    result.findings += wrong
    if not teams and not wrong:
        flat = [
            [body for group in groups for body in group] for groups in (built, [part[2] for part in parts])
        ]
        spec = worker.workspace.clusters[cluster].spec
        levels = {one.namespace: one.pod_security.level for one in made.tenants}
        told = joined(tracers), builder.component, levels
        result.findings += check_standing(spec, site, flat[0], flat[1], *told)
    if not wrong:
        waived = [getattr(owner, "waived", ()) for _, owner, _ in parts]
        bare = [unmarked(body, own) for own, bodies in zip(waived, built, strict=True) for body in bodies]
        tracer, plain = joined(tracers), [body for part in parts for body in part[2]]
        result.findings += policies_say(worker, cluster, bare, tracer, result, result.findings, plain)
    owners = {one.namespace: one.team for one in resolve_tenants(worker.workspace, cluster)}
    findings = excuse_standing(result.findings, worker.workspace.waivers, cluster, owners)
    result.findings = about(cluster, findings)
    return result


def _put_policies(worker: WorkerState, cluster: str, result: Expanded) -> None:
    """Put the cluster's policies into a file of their own. No overlay changes it: they are applied here as
    they are."""
    bodies = exported(worker.workspace, cluster)
    if bodies:
        source = worker.workspace.clusters[cluster].document.file
        put(worker, result, f"{cluster}/{POLICY_FILE}", dump_all(bodies, header_lines(source)), True)
        result.objects += len(bodies)


def _of_teams(worker: WorkerState, cluster: str, teams: Sequence[str]) -> Standing:
    """Return the objects of some tenants alone."""
    tenants = [one for one in resolve_tenants(worker.workspace, cluster) if one.team in teams]
    groups = [tenant_objects(tenant) for tenant in tenants]
    outcomes = [Expanded() for _ in groups]
    site, built = resolve_site(worker.workspace, cluster), build(worker, cluster, groups, outcomes)
    return Standing(site, tenants, groups, built, outcomes)


def _parts(cluster: str, made: Standing) -> list[tuple[str, Site | Tenant, list[Body]]]:
    """Return the files in `rendered/`, each with its owner and its objects as generated."""
    tenants = [(f"{cluster}/tenants/{one.team}/tenant.yaml", one) for one in made.tenants]
    owners: list[tuple[str, Site | Tenant]] = [*tenants]
    if len(made.groups) > len(owners):
        owners = [(f"{cluster}/platform/{file}.yaml", made.site) for file in PLATFORM_GENERATORS] + owners
    return [(path, owner, bodies) for (path, owner), bodies in zip(owners, made.groups, strict=True)]
