"""Rare features of specs, imported only for runs that use them, so that other runs start sooner."""

from __future__ import annotations

from typing import NamedTuple

from gangplan.findings import Location
from gangplan.model.job import ElasticLimits, PulledImage, ResolvedRole, RetryExitCodes
from gangplan.model.pods import DebugHold, Neighbour
from gangplan.model.profiles import DEFAULT_WORKERS
from gangplan.resolve.cloud import resolve_cloud_identity_endpoints
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.placement import ChosenPlacement


def resolve_worker_count(context: JobResolution) -> int:
    """Return the number of workers; for an elastic run the largest."""
    asked = context.spec.spec.elastic
    if asked is None:
        workers: int = context.choose("workers", DEFAULT_WORKERS)
        return workers
    from gangplan.resolve.elastic import resolve_elastic_workers

    return resolve_elastic_workers(context, asked)


def resolve_roles_if_any(
    context: JobResolution, image: PulledImage, placement: ChosenPlacement, shape: WorkerShape
) -> tuple[ResolvedRole, ...]:
    """Return the pods of roles other than the workers."""
    if not context.spec.spec.roles:
        return ()
    from gangplan.resolve.roles import resolve_roles

    return resolve_roles(context, image, placement, shape)


def resolve_steps_if_any(
    context: JobResolution,
    image: PulledImage,
    placement: ChosenPlacement,
    shape: WorkerShape,
    data: DataPlan,
    timeout_s: int,
) -> tuple[ResolvedRole, ...]:
    """Return the pods of steps before the workers, in their order."""
    if not context.spec.spec.steps:
        return ()
    from gangplan.resolve.steps import resolve_steps

    return resolve_steps(context, image, placement, shape, data, timeout_s)


def resolve_endpoints_needed_by_spec(context: JobResolution) -> dict[str, Location]:
    """Return the endpoints that an identity and steps must reach, each with the place that asks for it."""
    needed = resolve_cloud_identity_endpoints(context)
    if not context.spec.spec.steps:
        return needed
    from gangplan.resolve.steps import find_step_endpoints

    return {**find_step_endpoints(context), **needed}


class AfterLosses(NamedTuple):
    """How the run reacts to an exit code, to a lost worker, and to a failure."""

    exit_codes: RetryExitCodes
    elastic: ElasticLimits | None
    debug: DebugHold | None


def resolve_after_losses(context: JobResolution, image: PulledImage | None, retries: int) -> AfterLosses:
    """Return the spec's settings for losses."""
    exit_codes, elastic, debug = RetryExitCodes(), None, None
    if context.spec.spec.exit_codes is not None:
        from gangplan.resolve.exits import resolve_exit_codes

        exit_codes = resolve_exit_codes(context, image, retries)
    if context.spec.spec.elastic is not None:
        from gangplan.resolve.elastic import resolve_elastic

        elastic = resolve_elastic(context, image)
    if context.spec.spec.debug is not None:
        from gangplan.resolve.debug import resolve_debug

        debug = resolve_debug(context, retries)
    return AfterLosses(exit_codes, elastic, debug)


def resolve_neighbours_if_any(
    context: JobResolution, placement: ChosenPlacement
) -> tuple[tuple[Neighbour, ...], tuple[str, ...]]:
    """Return the other jobs that its workers should be near to, and those to be apart from."""
    asked = context.spec.spec.placement
    if asked is None or not (asked.near or asked.apart):
        return (), ()
    from gangplan.resolve.neighbours import resolve_near_and_apart_terms

    return resolve_near_and_apart_terms(context, asked, placement)
