"""The state of a worker, and what its tasks (`runs.py`, `clusters.py`) have in common.

Nothing here writes but `StagingFolder.put`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path

from gangplan.emit import EarlierRuns, StagingFolder, TreeChange
from gangplan.findings import Finding, Location
from gangplan.generators import PLATFORM_GENERATORS, generate_platform_objects, generate_tenant_objects
from gangplan.incremental.store import RecordStore
from gangplan.model.job import Platform
from gangplan.model.run_facts import RunFacts
from gangplan.model.site import Site, Tenant
from gangplan.mould import Moulds
from gangplan.objects import Body, WrittenParts
from gangplan.overlay import OverlayBuilder, PatchError
from gangplan.pipeline.checks import check_built_objects
from gangplan.pipeline.scope import WHOLE_SCOPE, WorkScope
from gangplan.pipeline.shapes import StoredShapes
from gangplan.plan import RunPlan
from gangplan.policy.checks import PolicyChecker, build_policy_checker, judge_objects_by_policies
from gangplan.policy.places import find_undone_operations
from gangplan.records import dataclass
from gangplan.resolve import resolve_site, resolve_tenants
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.resolve.upgrade import VersionPairs, replace_versions_of_clusters
from gangplan.rules.objects import OVERLAY_PATCH
from gangplan.trace import Tracer
from gangplan.validate.apiserver.schema import check_object_against_api_schema
from gangplan.validate.apiserver.schema_facts import SchemaFacts
from gangplan.validate.kueue import AdmissionVerdict
from gangplan.validate.kueue.contention import RunDemand
from gangplan.validate.network.flows import Flow
from gangplan.validate.scheduler import Fit
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.validate.world import World, build_world_of_cluster
from gangplan.workspace import RENDERED, Workspace, load_workspace


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of a command's workers."""

    clusters: tuple[str, ...] = ()
    stage: StagingFolder | None = None
    keeps_texts: bool = False
    keep_runs: bool = False
    versions: VersionPairs = ()
    with_flows: bool = False
    with_facts: bool = False
    closed: frozenset[str] = frozenset()  # clusters that nothing can be resolved on
    scope: WorkScope = WHOLE_SCOPE
    store: Path | None = None  # the workspace whose cache it uses, if that is another
    conditions: str = ""  # what all results follow from besides the specs (known.py); empty: nothing is kept
    is_brief: bool = False  # keeps neither texts of trials that are alike nor source files of runs


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run as planned and named. `there` are the runs of its job that `rendered/` holds, by name.

    `is_retrained`: one of them has the same spec, so a change of the platform made this a new run.
    """

    cluster: str
    name: str
    path: str
    unit: RunPlan
    verdict: AdmissionVerdict | None = None
    flows: tuple[Flow, ...] = ()
    fit: Fit | None = None
    there: tuple[str, ...] = ()
    is_retrained: bool = False
    at_once: int = 0  # of a trial: how many like it run at the same time; 0: none, or not known
    alike: str = ""  # of a trial: the file of another one that Kueue and nodes treat in the same way


@dataclass(slots=True)
class TaskResult:
    """The result of a task: about a spec, or about a cluster's platform and tenants.

    `file` is the spec, empty if it is about none or several. `is_lasting`: the same files always give this
    result, independent of other files of the task and of what `rendered/` holds besides the run itself.
    """

    file: str = ""
    is_lasting: bool = True
    findings: list[Finding] = field(default_factory=list)
    changes: list[TreeChange] = field(default_factory=list)
    jobs: list[tuple[str, str, str, Location]] = field(default_factory=list)  # cluster, namespace, job, place
    matched: dict[str, set[int]] = field(default_factory=dict)
    runs: list[PlannedRun] = field(default_factory=list)
    demands: list[tuple[str, str, Location, RunDemand]] = field(default_factory=list)  # cluster, job, place
    facts: list[RunFacts] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    objects: int = 0
    active: int = 0  # runs that are neither stopped nor archived
    scripts: set[str] = field(default_factory=set)  # files of launch scripts among the changes
    policies: set[str] = field(default_factory=set)  # those that were evaluated
    telling: set[str] = field(default_factory=set)  # files with new schema facts


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """A cluster's objects before any run: files of its platform, then each tenant, as generated and as built.

    `outcomes` has, for each, the result of the overlay.
    """

    site: Site
    tenants: Sequence[Tenant]
    groups: list[list[Body]]
    built: list[list[Body]]
    outcomes: list[TaskResult]


@dataclass(slots=True)
class WorkerState:
    """The state of one worker: the workspace and, per cluster, the overlay's builder and the cluster's
    objects.

    Pickles only the root and the options: the receiving process reads the workspace itself, once.
    """

    options: WorkerOptions
    workspace: Workspace
    builders: dict[str, OverlayBuilder]
    earlier: EarlierRuns
    worlds: dict[str, World] = field(default_factory=dict)
    plain: dict[str, World] = field(default_factory=dict)  # the same without any patch
    checker: dict[str, PolicyChecker] = field(default_factory=dict)
    standing: dict[str, ClusterObjects] = field(default_factory=dict)
    moulds: Moulds = field(default_factory=Moulds)
    launch_maps: dict[str, TaskResult] = field(default_factory=dict)  # by path
    names: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # of runs, by file and cluster
    is_shown_good: bool = True  # whether all objects that added `facts` were good
    facts: SchemaFacts = field(init=False)
    written: WrittenParts = field(init=False)

    def __post_init__(self) -> None:
        """Create what recognises the parts of the moulds."""
        self.facts, self.written = SchemaFacts(self.moulds.parts), WrittenParts(self.moulds.parts)

    def forget(self, cluster: str) -> None:
        """Drop the objects of a cluster: with hundreds of teams, there are thousands."""
        for kept in (self.worlds, self.plain, self.checker, self.standing):
            kept.pop(cluster, None)

    def __reduce__(self) -> tuple[Callable[[Path, WorkerOptions], WorkerState], tuple[Path, WorkerOptions]]:
        return _recreate_worker_state, (self.workspace.root, self.options)


def create_similar_pipeline_worker(
    other: WorkerState, workspace: Workspace, options: WorkerOptions
) -> WorkerState:
    """Return a worker for a workspace that differs from another's only in specs, with what that one has
    made."""
    store = other.options.store or other.workspace.root
    asked = replace(options, store=store, conditions=other.options.conditions)
    return replace(other, options=asked, workspace=workspace, earlier=EarlierRuns(workspace.root / RENDERED))


def create_pipeline_worker(workspace: Workspace, options: WorkerOptions) -> WorkerState:
    """Return a worker for a workspace, whose findings the caller reports."""
    kept = RecordStore(str(options.store or workspace.root)) if options.conditions else None
    builders = {
        name: OverlayBuilder(component, None if kept is None else StoredShapes(kept, name, component))
        for name, component in workspace.components.items()
    }
    return WorkerState(options, workspace, builders, EarlierRuns(workspace.root / RENDERED))


def _recreate_worker_state(root: Path, options: WorkerOptions) -> WorkerState:
    workspace = replace_versions_of_clusters(load_workspace(root), options.versions, options.clusters)
    return create_pipeline_worker(workspace, options)


def build_cluster_world_before_runs(worker: WorkerState, cluster: str) -> World:
    """Return the world of a cluster before any run, built once per worker."""
    if cluster not in worker.worlds:
        world, generated = _build_world_alone(worker, cluster)
        world = replace(world, workers=_build_worker_cluster_worlds(worker, cluster))
        worker.worlds[cluster] = world
        worker.plain[cluster] = world if generated is None else replace(world, standing=generated)
    return worker.worlds[cluster]


def _build_world_alone(worker: WorkerState, cluster: str) -> tuple[World, tuple[Body, ...] | None]:
    """Return the world of a cluster without others, and its objects as generated if patches changed them."""
    standing, generated = _load_or_build_cluster_objects(worker, cluster)
    file = worker.workspace.clusters[cluster]
    versions = choose_schema_versions_of(resolve_platform_of_cluster_file(file))
    return build_world_of_cluster(cluster, file.spec, versions, standing), generated


def _build_worker_cluster_worlds(worker: WorkerState, cluster: str) -> tuple[World, ...]:
    """Return the worlds of the clusters to which MultiKueue hands runs; none if one of them is not known."""
    file = worker.workspace.clusters[cluster]
    names = file.spec.multi_kueue.clusters if file.spec.multi_kueue is not None else {}
    known = set(worker.workspace.clusters) - worker.options.closed
    if not known.issuperset(names):
        return ()
    return tuple(_build_world_alone(worker, name)[0] for name in sorted(names))


def _load_or_build_cluster_objects(
    worker: WorkerState, cluster: str
) -> tuple[tuple[Body, ...], tuple[Body, ...] | None]:
    """Return the objects of a cluster as built, and as generated if that is not the same.

    An object that a patch breaks is as generated in both: its schema reports it, and proofs of runs read on.
    They follow from the conditions of a command, so they are kept with these.
    """
    store, conditions = (
        RecordStore(str(worker.options.store or worker.workspace.root)),
        worker.options.conditions,
    )
    name = f"worlds/{cluster}"
    held = store.get(name) if conditions else None
    if isinstance(held, dict) and held["of"] == conditions:
        return tuple(held["built"]), tuple(held["generated"]) if held["generated"] else None
    made = build_cluster_objects_before_runs(worker, cluster)
    generated = tuple(body for bodies in made.groups for body in bodies)
    built = tuple(body for bodies in made.built for body in bodies)
    if built != generated:
        versions = choose_schema_versions_of(
            resolve_platform_of_cluster_file(worker.workspace.clusters[cluster])
        )
        built = tuple(
            plain if body != plain and check_object_against_api_schema(body, versions) else body
            for body, plain in zip(built, generated, strict=True)
        )
    if conditions and all(outcome.is_lasting for outcome in made.outcomes):
        store.put(name, {"of": conditions, "built": built, "generated": generated != built and generated})
    return built, None if generated == built else generated


def build_cluster_objects_before_runs(worker: WorkerState, cluster: str) -> ClusterObjects:
    """Return the objects of a cluster before any run, made once per worker."""
    if cluster not in worker.standing:
        site, tenants = resolve_site(worker.workspace, cluster), resolve_tenants(worker.workspace, cluster)
        groups = [generate_platform_objects(site, file) for file in PLATFORM_GENERATORS]
        groups += map(generate_tenant_objects, tenants)
        outcomes = [TaskResult() for _ in groups]
        built = run_overlay_on_object_groups(worker, cluster, groups, outcomes)
        worker.standing[cluster] = ClusterObjects(site, tenants, groups, built, outcomes)
    return worker.standing[cluster]


def judge_objects_by_cluster_policies(
    worker: WorkerState,
    cluster: str,
    bodies: Sequence[Body],
    tracer: Tracer,
    result: TaskResult,
    others: Sequence[Finding],
    before: Sequence[Body],
) -> list[Finding]:
    """Return what the cluster's policies find in objects, in addition to what was found about them
    (`others`).

    `before` are the objects without patches; none if they are not known.
    """
    if cluster not in worker.checker:
        standing = build_cluster_world_before_runs(worker, cluster).standing
        worker.checker[cluster] = build_policy_checker(worker.workspace, cluster, standing)
    checker = worker.checker[cluster]
    result.policies |= checker.names
    if not checker:
        return []
    component = worker.builders[cluster].component
    undone = (
        find_undone_operations(checker.evaluator, component, before) if before and component.patches else None
    )
    found = judge_objects_by_policies(checker, bodies, tracer, others, undone)
    if not checker.has_own:
        return found
    from gangplan.policy.made import (
        check_created_objects_by_policies,
    )  # few workspaces have policies of their own

    return [*found, *check_created_objects_by_policies(checker, bodies, tracer)]


def run_overlay_on_object_groups(
    worker: WorkerState, cluster: str, groups: list[list[Body]], results: Sequence[TaskResult]
) -> list[list[Body]]:
    """Build all groups with the overlay in one go; each has the result that it belongs to."""
    builder = worker.builders[cluster]
    try:
        built = iter(builder.build([body for group in groups for body in group]))
    except PatchError as refused:
        # A patch that fails on one object fails all that are built with it.
        finding = Finding(OVERLAY_PATCH, refused.where, refused.message, refused.help or "")
        for result in results:
            result.is_lasting = False
        results[0].findings.append(finding)
        return groups
    hits = iter(builder.hits)
    for group, result in zip(groups, results, strict=True):
        result.matched.setdefault(cluster, set()).update(*(next(hits) for _ in group))
    return [[next(built) for _ in group] for group in groups]


def check_built_file_at_gate(
    worker: WorkerState,
    cluster: str,
    bodies: Sequence[Body],
    before: Sequence[Body],
    platform: Platform,
    tracer: Tracer,
) -> tuple[list[Finding], bool]:
    """Return what the gate finds in the built objects of a file, and whether the file is telling.

    Telling, if that is requested, means that it has schema facts that the files before it lack.
    """
    shown: list[bool] = []
    if worker.options.with_facts:
        versions = choose_schema_versions_of(platform)
        shown = [not worker.facts.are_new([body], versions) for body in bodies]
    told = shown if worker.is_shown_good else []
    found = check_built_objects(bodies, before, platform, tracer, worker.builders[cluster], told)
    worker.is_shown_good &= not found
    return found, not all(shown)


def has_new_schema_facts(worker: WorkerState, bodies: Sequence[Body], platform: Platform) -> bool:
    """Return whether objects that the gate does not judge have schema facts that those before them lack."""
    is_more = worker.options.with_facts and worker.facts.are_new(bodies, choose_schema_versions_of(platform))
    worker.is_shown_good &= not is_more
    return is_more


def store_staged_text(
    worker: WorkerState, result: TaskResult, path: str, text: str, is_telling: bool
) -> None:
    """Put a text on the stage, keep it and note it as telling, as the options say."""
    if is_telling:
        result.telling.add(path)
    if worker.options.stage is not None:
        result.changes.append(worker.options.stage.put(path, text))
    if worker.options.keeps_texts:
        result.texts[path] = text
