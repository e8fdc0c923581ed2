"""Spec files in, runs as texts and findings out: a task of a worker. `RUN_STAGES` is the order for a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from gangplan.emit import header_lines
from gangplan.findings import Finding, Location, about
from gangplan.generators import run_objects
from gangplan.objects import Body, dump_all
from gangplan.overlay import OverlayBuilder
from gangplan.pipeline.checks import check_objects, prove_run
from gangplan.pipeline.kept_runs import named, path_of
from gangplan.pipeline.worker import Expanded, PlannedRun, WorkerState, build, policies_say, put, world_on
from gangplan.plan import Unit, plan_unit
from gangplan.plan.sources import sources_of
from gangplan.resolve import resolve, target_clusters
from gangplan.trace import Tracer, tracer_of
from gangplan.validate.kueue import judge
from gangplan.validate.kueue.contention import demand_of
from gangplan.validate.network.flows import Flow, flows
from gangplan.validate.scheduler import admitted_fit
from gangplan.validate.world import BuiltRun as Judged
from gangplan.validate.world import World
from gangplan.waivers import Subject, excuse, unmarked
from gangplan.workspace import Spec, SpecFile, load_spec


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
    """The units of one cluster: generated and built together, then each taken through `RUN_STAGES`."""
    groups = [run_objects(unit) for unit, _ in units]
    built = build(worker, cluster, groups, result)
    for (unit, _), generated, bodies in zip(units, groups, built, strict=True):
        draft = _Draft(worker, cluster, unit, generated, bodies, result)
        for step in RUN_STAGES:
            step(draft)


@dataclass
class _Draft:
    """A run on its way: its objects as generated and as built, and what was found about it.

    `is_sound`: nothing is wrong with an object itself, so that the run can be judged.
    """

    worker: WorkerState
    cluster: str
    unit: Unit
    generated: list[Body]
    bodies: list[Body]
    result: Expanded
    findings: list[Finding] = field(default_factory=list)
    name: str = ""
    is_sound: bool = False

    @property
    def builder(self) -> OverlayBuilder:
        """The overlay of its cluster."""
        return self.worker.builders[self.cluster]

    @property
    def world(self) -> World:
        """What stands on its cluster."""
        return world_on(self.worker, self.cluster)

    @cached_property
    def tracer(self) -> Tracer:
        """What knows where each field is from."""
        return tracer_of(self.unit, self.bodies, self.builder.component, self.generated)

    def excused(self, findings: Sequence[Finding]) -> list[Finding]:
        """Findings about it, with the waivers that cover them."""
        return excuse(findings, self.worker.workspace.waivers, Subject.of(self.unit.job))


def _name_run(draft: _Draft) -> None:
    """Its name, by what it holds; or an earlier run in its place, where that is to be kept."""
    worker = draft.worker
    keep = worker.options.keep_runs
    draft.name, kept, found = named(worker.earlier, draft.cluster, draft.unit, draft.bodies, keep)
    draft.findings += found
    if kept is not None:
        draft.generated = draft.bodies = kept


def _check_run(draft: _Draft) -> None:
    """Each object by itself, against the schema of its kind and the rules."""
    platform = draft.unit.job.platform
    wrong = check_objects(draft.bodies, draft.generated, platform, draft.tracer, draft.builder)
    draft.findings += wrong
    draft.is_sound = not any(finding.is_error for finding in draft.excused(wrong))


def _prove_run(draft: _Draft) -> None:
    """The run in its world: admitted, placed, started, ended."""
    if draft.is_sound:
        world, component = draft.world, draft.builder.component
        plain = partial(draft.worker.plain.__getitem__, draft.cluster)
        draft.findings += prove_run(world, draft.unit, draft.bodies, draft.generated, component, plain)


def _police_run(draft: _Draft) -> None:
    """What the cluster's policies say of it, as if nothing were waived."""
    if draft.is_sound:
        job, result = draft.unit.job, draft.result
        others = [*(one for one in result.findings if one.where.file == job.source), *draft.findings]
        bare = [unmarked(body, job.waived) for body in draft.bodies]
        draft.findings += policies_say(draft.worker, draft.cluster, bare, draft.tracer, result, others)


def _note_demand(draft: _Draft) -> None:
    """What it asks of Kueue, to be held against what others ask."""
    job = draft.unit.job
    demand = demand_of(draft.world, draft.bodies) if draft.is_sound else None
    if demand is not None and not job.is_archived:
        origin = job.origins.get("workers")
        place = origin.where if origin and origin.where else Location(job.source, 1, 1)
        draft.result.demands.append((draft.cluster, f"{job.team}/{job.name}", place, demand))


def _report_run(draft: _Draft) -> None:
    """The findings, about its cluster, with the waivers that cover them."""
    draft.result.findings += about(draft.cluster, draft.excused(draft.findings))


def _put_run(draft: _Draft) -> None:
    """Its text, under its name."""
    job, name = draft.unit.job, draft.name
    text = dump_all(draft.bodies, header_lines(job.source)).replace(draft.unit.run_name, name)
    put(draft.worker, draft.result, path_of(draft.cluster, draft.unit, name), text)
    draft.result.objects += len(draft.bodies)
    draft.result.active += not job.is_archived


def _keep_run(draft: _Draft) -> None:
    """The run itself, for commands that show it: Kueue's verdict, its connections, its nodes."""
    if not draft.worker.options.keeps_texts:
        return
    worker, cluster, unit, bodies = draft.worker, draft.cluster, draft.unit, draft.bodies
    verdict = judge(draft.world, bodies) if draft.is_sound else None
    between = _flows(worker, cluster, unit, bodies) if draft.is_sound else ()
    fit = admitted_fit(draft.world, bodies, verdict) if verdict else None
    path = path_of(cluster, unit, draft.name)
    draft.result.runs.append(PlannedRun(cluster, draft.name, path, unit, verdict, between, fit))


# The order, for every run.
RUN_STAGES: tuple[Callable[[_Draft], None], ...] = (
    _name_run,
    _check_run,
    _prove_run,
    _police_run,
    _note_demand,
    _report_run,
    _put_run,
    _keep_run,
)


def _flows(worker: WorkerState, cluster: str, unit: Unit, bodies: list[Body]) -> tuple[Flow, ...]:
    """Who may talk to whom, when it is asked for."""
    if not worker.options.with_flows:
        return ()
    return flows(world_on(worker, cluster), Judged(unit, tuple(bodies)))
