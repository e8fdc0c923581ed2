"""Trace rendered fields of a run: first to patches, then by the tables of generated objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gangplan.component import Component
from gangplan.findings import Location
from gangplan.generators import run_objects
from gangplan.gitops.record import STATE, record_of
from gangplan.objects import Body
from gangplan.plan import Unit
from gangplan.trace.cause import Cause, Path, Trace, trace_of
from gangplan.trace.context import IN_SPEC, RunContext
from gangplan.trace.files import Files
from gangplan.trace.patched import generated_path, is_touched, patch_causes
from gangplan.trace.table import Table, looked_up
from gangplan.validate.problems import dotted

# From the index of an object and a path in it to the trace of that field.
Tracer = Callable[[int, Path], Trace]


def trace(unit: Unit, bodies: Sequence[Body], index: int, path: Path, component: Component) -> Trace:
    """Return where a field of a run's built object comes from.

    `bodies` are the built objects of the run, `index` the one in question; `path` leads to a field of it, or
    to where a missing one belongs. `component` is the cluster's overlay.
    """
    return tracer_of(unit, bodies, component)(index, path)


def tracer_of(
    unit: Unit, bodies: Sequence[Body], component: Component, before: Sequence[Body] | None = None
) -> Tracer:
    """Return `trace` for many fields of one run. `before` are the generated objects, if already available."""
    generated = run_objects(unit) if before is None else before
    files = files_of(unit)
    home = Location(unit.job.source, 1, 1)

    printed: list[Any] = []

    def kept(context: RunContext, index: int, place: Path) -> list[Cause]:
        from gangplan.trace.printed import kept_with, printed_in  # few runs have findings

        if not printed:
            printed.extend(printed_in(unit))
        return kept_with(context, printed[index], place)

    def tracer(index: int, path: Path) -> Trace:
        body = generated[index]
        if STATE in (bodies[index]["metadata"].get("annotations") or {}):
            # A finished run becomes a record after all patches (pipeline/runs.py).
            (body,) = record_of([body])
        context = RunContext(unit, files, body)
        found = looked_up(_table(body["kind"]), context, body, partial(kept, context, index))
        return traced(body, bodies[index], path, component, found, home)

    return tracer


def _table(kind: str) -> Table | None:
    if kind in ("CronJob", "Job"):
        from gangplan.trace.schedule import CRON_JOB, JOB  # few runs have one

        return JOB if kind == "Job" else CRON_JOB
    from gangplan.trace.run import TABLES  # loading the tables would slow down every start

    return TABLES.get(kind)


def trace_field(unit: Unit, name: str) -> Trace | None:
    """Return where a resolved field of a job (as in `Job.origins`) comes from; None for an unknown name.

    This serves fields that are not a rendered field themselves, such as the size of the launcher as a whole.
    """
    context = RunContext(unit, files_of(unit), {})
    home = Location(unit.job.source, 1, 1)
    if name == "queue":
        return trace_of(context.queue(), home)
    if name == "maxConcurrent":  # a field of a sweep
        return trace_of([context.spec(name)], home)
    part = name.removeprefix("launcher.")
    if part != name and context.files.has("spec", "launcher", part):
        return trace_of([context.spec("launcher", part)], home)
    if name.startswith("launcher"):
        return trace_of([context.spec("launcher"), *context.workers()], home)
    origin = unit.job.origins.get(name)
    if origin is None:
        return None
    if origin.where is not None:
        return Trace(origin.where, f"{name} is from {origin.layer}", dotted(IN_SPEC.get(name, (name,))))
    return trace_of(context.slots() if name == "slots" else context.chosen(name), home)


def files_of(unit: Unit) -> Files:
    """Return the documents of a run; none if it comes from another process."""
    sources = unit.sources
    if sources is None:
        return Files()
    return Files(
        sources.spec.document, sources.team.document, sources.cluster.document, sources.catalog_document
    )


def traced(
    before: Body,
    built: Body,
    path: Path,
    component: Component,
    causes_at: Callable[[Path], list[Cause]],
    home: Location,
) -> Trace:
    """Return the trace of one field: the patch that wrote it, otherwise the causes in the tables."""
    way: Path | None = path
    if component.patches and is_touched(component, before):
        way = generated_path(before, built, path)
    if way is None:
        return trace_of(patch_causes(component, before, path), home)
    return trace_of(causes_at(way), home)
