"""Spec files in, rendered texts and findings out: the part of the pipeline that runs on every worker.

A worker has the workspace as a value; its tasks are lists of spec files. Nothing here writes but `Stage.put`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from gangplan.emit import Change, EarlierRuns, Stage, header_lines
from gangplan.findings import Finding, Location, about
from gangplan.generators import platform_objects, run_objects, tenant_objects
from gangplan.model.site import Site, Tenant
from gangplan.objects import Body, dump_all
from gangplan.overlay import OverlayBuilder, PatchError
from gangplan.pipeline.checks import check_objects, check_standing, prove_run
from gangplan.pipeline.kept import named, path_of
from gangplan.pipeline.scope import EVERYTHING, Scope
from gangplan.plan import Unit, plan_unit
from gangplan.plan.sources import sources_of
from gangplan.policy.checks import Police, police_findings, police_of
from gangplan.resolve import resolve, resolve_site, resolve_tenants, target_clusters
from gangplan.resolve.upgrade import Pairs, with_versions
from gangplan.rules.objects import OVERLAY_PATCH
from gangplan.trace import StandingObjects, Tracer, joined, standing_tracer, tracer_of
from gangplan.validate.kueue import Verdict, judge
from gangplan.validate.kueue.contention import Demand, demand_of
from gangplan.validate.network.flows import Flow, flows
from gangplan.validate.scheduler import Fit, admitted_fit
from gangplan.validate.versions import versions_of
from gangplan.validate.world import Run as Judged
from gangplan.validate.world import World, world_of
from gangplan.waivers import Subject, excuse, excuse_standing, unmarked
from gangplan.workspace import RENDERED, Spec, SpecFile, Workspace, load_spec, load_workspace


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a command asks of the workers."""

    clusters: tuple[str, ...] = ()
    stage: Stage | None = None
    keeps_texts: bool = False
    keep_runs: bool = False
    versions: Pairs = ()
    with_flows: bool = False
    closed: frozenset[str] = frozenset()  # clusters that nothing can be resolved on
    scope: Scope = EVERYTHING


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run as planned and named."""

    cluster: str
    name: str
    path: str
    unit: Unit
    verdict: Verdict | None = None
    flows: tuple[Flow, ...] = ()
    fit: Fit | None = None


@dataclass(slots=True)
class Expanded:
    """What a task yields."""

    findings: list[Finding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    jobs: list[tuple[str, str, str, Location]] = field(default_factory=list)  # cluster, namespace, job, place
    matched: dict[str, set[int]] = field(default_factory=dict)
    runs: list[PlannedRun] = field(default_factory=list)
    demands: list[tuple[str, str, Location, Demand]] = field(default_factory=list)  # cluster, job, place
    texts: dict[str, str] = field(default_factory=dict)
    objects: int = 0
    active: int = 0  # runs that are not archived
    policies: set[str] = field(default_factory=set)  # those that judged


@dataclass(slots=True)
class WorkerState:
    """What one worker has: the workspace and, per cluster, the overlay's builder and what stands there.

    Pickled, it is only what it takes to make it anew: a process elsewhere reads the workspace itself, once.
    """

    options: WorkerOptions
    workspace: Workspace
    builders: dict[str, OverlayBuilder]
    earlier: EarlierRuns
    worlds: dict[str, World] = field(default_factory=dict)
    plain: dict[str, World] = field(default_factory=dict)  # the same without any patch
    police: dict[str, Police] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Callable[[Path, WorkerOptions], WorkerState], tuple[Path, WorkerOptions]]:
        return _worker_elsewhere, (self.workspace.root, self.options)


def worker_of(workspace: Workspace, options: WorkerOptions) -> WorkerState:
    """A worker on a workspace, whose findings are reported by whoever read it."""
    builders = {name: OverlayBuilder(component) for name, component in workspace.components.items()}
    return WorkerState(options, workspace, builders, EarlierRuns(workspace.root / RENDERED))


def _worker_elsewhere(root: Path, options: WorkerOptions) -> WorkerState:
    workspace = with_versions(load_workspace(root), options.versions, options.clusters)
    return worker_of(workspace, options)


def expand_specs(worker: WorkerState, files: Sequence[SpecFile]) -> Expanded:
    """Expand some spec files: load, resolve, plan, generate, build, check, stage."""
    result = Expanded()
    planned: dict[str, list[tuple[Unit, Spec]]] = {}
    for file in files:
        for cluster, unit, spec in _plan(worker, file, result):
            planned.setdefault(cluster, []).append((unit, spec))
    for cluster in sorted(planned):
        _render_runs(worker, cluster, planned[cluster], result)
    return result


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
    built = _build(worker, cluster, [bodies for _, _, bodies in parts], result)
    wrong: list[Finding] = []
    builder, tracers = worker.builders[cluster], []
    for (path, owner, before), bodies in zip(parts, built, strict=True):
        standing = StandingObjects(worker.workspace, cluster, site, owner, tuple(before))
        tracers.append((standing_tracer(standing, bodies, builder.component), len(bodies)))
        wrong += check_objects(bodies, before, site.platform, tracers[-1][0], builder)
        if bodies:
            _put(worker, result, path, dump_all(bodies, header_lines(owner.source)))
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
        result.findings += _policies(worker, cluster, bare, tracer, result, result.findings)
    owners = {tenant.namespace: tenant.team for tenant in tenants}
    findings = excuse_standing(result.findings, worker.workspace.waivers, cluster, owners)
    result.findings = about(cluster, findings)
    return result


def _world(worker: WorkerState, cluster: str) -> World:
    """What stands on a cluster before any run, built once per worker."""
    if cluster not in worker.worlds:
        site = resolve_site(worker.workspace, cluster)
        groups = [platform_objects(site), *map(tenant_objects, resolve_tenants(worker.workspace, cluster))]
        built = _build(worker, cluster, groups, Expanded())
        standing = [body for bodies in built for body in bodies]
        spec = worker.workspace.clusters[cluster].spec
        worker.worlds[cluster] = world_of(cluster, spec, versions_of(site.platform), standing)
        generated = tuple(body for bodies in groups for body in bodies)
        worker.plain[cluster] = replace(worker.worlds[cluster], standing=generated)
    return worker.worlds[cluster]


def _policies(
    worker: WorkerState,
    cluster: str,
    bodies: Sequence[Body],
    tracer: Tracer,
    result: Expanded,
    others: Sequence[Finding],
) -> list[Finding]:
    """What the cluster's policies say of objects, beside what was found about them."""
    if cluster not in worker.police:
        standing = _world(worker, cluster).standing
        worker.police[cluster] = police_of(worker.workspace, cluster, standing)
    police = worker.police[cluster]
    result.policies |= police.names
    return police_findings(police, bodies, tracer, others) if police else []


def _plan(worker: WorkerState, file: SpecFile, result: Expanded) -> Iterable[tuple[str, Unit, Spec]]:
    """The units of one spec file on the clusters asked for."""
    spec, findings = load_spec(worker.workspace.root, file)
    result.findings += findings
    if spec is None:
        return
    clusters, findings = target_clusters(worker.workspace, spec)
    result.findings += findings
    for cluster in clusters:
        if cluster in worker.options.closed or not worker.options.scope.takes(cluster, file.team, file.file):
            continue
        job, findings = resolve(worker.workspace, spec, cluster)
        result.findings += about(cluster, findings)
        if job is None:
            continue
        unit, findings = plan_unit(job, spec, sources_of(worker.workspace, spec, cluster))
        result.findings += about(cluster, findings)
        if unit is not None:
            place = spec.document.where(("name",)) if spec.spec.name else Location(file.file, 1, 1)
            result.jobs.append((cluster, job.namespace, job.name, place))
            yield cluster, unit, spec


def _render_runs(worker: WorkerState, cluster: str, units: list[tuple[Unit, Spec]], result: Expanded) -> None:
    """Objects of the units of one cluster: generated, built together, checked, named, staged."""
    groups = [run_objects(unit) for unit, _ in units]
    for (unit, _), before, bodies in zip(units, groups, _build(worker, cluster, groups, result), strict=True):
        where = Location(unit.job.source, 1, 1)
        subject, waivers, begin = Subject.of(unit.job), worker.workspace.waivers, len(result.findings)
        name, kept, found = named(worker.earlier, cluster, unit, bodies, worker.options.keep_runs)
        result.findings += found
        if kept is not None:
            before = bodies = kept
        builder = worker.builders[cluster]
        tracer = tracer_of(unit, bodies, builder.component, before)
        wrong = check_objects(bodies, before, unit.job.platform, tracer, builder)
        result.findings += wrong
        is_sound = not any(finding.is_error for finding in excuse(wrong, waivers, subject))
        if is_sound:
            world, component = _world(worker, cluster), builder.component
            plain = partial(worker.plain.__getitem__, cluster)
            result.findings += prove_run(world, unit, bodies, before, component, plain)
            mine = [one for one in result.findings if one.where.file == unit.job.source]
            others = [*mine, *result.findings[begin:]]
            bare = [unmarked(body, unit.job.waived) for body in bodies]
            result.findings += _policies(worker, cluster, bare, tracer, result, others)
            demand = demand_of(_world(worker, cluster), bodies)
            if demand is not None and not unit.job.is_archived:
                origin = unit.job.origins.get("workers")
                place = origin.where if origin and origin.where else where
                result.demands.append((cluster, f"{unit.job.team}/{unit.job.name}", place, demand))
        text = dump_all(bodies, header_lines(unit.job.source)).replace(unit.run_name, name)
        path = path_of(cluster, unit, name)
        result.findings[begin:] = about(cluster, excuse(result.findings[begin:], waivers, subject))
        _put(worker, result, path, text)
        result.objects += len(bodies)
        result.active += not unit.job.is_archived
        if worker.options.keeps_texts:
            verdict = judge(_world(worker, cluster), bodies) if is_sound else None
            between = _flows(worker, cluster, unit, bodies) if is_sound else ()
            fit = admitted_fit(_world(worker, cluster), bodies, verdict) if verdict else None
            result.runs.append(PlannedRun(cluster, name, path, unit, verdict, between, fit))


def _flows(worker: WorkerState, cluster: str, unit: Unit, bodies: list[Body]) -> tuple[Flow, ...]:
    """Who may talk to whom, when it is asked for."""
    if not worker.options.with_flows:
        return ()
    return flows(_world(worker, cluster), Judged(unit, tuple(bodies)))


def _build(worker: WorkerState, cluster: str, groups: list[list[Body]], result: Expanded) -> list[list[Body]]:
    """All groups through the overlay in one go."""
    builder = worker.builders[cluster]
    try:
        built = iter(builder.build([body for group in groups for body in group]))
    except PatchError as refused:
        result.findings.append(Finding(OVERLAY_PATCH, refused.where, refused.message, refused.help or ""))
        return groups
    result.matched[cluster] = set(builder.matched)
    return [[next(built) for _ in group] for group in groups]


def _put(worker: WorkerState, result: Expanded, path: str, text: str) -> None:
    if worker.options.stage is not None:
        result.changes.append(worker.options.stage.put(path, text))
    if worker.options.keeps_texts:
        result.texts[path] = text
