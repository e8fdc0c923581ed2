"""From spec files to texts of runs and findings: a task of a worker. `RUN_STAGES` is the order for a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cached_property, partial

from gangplan.emit import build_header_lines
from gangplan.findings import Finding, Location, assign_cluster, merge_findings_across_clusters
from gangplan.generators import generate_run_objects
from gangplan.objects import Body, dump_object_as_block_yaml, join_documents
from gangplan.overlay import OverlayBuilder
from gangplan.pipeline.checks import prove_run
from gangplan.pipeline.facts import collect_run_facts
from gangplan.pipeline.kept_runs import (
    add_schedule_creator_pods,
    build_earlier_run_record,
    build_run_objects_for_tree,
    build_run_path,
    check_retired_runs,
    explain_why_run_cannot_be_kept,
    name_run_or_keep_earlier_one,
    restore_retired_run,
)
from gangplan.pipeline.launch_maps import put_launch_maps
from gangplan.pipeline.worker import (
    PlannedRun,
    TaskResult,
    WorkerState,
    build_cluster_world_before_runs,
    check_built_file_at_gate,
    has_new_schema_facts,
    judge_objects_by_cluster_policies,
    run_overlay_on_object_groups,
    store_staged_text,
)
from gangplan.plan import RunPlan, plan_run
from gangplan.plan.sources import collect_source_files_of_run
from gangplan.records import dataclass
from gangplan.resolve import add_advice, resolve_job, resolve_target_clusters
from gangplan.rules.files import OF_FILES
from gangplan.trace import Tracer, tracer_of
from gangplan.validate.kueue import verdict_of
from gangplan.validate.kueue.contention import can_preempted_run_resume, summarise_demand_of_queued_run
from gangplan.validate.kueue.request import build_run_request
from gangplan.validate.network.flows import Flow, list_network_flows
from gangplan.validate.scheduler import fit_admitted_run
from gangplan.validate.world import BuiltRun, World
from gangplan.waivers import Subject, apply_waivers_to_findings, remove_waiver_marks
from gangplan.workspace import Spec, SpecFile, load_spec


def expand_spec_files(worker: WorkerState, files: Sequence[SpecFile]) -> list[TaskResult]:
    """Expand some spec files: load, resolve, plan, generate, build, check, stage. Return a result for each
    file."""
    results: list[TaskResult] = []
    planned: dict[str, list[tuple[RunPlan, TaskResult]]] = {}
    for file in files:
        result = TaskResult(file.file)
        results.append(result)
        if file.file in worker.workspace.sweeps:
            from gangplan.pipeline.sweeps import (
                expand_sweep_into_rendered_trials,
            )  # few workspaces have sweeps

            expand_sweep_into_rendered_trials(worker, file, result, _plan_runs_of_spec, _render_cluster_runs)
            continue
        for cluster, unit in _plan_runs_of_spec_file(worker, file, result):
            planned.setdefault(cluster, []).append((unit, result))
    for cluster in sorted(planned):
        _render_cluster_runs(worker, cluster, planned[cluster])
    for result in results:
        result.findings = merge_findings_across_clusters(result.findings)
    return results


def _plan_runs_of_spec_file(
    worker: WorkerState, file: SpecFile, result: TaskResult
) -> Iterable[tuple[str, RunPlan]]:
    """Yield the planned runs of one spec file on the requested clusters."""
    spec, findings = load_spec(worker.workspace.root, file, worker.workspace.templates)
    result.findings += add_advice(findings, worker.workspace, file.team)
    # A result that depends on other files does not follow from the spec's own bytes (known.py).
    result.is_lasting &= not (any(one.rule in OF_FILES for one in findings) or (spec and spec.files))
    if spec is not None:
        yield from _plan_runs_of_spec(worker, spec, result)


def _plan_runs_of_spec(worker: WorkerState, spec: Spec, result: TaskResult) -> Iterable[tuple[str, RunPlan]]:
    """Yield the planned runs of a spec, or of a trial of a sweep."""
    file, known = spec.source, worker.workspace
    near = spec.spec.placement and (spec.spec.placement.near or spec.spec.placement.apart)
    result.is_lasting &= not (near or spec.spec.after)  # nor does one that depends on other jobs of the team
    clusters, findings = resolve_target_clusters(known, spec)
    result.findings += findings
    for cluster in clusters:
        if cluster in worker.options.closed or not worker.options.scope.takes(cluster, file.team, file.file):
            continue
        job, findings = resolve_job(known, spec, cluster)
        result.findings += assign_cluster(cluster, findings)
        if job is None:
            continue
        unit, findings = plan_run(job, spec, known.waivers, collect_source_files_of_run(known, spec, cluster))
        result.findings += assign_cluster(cluster, findings)
        if unit is not None:
            place = spec.document.where(("name",)) if spec.spec.name else Location(file.file, 1, 1)
            name = job.trial.sweep if job.trial else job.name
            result.jobs.append((cluster, job.namespace, name, place))
            yield cluster, unit


def _render_cluster_runs(worker: WorkerState, cluster: str, units: list[tuple[RunPlan, TaskResult]]) -> None:
    """Generate and build the runs of one cluster together, then take each through `RUN_STAGES`."""
    groups = [generate_run_objects(unit, worker.moulds.objects_of) for unit, _ in units]
    built = run_overlay_on_object_groups(worker, cluster, groups, [result for _, result in units])
    for (unit, result), generated, bodies in zip(units, groups, built, strict=True):
        draft = _Draft(worker, cluster, unit, generated, bodies, result)
        for step in RUN_STAGES:
            step(draft)


@dataclass
class _Draft:
    """A run in progress: its objects as generated and as built, and what was found about it.

    `is_kept`: an earlier run takes its place. `is_sound`: nothing is wrong with an object itself, so the run
    can be judged. `is_telling`: its objects have schema facts that those before them lack.
    """

    worker: WorkerState
    cluster: str
    unit: RunPlan
    generated: list[Body]
    bodies: list[Body]
    result: TaskResult
    findings: list[Finding] = field(default_factory=list)
    name: str = ""
    texts: Sequence[str] = ()
    retired: dict[str, list[Body]] = field(default_factory=dict)  # earlier runs that are over, by name
    is_kept: bool = False
    is_sound: bool = False
    is_telling: bool = False

    @property
    def builder(self) -> OverlayBuilder:
        """The overlay of the run's cluster."""
        return self.worker.builders[self.cluster]

    @property
    def world(self) -> World:
        """The world of the run's cluster, before any run."""
        return build_cluster_world_before_runs(self.worker, self.cluster)

    @cached_property
    def built(self) -> BuiltRun:
        """The run, ready to be proved: use it once it has its name, because an earlier run may take its
        place."""
        bodies = tuple(self.bodies)
        generated = bodies if self.generated is self.bodies else tuple(self.generated)
        return BuiltRun(self.unit, bodies, generated)

    @cached_property
    def tracer(self) -> Tracer:
        """The tracer of each field to its origin."""
        return tracer_of(self.unit, self.bodies, self.builder.component, self.generated)

    def excused(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return findings about the run, with the waivers that cover them."""
        return apply_waivers_to_findings(findings, self.worker.workspace.waivers, Subject.of(self.unit.job))

    def explained(self, findings: list[Finding]) -> list[Finding]:
        """Return findings about the objects; of a kept run, no field of the spec can correct them."""
        if not self.is_kept or self.unit.job.is_stopped:
            return findings
        return [explain_why_run_cannot_be_kept(self.unit.job, self.name, one) for one in findings]


def _name_run_or_restore_earlier_one(draft: _Draft) -> None:
    """Name the run by what it holds, or take an earlier run in its place if that is to be kept or stopped."""
    worker = draft.worker
    keep = worker.options.keep_runs
    draft.texts = [dump_object_as_block_yaml(body, written=worker.written) for body in draft.bodies]
    tracer = partial(tracer_of, draft.unit, draft.bodies, draft.builder.component, draft.generated)
    draft.name, kept, found = name_run_or_keep_earlier_one(
        worker.earlier, draft.cluster, draft.unit, draft.bodies, draft.texts, keep, tracer
    )
    draft.findings += found
    draft.result.is_lasting &= not found and kept is None  # a finding about another file in rendered/
    clusters = worker.workspace.clusters
    draft.findings += check_retired_runs(worker.earlier, clusters, draft.unit, draft.name)
    if kept is not None:
        draft.is_kept = True
        draft.generated = draft.bodies = kept
        draft.texts = [dump_object_as_block_yaml(body) for body in kept]
    _restore_retired_runs_of_job(draft)


def _restore_retired_runs_of_job(draft: _Draft) -> None:
    """Find earlier runs of the job that are over, as they were on this cluster."""
    worker, job = draft.worker, draft.unit.job
    for name in job.retired:
        if name == draft.name or name.rpartition("-")[0] != job.name:
            continue  # reported already
        given = draft.cluster, worker.workspace.clusters, draft.unit, name, draft.bodies
        run, found = restore_retired_run(worker.earlier, *given)
        draft.findings += found
        if run is None:
            draft.result.is_lasting = False  # it holds only until rendered/ changes
        else:
            draft.retired[name] = run


def _check_run(draft: _Draft) -> None:
    """Check each object by itself, against the schema of its kind and the rules."""
    given = draft.bodies, draft.generated, draft.unit.job.platform, draft.tracer
    wrong, draft.is_telling = check_built_file_at_gate(draft.worker, draft.cluster, *given)
    draft.findings += draft.explained(wrong)
    draft.is_sound = not any(finding.is_error for finding in draft.excused(wrong))


def _prove_run(draft: _Draft) -> None:
    """Prove the run in its world: admitted, placed, started, ended."""
    if draft.is_sound:
        world, component = draft.world, draft.builder.component
        plain = partial(draft.worker.plain.__getitem__, draft.cluster)
        draft.findings += prove_run(world, draft.built, component, plain)


def _judge_run_by_policies(draft: _Draft) -> None:
    """Evaluate the cluster's policies on the run, ignoring waivers."""
    if draft.is_sound:
        job, result = draft.unit.job, draft.result
        others = [*(one for one in result.findings if one.where.file == job.source), *draft.findings]
        bare = [remove_waiver_marks(body, job.waived) for body in draft.bodies]
        bare, tracer = add_schedule_creator_pods(bare, draft.tracer) if job.is_dated else (bare, draft.tracer)
        before = () if draft.generated is draft.bodies else draft.generated  # a kept run is as it was
        found = judge_objects_by_cluster_policies(
            draft.worker, draft.cluster, bare, tracer, result, others, before
        )
        draft.findings += draft.explained(found)


def _record_kueue_demand(draft: _Draft) -> None:
    """Record the run's demand on Kueue, so that runs can be compared."""
    job = draft.unit.job
    if not (draft.is_sound and job.is_active):
        return
    asked = draft.built.once(build_run_request, draft.world)
    if (
        demand := summarise_demand_of_queued_run(draft.world, asked, can_preempted_run_resume(draft.bodies))
    ) is not None:
        origin = job.origins.get("workers")
        place = origin.where if origin and origin.where else Location(job.source, 1, 1)
        draft.result.demands.append((draft.cluster, f"{job.team}/{job.name}", place, demand))


def _report_run(draft: _Draft) -> None:
    """Report the findings, about the run's cluster, with the waivers that cover them."""
    draft.result.findings += assign_cluster(draft.cluster, draft.excused(draft.findings))


def _put_run_on_stage(draft: _Draft) -> None:
    """Put the run's text under its name, and the records of earlier runs that are over."""
    job, bodies, texts = draft.unit.job, draft.bodies, draft.texts
    if job.after is not None:
        from gangplan.pipeline.after import RunPlanner, build_waiting_run  # few runs come after others

        bodies = build_waiting_run(
            draft.worker, draft.unit, bodies, RunPlanner(_plan_runs_of_spec_file, _plan_runs_of_spec)
        )
    elif job.is_dated or job.is_stopped:
        bodies = build_run_objects_for_tree(bodies, job.is_dated)
    if bodies is not draft.bodies:
        texts = [dump_object_as_block_yaml(body) for body in bodies]
    _put_run_text_on_stage(draft, draft.name, bodies, texts)
    for name, run in draft.retired.items():
        record = build_earlier_run_record(run)
        _put_run_text_on_stage(draft, name, record, [dump_object_as_block_yaml(body) for body in record])
    draft.result.active += job.is_active


def _put_run_text_on_stage(draft: _Draft, name: str, bodies: list[Body], texts: Sequence[str]) -> None:
    job, path = draft.unit.job, build_run_path(draft.cluster, draft.unit, name)
    text = join_documents(texts, build_header_lines(job.source)).replace(draft.unit.run_name, name)
    is_judged = bodies is draft.bodies
    is_telling = draft.is_telling if is_judged else has_new_schema_facts(draft.worker, bodies, job.platform)
    store_staged_text(draft.worker, draft.result, path, text, is_telling)
    wrong = put_launch_maps(draft.worker, draft.cluster, job, text, draft.result)
    draft.result.findings += assign_cluster(draft.cluster, draft.excused(wrong))
    draft.result.objects += len(bodies)


def _sum_up(draft: _Draft) -> None:
    """Record the facts of the run, for commands that compare."""
    verdict = verdict_of(draft.world, draft.built) if draft.is_sound else None
    draft.result.facts.append(collect_run_facts(draft.cluster, draft.unit, draft.name, verdict, draft.bodies))


def _record_planned_run(draft: _Draft) -> None:
    """Keep the run itself, for commands that show it: Kueue's verdict, its connections, its nodes."""
    if not draft.worker.options.keeps_texts:
        return
    worker, cluster, unit, bodies = draft.worker, draft.cluster, draft.unit, draft.bodies
    verdict = verdict_of(draft.world, draft.built) if draft.is_sound else None
    between = _list_allowed_connections(worker, cluster, unit, bodies) if draft.is_sound else ()
    fit = fit_admitted_run(draft.world, bodies) if verdict else None
    path = build_run_path(cluster, unit, draft.name)
    there = worker.earlier.names(path, unit.job.name)
    own = unit.job.spec_hash
    again = draft.name not in there and worker.earlier.find(path, unit.job.name, own) is not None
    run = PlannedRun(cluster, draft.name, path, unit, verdict, between, fit, there, again)
    draft.result.runs.append(run)


# The order, for every run.
RUN_STAGES: tuple[Callable[[_Draft], None], ...] = (
    _name_run_or_restore_earlier_one,
    _check_run,
    _prove_run,
    _judge_run_by_policies,
    _record_kueue_demand,
    _report_run,
    _put_run_on_stage,
    _sum_up,
    _record_planned_run,
)


def _list_allowed_connections(
    worker: WorkerState, cluster: str, unit: RunPlan, bodies: list[Body]
) -> tuple[Flow, ...]:
    """Return the allowed connections, if they were requested."""
    if not worker.options.with_flows:
        return ()
    return list_network_flows(build_cluster_world_before_runs(worker, cluster), BuiltRun(unit, tuple(bodies)))
