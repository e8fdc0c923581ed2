"""Trace rendered fields of a run: first to patches, then by the tables of generated objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gangplan.component import Component
from gangplan.findings import FieldPath, Location
from gangplan.generators import generate_run_objects
from gangplan.gitops.record import STATE_ANNOTATION, build_run_record
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.trace.cause import Cause, Trace, build_trace_from_causes
from gangplan.trace.context import IN_SPEC, RunContext
from gangplan.trace.files import TracedFiles
from gangplan.trace.patched import is_touched, trace_patch_causes, trace_path_back_through_patch
from gangplan.trace.table import CauseTable, build_cause_finder_from_table
from gangplan.validate.problems import format_path

# From the index of an object and a path in it to the trace of that field.
Tracer = Callable[[int, FieldPath], Trace]


def trace_object_field(
    unit: RunPlan, bodies: Sequence[Body], index: int, path: FieldPath, component: Component
) -> Trace:
    """Return where a field of a run's built object comes from.

    `bodies` are the built objects of the run, `index` the one in question; `path` leads to a field of it, or
    to where a missing one belongs. `component` is the cluster's overlay.
    """
    return tracer_of(unit, bodies, component)(index, path)


def tracer_of(
    unit: RunPlan, bodies: Sequence[Body], component: Component, before: Sequence[Body] | None = None
) -> Tracer:
    """Return `trace_object_field` for many fields of one run. `before` are the generated objects, if already
    available."""
    generated = generate_run_objects(unit) if before is None else before
    files = collect_traced_files_of_run(unit)
    home = Location(unit.job.source, 1, 1)

    printed: list[Any] = []

    def kept(context: RunContext, index: int, place: FieldPath) -> list[Cause]:
        from gangplan.trace.printed import build_source_maps, trace_recorded_causes  # few runs have findings

        if not printed:
            printed.extend(build_source_maps(unit))
        return trace_recorded_causes(context, printed[index], place)

    def tracer(index: int, path: FieldPath) -> Trace:
        body = generated[index]
        if STATE_ANNOTATION in (bodies[index]["metadata"].get("annotations") or {}):
            # A finished run becomes a record after all patches (pipeline/runs.py).
            (body,) = build_run_record([body])
        context = RunContext(unit, files, body)
        found = build_cause_finder_from_table(
            _load_cause_table(body["kind"]), context, body, partial(kept, context, index)
        )
        return trace_patched_field(body, bodies[index], path, component, found, home)

    return tracer


def _load_cause_table(kind: str) -> CauseTable | None:
    if kind in ("CronJob", "Job"):
        from gangplan.trace.schedule import CRON_JOB_TABLE, WAITING_JOB_TABLE  # few runs have one

        return WAITING_JOB_TABLE if kind == "Job" else CRON_JOB_TABLE
    from gangplan.trace.run import RUN_TABLES  # loading the tables would slow down every start

    return RUN_TABLES.get(kind)


def trace_job_field(unit: RunPlan, name: str) -> Trace | None:
    """Return where a resolved field of a job (as in `Job.origins`) comes from; None for an unknown name.

    This serves fields that are not a rendered field themselves, such as the size of the launcher as a whole.
    """
    context = RunContext(unit, collect_traced_files_of_run(unit), {})
    home = Location(unit.job.source, 1, 1)
    if name == "queue":
        return build_trace_from_causes(context.queue(), home)
    if name == "maxConcurrent":  # a field of a sweep
        return build_trace_from_causes([context.spec(name)], home)
    part = name.removeprefix("launcher.")
    if part != name and context.files.has("spec", "launcher", part):
        return build_trace_from_causes([context.spec("launcher", part)], home)
    if name.startswith("launcher"):
        return build_trace_from_causes([context.spec("launcher"), *context.workers()], home)
    origin = unit.job.origins.get(name)
    if origin is None:
        return None
    if origin.where is not None:
        return Trace(origin.where, f"{name} is from {origin.layer}", format_path(IN_SPEC.get(name, (name,))))
    return build_trace_from_causes(context.slots() if name == "slots" else context.chosen(name), home)


def collect_traced_files_of_run(unit: RunPlan) -> TracedFiles:
    """Return the documents of a run; none if it comes from another process."""
    sources = unit.sources
    if sources is None:
        return TracedFiles()
    return TracedFiles(
        sources.spec.document, sources.team.document, sources.cluster.document, sources.catalog_document
    )


def trace_patched_field(
    before: Body,
    built: Body,
    path: FieldPath,
    component: Component,
    causes_at: Callable[[FieldPath], list[Cause]],
    home: Location,
) -> Trace:
    """Return the trace of one field: the patch that wrote it, otherwise the causes in the tables."""
    way: FieldPath | None = path
    if component.patches and is_touched(component, before):
        way = trace_path_back_through_patch(before, built, path)
    if way is None:
        return build_trace_from_causes(trace_patch_causes(component, before, built, path), home)
    return build_trace_from_causes(causes_at(way), home)
