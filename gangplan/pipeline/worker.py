"""What a worker has, and what its tasks (`runs.py`, `clusters.py`) have in common.

Nothing here writes but `Stage.put`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gangplan.emit import Change, EarlierRuns, Stage
from gangplan.findings import Finding, Location
from gangplan.generators import platform_objects, tenant_objects
from gangplan.objects import Body
from gangplan.overlay import OverlayBuilder, PatchError
from gangplan.pipeline.scope import EVERYTHING, Scope
from gangplan.plan import Unit
from gangplan.policy.checks import PolicyChecker, checker_of, policy_findings
from gangplan.resolve import resolve_site, resolve_tenants
from gangplan.resolve.upgrade import Pairs, with_versions
from gangplan.rules.objects import OVERLAY_PATCH
from gangplan.trace import Tracer
from gangplan.validate.kueue import Verdict
from gangplan.validate.kueue.contention import RunDemand
from gangplan.validate.network.flows import Flow
from gangplan.validate.scheduler import Fit
from gangplan.validate.versions import versions_of
from gangplan.validate.world import World, world_of
from gangplan.workspace import RENDERED, Workspace, load_workspace


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
    demands: list[tuple[str, str, Location, RunDemand]] = field(default_factory=list)  # cluster, job, place
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
    checker: dict[str, PolicyChecker] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Callable[[Path, WorkerOptions], WorkerState], tuple[Path, WorkerOptions]]:
        return _worker_elsewhere, (self.workspace.root, self.options)


def worker_of(workspace: Workspace, options: WorkerOptions) -> WorkerState:
    """A worker on a workspace, whose findings are reported by whoever read it."""
    builders = {name: OverlayBuilder(component) for name, component in workspace.components.items()}
    return WorkerState(options, workspace, builders, EarlierRuns(workspace.root / RENDERED))


def _worker_elsewhere(root: Path, options: WorkerOptions) -> WorkerState:
    workspace = with_versions(load_workspace(root), options.versions, options.clusters)
    return worker_of(workspace, options)


def world_on(worker: WorkerState, cluster: str) -> World:
    """What stands on a cluster before any run, built once per worker."""
    if cluster not in worker.worlds:
        site = resolve_site(worker.workspace, cluster)
        groups = [platform_objects(site), *map(tenant_objects, resolve_tenants(worker.workspace, cluster))]
        built = build(worker, cluster, groups, Expanded())
        standing = [body for bodies in built for body in bodies]
        spec = worker.workspace.clusters[cluster].spec
        worker.worlds[cluster] = world_of(cluster, spec, versions_of(site.platform), standing)
        generated = tuple(body for bodies in groups for body in bodies)
        worker.plain[cluster] = replace(worker.worlds[cluster], standing=generated)
    return worker.worlds[cluster]


def policies_say(
    worker: WorkerState,
    cluster: str,
    bodies: Sequence[Body],
    tracer: Tracer,
    result: Expanded,
    others: Sequence[Finding],
) -> list[Finding]:
    """What the cluster's policies say of objects, beside what was found about them."""
    if cluster not in worker.checker:
        standing = world_on(worker, cluster).standing
        worker.checker[cluster] = checker_of(worker.workspace, cluster, standing)
    checker = worker.checker[cluster]
    result.policies |= checker.names
    return policy_findings(checker, bodies, tracer, others) if checker else []


def build(worker: WorkerState, cluster: str, groups: list[list[Body]], result: Expanded) -> list[list[Body]]:
    """All groups through the overlay in one go."""
    builder = worker.builders[cluster]
    try:
        built = iter(builder.build([body for group in groups for body in group]))
    except PatchError as refused:
        result.findings.append(Finding(OVERLAY_PATCH, refused.where, refused.message, refused.help or ""))
        return groups
    result.matched[cluster] = set(builder.matched)
    return [[next(built) for _ in group] for group in groups]


def put(worker: WorkerState, result: Expanded, path: str, text: str) -> None:
    """A text on the stage, and among those that are kept, as the options say."""
    if worker.options.stage is not None:
        result.changes.append(worker.options.stage.put(path, text))
    if worker.options.keeps_texts:
        result.texts[path] = text
