"""Spec files in, rendered texts and findings out: the part of the pipeline that runs on every worker.

A worker reads the workspace once; its tasks are lists of spec files. Nothing here writes but `Stage.put`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gangplan.emit import Change, EarlierRun, EarlierRuns, Stage, header_lines
from gangplan.errors import InternalError
from gangplan.findings import Finding, Location, Severity, error, note, warning
from gangplan.generators import platform_objects, run_objects, tenant_objects
from gangplan.model.job import Platform
from gangplan.objects import Body, dump, dump_all, ref_of
from gangplan.overlay import Builder, Component, PatchError, load_component
from gangplan.plan import Unit, plan_unit
from gangplan.plan.names import PLACEHOLDER, run_name
from gangplan.resolve import resolve, resolve_site, resolve_tenants, target_clusters
from gangplan.resolve.shares import capacity
from gangplan.resolve.upgrade import Pairs, with_versions
from gangplan.validate.agreement import judge_standing
from gangplan.validate.gate import judge
from gangplan.validate.schema import SchemaVersions
from gangplan.validate.schema_messages import Problem, dotted
from gangplan.workspace import RENDERED, Spec, SpecFile, Workspace, load, load_spec


@dataclass(frozen=True, slots=True)
class Options:
    """What a command asks of the workers."""

    root: Path
    clusters: tuple[str, ...] = ()
    stage: Stage | None = None
    keeps_texts: bool = False
    keep_runs: bool = False
    versions: Pairs = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One run as planned and named."""

    cluster: str
    name: str
    path: str
    unit: Unit


@dataclass(slots=True)
class Expanded:
    """What a task yields."""

    findings: list[Finding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    jobs: list[tuple[str, str, str, Location]] = field(default_factory=list)  # cluster, namespace, job, place
    matched: dict[str, set[int]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    objects: int = 0


@dataclass(slots=True)
class Worker:
    """The state of one worker: the workspace and, per cluster, the overlay's builder."""

    options: Options
    workspace: Workspace
    builders: dict[str, Builder]
    earlier: EarlierRuns


_worker: list[Worker] = []


def set_up(options: Options) -> None:
    """Read the workspace for this worker. Its findings were reported by the process that started the work."""
    workspace = with_versions(load(options.root)[0], options.versions, options.clusters)
    builders = {name: Builder(load_component(options.root, name)[0]) for name in workspace.clusters}
    _worker[:] = [Worker(options, workspace, builders, EarlierRuns(options.root / RENDERED))]


def expand_specs(files: Sequence[SpecFile]) -> Expanded:
    """Expand some spec files: load, resolve, plan, generate, build, check, stage."""
    worker, result = _current(), Expanded()
    planned: dict[str, list[tuple[Unit, Spec]]] = {}
    for file in files:
        for cluster, unit, spec in _plan(worker, file, result):
            planned.setdefault(cluster, []).append((unit, spec))
    for cluster in sorted(planned):
        _render_runs(worker, cluster, planned[cluster], result)
    return result


def expand_cluster(cluster: str, teams: Sequence[str] = ()) -> Expanded:
    """Expand what stands on a cluster before any run: the platform, and its tenants.

    With `teams`, only those tenants.
    """
    worker, result = _current(), Expanded()
    site = resolve_site(worker.workspace, cluster)
    parts: list[tuple[str, str, list[Body]]] = []
    if not teams:
        parts.append((f"{cluster}/platform/platform.yaml", site.source, platform_objects(site)))
    for tenant in resolve_tenants(worker.workspace, cluster):
        if not teams or tenant.team in teams:
            path = f"{cluster}/tenants/{tenant.team}/tenant.yaml"
            parts.append((path, tenant.source, tenant_objects(tenant)))
    built = _build(worker, cluster, [bodies for _, _, bodies in parts], result)
    for (path, source, before), bodies in zip(parts, built, strict=True):
        builder = worker.builders[cluster]
        result.findings += check_objects(bodies, before, site.platform, Location(source), builder)
        if bodies:
            _put(worker, result, path, dump_all(bodies, header_lines(source)))
        result.objects += len(bodies)
    if not teams:
        flat = [
            [body for group in groups for body in group] for groups in (built, [part[2] for part in parts])
        ]
        sources = [Location(source) for _, source, bodies in parts for _ in bodies]
        result.findings += _check_standing(worker, cluster, flat[0], flat[1], sources)
    return result


def _check_standing(
    worker: Worker, cluster: str, built: list[Body], before: list[Body], sources: list[Location]
) -> list[Finding]:
    """What the objects of a cluster say together: names that meet, quotas, caps and bounds that agree."""
    spec = worker.workspace.clusters[cluster].spec
    pools = {flavor.name: flavor.pool for flavor in resolve_site(worker.workspace, cluster).flavors}
    offered = {flavor: capacity(spec.node_pools[pool]) for flavor, pool in pools.items()}
    judged = judge_standing(built, None if spec.overcommit else offered)
    if not any(judged):
        return []
    own = judge_standing(before, None if spec.overcommit else offered)
    component = worker.builders[cluster].component
    return [
        finding
        for body, wrong, generated, where in zip(built, judged, own, sources, strict=True)
        for finding in _findings_of(body, wrong, generated, where, component)
    ]


def _current() -> Worker:
    if not _worker:
        raise InternalError("a worker was used before it was set up")
    return _worker[0]


def _plan(worker: Worker, file: SpecFile, result: Expanded) -> Iterable[tuple[str, Unit, Spec]]:
    """The units of one spec file on the clusters asked for."""
    spec, findings = load_spec(worker.options.root, file)
    result.findings += findings
    if spec is None:
        return
    clusters, findings = target_clusters(worker.workspace, spec)
    result.findings += findings
    for cluster in clusters:
        if worker.options.clusters and cluster not in worker.options.clusters:
            continue
        job, findings = resolve(worker.workspace, spec, cluster)
        result.findings += findings
        if job is None:
            continue
        unit, findings = plan_unit(job, spec)
        result.findings += findings
        if unit is not None:
            place = spec.document.where(("name",)) if spec.spec.name else Location(file.file, 1, 1)
            result.jobs.append((cluster, job.namespace, job.name, place))
            yield cluster, unit, spec


def _render_runs(worker: Worker, cluster: str, units: list[tuple[Unit, Spec]], result: Expanded) -> None:
    """Objects of the units of one cluster: generated, built together, checked, named, staged."""
    groups = [run_objects(unit) for unit, _ in units]
    for (unit, _), before, bodies in zip(units, groups, _build(worker, cluster, groups, result), strict=True):
        where = Location(unit.job.source, 1, 1)
        result.findings += check_objects(bodies, before, unit.job.platform, where, worker.builders[cluster])
        name = run_name(unit.job.name, content_hash(bodies, unit.job.run))
        text = dump_all(bodies, header_lines(unit.job.source)).replace(unit.run_name, name)
        path = f"{cluster}/runs/{unit.job.team}/{name}.yaml"
        earlier = worker.earlier.find(path, unit.job.name, unit.job.spec_hash)
        if earlier is not None:
            result.findings.append(_renamed(unit, cluster, earlier, name, worker.options.keep_runs))
            if worker.options.keep_runs:
                path, text = earlier.path, earlier.text
        _put(worker, result, path, text)
        result.objects += len(bodies)
        if worker.options.keeps_texts:
            result.runs.append(Run(cluster, name, path, unit))


def _renamed(unit: Unit, cluster: str, earlier: EarlierRun, name: str, is_kept: bool) -> Finding:
    """The spec is what it was, but its run is another one: the cluster, the image or gangplan changed."""
    where = Location(unit.job.source, 1, 1)
    old = earlier.path.rpartition("/")[2].removesuffix(".yaml")
    if is_kept:
        return note(
            "run-kept",
            where,
            f"run {old} on {cluster} is kept as it was rendered; rendered today it would be {name}",
            "Raise run: in the spec to run with today's platform.",
        )
    message = (
        f"the spec did not change, but its run on {cluster} did ({old} is now {name}): "
        "it trains again when this is synced"
    )
    return warning(
        "run-renamed", where, message, "To keep runs as they were rendered: gangplan render --keep-runs."
    )


def _build(worker: Worker, cluster: str, groups: list[list[Body]], result: Expanded) -> list[list[Body]]:
    """All groups through the overlay in one go."""
    builder = worker.builders[cluster]
    try:
        built = iter(builder.build([body for group in groups for body in group]))
    except PatchError as refused:
        result.findings.append(error("overlay-patch", refused.where, refused.message, refused.help or ""))
        return groups
    result.matched[cluster] = set(builder.matched)
    return [[next(built) for _ in group] for group in groups]


def _put(worker: Worker, result: Expanded, path: str, text: str) -> None:
    if worker.options.stage is not None:
        result.changes.append(worker.options.stage.put(path, text))
    if worker.options.keeps_texts:
        result.texts[path] = text


def content_hash(bodies: Sequence[Body], run: int) -> str:
    """The hash in a run's name: everything that must not change while it runs, and the run number.

    That is the whole runtime and what Trainer makes immutable in the TrainJob (2.2 and later: runtimeRef,
    trainer, activeDeadlineSeconds). Metadata and network policies may change without a new run.
    """
    digest = hashlib.sha256(f"run {run}\n".encode())
    for body in bodies:
        if body["kind"] in ("TrainingRuntime", "TrainJob"):
            digest.update(dump({"kind": body["kind"], "spec": body["spec"]}).encode())
    return digest.hexdigest()


def check_objects(
    bodies: Sequence[Body], before: Sequence[Body], platform: Platform, where: Location, builder: Builder
) -> list[Finding]:
    """The gate: each built object against the schema of its kind and the rules, at the cluster's versions.

    A problem that the generated object did not have is the overlay's.
    """
    versions = SchemaVersions(
        kubernetes=platform.kubernetes.line,
        trainer=platform.trainer.line,
        kueue=platform.kueue.line if platform.kueue else None,
        jobset=platform.jobset.line,
    )
    judged = judge(bodies, versions)
    if not any(judged):
        return []
    own = judge(before, versions)
    return [
        finding
        for built, wrong, generated in zip(bodies, judged, own, strict=True)
        for finding in _findings_of(built, wrong, generated, where, builder.component)
    ]


def _findings_of(
    built: Body, wrong: list[Problem], generated: list[Problem], where: Location, component: Component
) -> list[Finding]:
    """The problems of one object as findings: at the patch that made them, else at the object's source."""
    inherited = {problem.path for problem in generated}
    return [
        Finding(
            problem.rule,
            Severity.ERROR,
            where if problem.path in inherited else component.place_of(problem.path),
            problem.message,
            problem.help or ("" if problem.path in inherited else "Correct the patch."),
            str(ref_of(built)).replace(f"-{PLACEHOLDER}", ""),
            dotted(problem.path),
        )
        for problem in wrong
    ]
