"""The preflight in the launch script: where what it is told comes from."""

from __future__ import annotations

from gangplan.trace.cause import Cause, asides
from gangplan.trace.context import TraceContext


def looked(context: TraceContext, names: list[Cause]) -> list[Cause]:
    """What the preflight is, and what of the plan it is told (plan/preflight.py)."""
    asked = context.spec("preflight")
    if not context.job.image.preflight:
        return [asked.aside()]
    told = [*context.slots(), *context.ranks(), *context.chosen("gpus"), *context.chosen("image"), *names]
    told += [context.spec(field) for field in ("mpi", "data", "checkpoint", "volumes")]
    told += [context.spec("network", field) for field in ("rdma", "transport")]
    told.append(context.cluster("nodePools", context.job.worker_pool.name, "rdma"))
    told += [context.team("claims"), context.team("connections")]
    return [asked, context.image("preflight"), *asides(told)]
