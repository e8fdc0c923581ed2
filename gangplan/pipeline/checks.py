"""Checks of built objects: each problem is reported at the patch, the spec or the platform file that
caused it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gangplan.component import Component, OperationStates
from gangplan.component.undo import ProblemKey
from gangplan.findings import FieldPath, Finding, Location
from gangplan.model.amounts import format_amount, format_with_unit
from gangplan.model.job import Platform
from gangplan.model.site import Site
from gangplan.objects import Body, ref_of
from gangplan.overlay import OverlayBuilder
from gangplan.pipeline.blame import ProvenRun, problem_key_of
from gangplan.plan.names import HASH_PLACEHOLDER
from gangplan.resolve.counted import resolve_counted_amounts
from gangplan.resolve.shares import compute_pool_capacity
from gangplan.rules.contention import PREEMPTIBLE_WITHOUT_CHECKPOINT, RUNS_BLOCK_RUNS
from gangplan.rules.model import NOTE, Deduplication, Severity
from gangplan.spec.cluster import Cluster
from gangplan.spec.nodes import NodePool
from gangplan.trace import Tracer, trace_job_field, tracer_of
from gangplan.validate.agreement import judge_agreement_of_cluster_objects
from gangplan.validate.collisions import find_deadlocks_between_runs, find_preempted_runs_without_checkpoints
from gangplan.validate.gate import judge_built
from gangplan.validate.kueue.contention import CHECKPOINT_HELP as CHECKPOINT_HELP
from gangplan.validate.kueue.contention import RunDemand
from gangplan.validate.problems import Problem, format_path
from gangplan.validate.promise.scripts import find_altered_launch_scripts
from gangplan.validate.proofs import run_all_proofs
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.validate.world import BuiltRun, World, build_node_group_from_pool


def check_cluster_objects_together(
    spec: Cluster,
    site: Site,
    built: list[Body],
    before: list[Body],
    tracer: Tracer,
    component: Component,
    levels: Mapping[str, str],
) -> list[Finding]:
    """Check the objects of a cluster together: names that clash, and quotas, caps and bounds that must agree.

    `levels` are the Pod Security levels that the cluster's file states, by namespace.
    """
    offered = {
        flavor.name: resolve_counted_amounts(
            compute_pool_capacity(spec.node_pools[flavor.pool]), site.manager
        )
        for flavor in site.flavors
    }
    storage = {name: one.access_modes for name, one in spec.storage_classes.items()}

    def judge(bodies: Sequence[Body]) -> list[list[Problem]]:
        return judge_agreement_of_cluster_objects(
            bodies, None if spec.overcommit else offered, levels, site.manager, before, storage
        )

    if not any(judged := judge(built)):
        return []
    own, undone = judge(before), _build_operation_states(component, before, judge)
    return [
        finding
        for index, (body, wrong, generated) in enumerate(zip(built, judged, own, strict=True))
        for finding in _convert_object_problems_to_findings(index, body, wrong, generated, tracer, undone)
    ]


def prove_run(
    world: World, run: BuiltRun, component: Component, plain: Callable[[], World] | None = None
) -> list[Finding]:
    """Return what the proofs find in a run whose objects are sound, at the field of the spec that causes it.

    A problem that the generated objects do not have is reported at the patch that causes it. So is one that
    they do not have on an unpatched cluster (`plain`), at the patch of the object that spoils the run.
    """
    found: list[Finding] = []
    for proof, proved in run_all_proofs(world, run).items():
        if run.bodies is run.generated:  # a kept run is what was planned then, not now
            proved = [
                (index, problem) for index, problem in proved if problem.rule.echo is not Deduplication.PATCH
            ]
        if proved:
            found += _locate_proof_findings(ProvenRun(proof, world, run, component, plain), proved)
    if run.unit.job.steps and component.patches and run.bodies is not run.generated:
        from gangplan.pipeline.moved import check_moved_patches  # few runs have steps

        found += check_moved_patches(component, run)
    return found


def _locate_proof_findings(trial: ProvenRun, proved: Sequence[tuple[int, Problem]]) -> list[Finding]:
    """Return what one proof finds in a run, each problem at the place that causes it."""
    run, component = trial.run, trial.component
    unit, bodies = run.unit, run.bodies
    tracer = tracer_of(unit, bodies, component, run.generated)
    found: list[Finding] = []
    for index, problem in proved:
        traced = trace_job_field(unit, problem.field) or tracer(index, problem.path)
        where, about, path = traced.where, str(ref_of(bodies[index])), problem.path
        key = problem_key_of(index, problem)
        if trial.is_of_patch(key):
            where = trial.patched_place(key)
        elif trial.is_of_cluster(key):
            blamed = trial.culprit(key)
            if blamed is not None:
                body, path, where = blamed
                about = f"{body['kind']}/{body['metadata']['name']}"  # reported once, not for every team
        found.append(_convert_run_problem_to_finding(problem, where, about, path))
    return found


def _convert_run_problem_to_finding(
    problem: Problem, where: Location, about: str, path: FieldPath
) -> Finding:
    """Return a problem of a run as a finding, without the hash in the run's name, which is not known yet."""
    message, help, ref = (
        text.replace(f"-{HASH_PLACEHOLDER}", "") for text in (problem.message, problem.help, about)
    )
    return Finding(problem.rule, where, message, help, ref, format_path(path), level=problem.level)


def check_runs_together(
    cluster: str, pools: Mapping[str, NodePool], demands: Mapping[str, tuple[Location, RunDemand]]
) -> list[Finding]:
    """Check the runs of a cluster together: some can hold each other up, some can lose their work."""
    wanted = {name: demand for name, (_, demand) in demands.items()}
    found = []
    if any(not demand.is_gang for demand in wanted.values()):
        for one in find_deadlocks_between_runs(
            [build_node_group_from_pool(name, pool, ()) for name, pool in pools.items()], wanted
        ):
            last = max(one.placed, key=lambda name: demands[name][0])
            help = "Let Kueue start runs as a whole (gang: kueue), or run one after the other."
            found.append(Finding(RUNS_BLOCK_RUNS, demands[last][0], f"on {cluster}, {one.message}", help))
    for lost in find_preempted_runs_without_checkpoints(wanted):
        where, by = demands[lost.run][0], demands[lost.by]
        message = (
            f"on {cluster}, {lost.by} ({by[0].file}) preempts this run in queue {by[1].queue}:"
            f" together they need {format_with_unit(lost.resource, lost.wanted)}, the queue gets"
            f" {format_amount(lost.resource, lost.most)} at most;"
            " this run then starts again from scratch, because it has no checkpoint"
        )
        help = f"{CHECKPOINT_HELP}."
        found.append(Finding(PREEMPTIBLE_WITHOUT_CHECKPOINT, where, message, help, level=NOTE))
    return found


def check_built_objects(
    bodies: Sequence[Body],
    before: Sequence[Body],
    platform: Platform,
    tracer: Tracer,
    builder: OverlayBuilder,
    shown: Sequence[bool] = (),
) -> list[Finding]:
    """Check each built object against the schema of its kind and the rules, at the cluster's versions.

    A problem that the generated object does not have comes from the overlay; `tracer` finds the origin of any
    other. `shown` is that of `judge_built`.
    """
    versions = choose_schema_versions_of(platform)

    def judge(state: Sequence[Body], shown: Sequence[bool] = ()) -> list[list[Problem]]:
        found = judge_built(state, versions, shown)
        if all(one is was for one, was in zip(state, before, strict=True)):
            return found
        from gangplan.validate.synced import find_changes_of_syncing  # few clusters have patches

        pairs = zip(found, state, before, strict=True)
        sound = [was if _has_error(wrong) else one for wrong, one, was in pairs]
        changes = find_changes_of_syncing(sound, before, platform.engines)
        return [[*wrong, *more] for wrong, more in zip(found, changes, strict=True)]

    if not any(judged := judge(bodies, shown)):
        return []
    own, undone = judge(before), _build_operation_states(builder.component, before, judge)
    return [
        finding
        for index, (built, wrong, generated) in enumerate(zip(bodies, judged, own, strict=True))
        for finding in _convert_object_problems_to_findings(index, built, wrong, generated, tracer, undone)
    ]


def _has_error(problems: Sequence[Problem]) -> bool:
    return any(one.severity is Severity.ERROR for one in problems)


def check_patched_launch_scripts(
    built: Sequence[Body], before: Sequence[Body], tracer: Tracer, component: Component
) -> list[Finding]:
    """Check that the overlay leaves launch scripts as they are: runs are proved with these."""

    def judge(bodies: Sequence[Body]) -> list[list[Problem]]:
        return [list(find_altered_launch_scripts(one, was)) for one, was in zip(bodies, before, strict=True)]

    if not any(judged := judge(built)):
        return []
    undone = _build_operation_states(component, before, judge)
    return [
        finding
        for index, (body, wrong) in enumerate(zip(built, judged, strict=True))
        for finding in _convert_object_problems_to_findings(index, body, wrong, [], tracer, undone)
    ]


def _build_operation_states(
    component: Component, before: Sequence[Body], judge: Callable[[Sequence[Body]], list[list[Problem]]]
) -> OperationStates:
    """Return what undoes the operations of a component on objects that are judged by themselves."""

    def find(state: Sequence[Body]) -> Iterator[ProblemKey]:
        return (problem_key_of(index, one) for index, found in enumerate(judge(state)) for one in found)

    return OperationStates(component, before, find)


def _convert_object_problems_to_findings(
    index: int,
    built: Body,
    wrong: list[Problem],
    generated: list[Problem],
    tracer: Tracer,
    undone: OperationStates,
) -> list[Finding]:
    """Return the problems of one object as findings, at the operation that caused them or at their origin."""
    inherited = {problem.path for problem in generated}
    about = str(ref_of(built)).replace(f"-{HASH_PLACEHOLDER}", "")
    found: list[Finding] = []
    for one in wrong:
        is_own = one.path in inherited
        where = tracer(index, one.path).where if is_own else undone.blamed(problem_key_of(index, one), built)
        help = one.help or ("" if is_own else "Correct the patch.")
        found.append(
            Finding(one.rule, where, one.message, help, about, format_path(one.path), level=one.level)
        )
    return found
