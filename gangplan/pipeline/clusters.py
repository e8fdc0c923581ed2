"""Rendering and checks of a cluster's platform and tenants, before any run."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.emit import build_header_lines
from gangplan.findings import Finding, assign_cluster
from gangplan.generators import PLATFORM_GENERATORS, generate_tenant_objects
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body, dump_all
from gangplan.pipeline.checks import check_cluster_objects_together
from gangplan.pipeline.worker import (
    ClusterObjects,
    TaskResult,
    WorkerState,
    build_cluster_objects_before_runs,
    check_built_file_at_gate,
    judge_objects_by_cluster_policies,
    run_overlay_on_object_groups,
    store_staged_text,
)
from gangplan.policy.export import export_objects
from gangplan.policy.objects import POLICY_FILE
from gangplan.resolve import resolve_site, resolve_tenants
from gangplan.trace import Tracer
from gangplan.waivers import excuse_waived_cluster_findings, remove_waiver_marks


def expand_cluster_platform_and_tenants(
    worker: WorkerState, cluster: str, teams: Sequence[str] = ()
) -> TaskResult:
    """Render and check a cluster's platform and tenants, before any run.

    With `teams`, only those tenants.
    """
    # Imports tables of eleven modules, which a command for named specs does not need.
    from gangplan.trace.standing import TracedClusterObjects, build_cluster_tracer, join_tracers

    result = TaskResult()
    made = (
        _expand_cluster_tenants_of_teams(worker, cluster, teams)
        if teams
        else build_cluster_objects_before_runs(worker, cluster)
    )
    for outcome in made.outcomes:
        result.findings += outcome.findings
        result.is_lasting &= outcome.is_lasting
        for name, numbers in outcome.matched.items():
            result.matched.setdefault(name, set()).update(numbers)
    site, built, parts = made.site, made.built, _list_cluster_render_files(cluster, made)
    wrong: list[Finding] = []
    builder, tracers = worker.builders[cluster], []
    for (path, owner, before), bodies in zip(parts, built, strict=True):
        standing = TracedClusterObjects(worker.workspace, cluster, site, owner, tuple(before))
        tracer = build_cluster_tracer(standing, bodies, builder.component)
        tracers.append((tracer, len(bodies)))
        found, is_telling = check_built_file_at_gate(worker, cluster, bodies, before, site.platform, tracer)
        wrong += found
        if bodies:
            text = dump_all(bodies, build_header_lines(owner.source))
            store_staged_text(worker, result, path, text, is_telling)
        result.objects += len(bodies)
    if not teams:
        _put_cluster_policies_on_stage(worker, cluster, result)
    result.findings += wrong
    is_sound = not any(one.is_error for one in wrong)
    if not teams and is_sound:
        flat = [
            [body for group in groups for body in group] for groups in (built, [part[2] for part in parts])
        ]
        spec = worker.workspace.clusters[cluster].spec
        levels = {one.namespace: one.pod_security.level for one in made.tenants}
        told = join_tracers(tracers), builder.component, levels
        result.findings += check_cluster_objects_together(spec, site, flat[0], flat[1], *told)
    if is_sound:
        _judge_cluster_objects_by_policies(worker, cluster, parts, built, join_tracers(tracers), result)
    owners = {one.namespace: one.team for one in resolve_tenants(worker.workspace, cluster)}
    findings = excuse_waived_cluster_findings(result.findings, worker.workspace.waivers, cluster, owners)
    result.findings = assign_cluster(cluster, findings)
    return result


def _judge_cluster_objects_by_policies(
    worker: WorkerState,
    cluster: str,
    parts: Sequence[tuple[str, Site | Tenant, list[Body]]],
    built: Sequence[list[Body]],
    tracer: Tracer,
    result: TaskResult,
) -> None:
    """Evaluate the cluster's policies on its platform and tenants, each without the marks of its waivers."""
    waived = [getattr(owner, "waived", ()) for _, owner, _ in parts]
    bare = [
        remove_waiver_marks(body, own) for own, bodies in zip(waived, built, strict=True) for body in bodies
    ]
    plain = [body for part in parts for body in part[2]]
    result.findings += judge_objects_by_cluster_policies(
        worker, cluster, bare, tracer, result, result.findings, plain
    )


def _put_cluster_policies_on_stage(worker: WorkerState, cluster: str, result: TaskResult) -> None:
    """Put the cluster's policies into a file of their own. No overlay changes it: they are applied here as
    they are."""
    bodies = export_objects(worker.workspace, cluster)
    if bodies:
        source = worker.workspace.clusters[cluster].document.file
        store_staged_text(
            worker, result, f"{cluster}/{POLICY_FILE}", dump_all(bodies, build_header_lines(source)), True
        )
        result.objects += len(bodies)


def _expand_cluster_tenants_of_teams(
    worker: WorkerState, cluster: str, teams: Sequence[str]
) -> ClusterObjects:
    """Return the objects of some tenants alone."""
    tenants = [one for one in resolve_tenants(worker.workspace, cluster) if one.team in teams]
    groups = [generate_tenant_objects(tenant) for tenant in tenants]
    outcomes = [TaskResult() for _ in groups]
    site, built = (
        resolve_site(worker.workspace, cluster),
        run_overlay_on_object_groups(worker, cluster, groups, outcomes),
    )
    return ClusterObjects(site, tenants, groups, built, outcomes)


def _list_cluster_render_files(
    cluster: str, made: ClusterObjects
) -> list[tuple[str, Site | Tenant, list[Body]]]:
    """Return the files in `rendered/`, each with its owner and its objects as generated."""
    tenants = [(f"{cluster}/tenants/{one.team}/tenant.yaml", one) for one in made.tenants]
    owners: list[tuple[str, Site | Tenant]] = [*tenants]
    if len(made.groups) > len(owners):
        owners = [(f"{cluster}/platform/{file}.yaml", made.site) for file in PLATFORM_GENERATORS] + owners
    return [(path, owner, bodies) for (path, owner), bodies in zip(owners, made.groups, strict=True)]
