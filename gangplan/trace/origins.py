"""Turn the origins that resolve/ and plan/ record with values into causes with their places in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gangplan.model.job import ValueOrigin
from gangplan.trace import fabric, rails
from gangplan.trace.cause import Cause
from gangplan.trace.context import TraceContext
from gangplan.trace.files import build_own_cause

# The causes of job attributes that are not spec fields with layered defaults, by name.
ATTRIBUTES: dict[str, Callable[[TraceContext], list[Cause]]] = {
    "framework": TraceContext.framework,
    "launcher_pool": lambda context: context.pool(context.job.launcher_pool.name),
    "mpi": TraceContext.mpi,
    "name": TraceContext.named,
    "namespace": TraceContext.namespace,
    "queue": TraceContext.queue,
    "run_name": TraceContext.run_name,
    "slots": TraceContext.slots,
    "team": TraceContext.team_name,
    "threads": TraceContext.threads,
    "worker_pool": lambda context: context.pool(context.job.worker_pool.name),
    "workers": TraceContext.workers,
}


def trace_origins_to_causes(context: TraceContext, origins: Iterable[ValueOrigin]) -> list[Cause]:
    """Return the causes of origins, in their order."""
    return [
        cause if origin.is_direct else cause.aside()
        for origin in origins
        for cause in _trace_origin_causes(context, origin)
    ]


def _trace_origin_causes(context: TraceContext, origin: ValueOrigin) -> list[Cause]:
    if not origin.role:
        return [build_own_cause(origin.because)]
    if origin.role == "fabric":
        return fabric.trace_fabric_causes(context, *origin.path)
    if origin.role == "worker_pool":
        return [context.cluster("nodePools", context.job.worker_pool.name, *origin.path)]
    if origin.role == "rails":
        return rails.trace_rdma_causes(context, str(origin.path[0]))
    if origin.role == "job":
        name = str(origin.path[0])
        return ATTRIBUTES[name](context) if name in ATTRIBUTES else context.chosen(name)
    return [context.files.cause(origin.role, *origin.path, because=origin.because, key=origin.is_key)]
