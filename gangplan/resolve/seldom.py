"""What few runs ask for: its modules are imported for the runs that do, so that the others start sooner."""

from __future__ import annotations

from typing import Any

from gangplan.findings import Location
from gangplan.model.job import ExitCodes, PulledImage
from gangplan.model.profiles import DEFAULT_WORKERS
from gangplan.resolve.cloud import needed_endpoints
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.placement import ChosenPlacement


def workers_of(context: JobResolution) -> int:
    """How many workers the run has; of an elastic one, how many at most."""
    asked = context.spec.spec.elastic
    if asked is None:
        workers: int = context.choose("workers", DEFAULT_WORKERS)
        return workers
    from gangplan.resolve.elastic import most_workers

    return most_workers(context, asked)


def others_of(
    context: JobResolution,
    image: PulledImage,
    placement: ChosenPlacement,
    shape: WorkerShape,
    data: DataPlan,
    timeout_s: int,
) -> dict[str, Any]:
    """Fields of the job: pods beside the workers, and those of steps before them."""
    found: dict[str, Any] = {}
    if context.spec.spec.roles:
        from gangplan.resolve.roles import resolve_roles

        found["roles"] = resolve_roles(context, image, placement, shape)
    if context.spec.spec.steps:
        from gangplan.resolve.steps import resolve_steps

        found["steps"] = resolve_steps(context, image, placement, shape, data, timeout_s)
    return found


def endpoints_of(context: JobResolution) -> dict[str, Location]:
    """The endpoints that an identity and steps must reach, each with the place that asks for it."""
    needed = needed_endpoints(context)
    if not context.spec.spec.steps:
        return needed
    from gangplan.resolve.steps import endpoints

    return {**endpoints(context), **needed}


def after_losses(context: JobResolution, image: PulledImage | None, retries: int) -> dict[str, Any]:
    """Fields of the job: what follows from an exit code, from a lost worker, and from a failure."""
    found: dict[str, Any] = {"exit_codes": ExitCodes(), "elastic": None}
    if context.spec.spec.exit_codes is not None:
        from gangplan.resolve.exits import resolve_exit_codes

        found["exit_codes"] = resolve_exit_codes(context, image, retries)
    if context.spec.spec.elastic is not None:
        from gangplan.resolve.elastic import resolve_elastic

        found["elastic"] = resolve_elastic(context, image)
    if context.spec.spec.debug is not None:
        from gangplan.resolve.debug import resolve_debug

        found["debug"] = resolve_debug(context, retries)
    return found


def neighbours_of(context: JobResolution, placement: ChosenPlacement) -> dict[str, Any]:
    """Fields of the job: the other jobs that its workers are near to, or apart from."""
    asked = context.spec.spec.placement
    if asked is None or not (asked.near or asked.apart):
        return {}
    from gangplan.resolve.neighbours import resolve_neighbours

    return resolve_neighbours(context, placement)
