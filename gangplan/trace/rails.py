"""Causes of the RDMA devices of a node pool: one entry or a list in the cluster's file."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext
from gangplan.trace.files import Files, own


def rails(files: Files, pool: str) -> list[Path]:
    """Return the paths of the entries; if there are none, that of the entry that could be written."""
    base: Path = ("nodePools", pool, "rdma")
    written = files.value("cluster", *base)
    return [(*base, number) for number in range(len(written))] if isinstance(written, list) else [base]


def rail_of(files: Files, pool: str, resource: str) -> Path | None:
    """Return the path of the entry with this resource, or None."""
    return next(
        (one for one in rails(files, pool) if files.value("cluster", *one, "resource") == resource), None
    )


def resources(files: Files, pool: str) -> list[Cause]:
    """Return the names of a pool's devices, as indirect causes."""
    found = [files.cause("cluster", "nodePools", pool, "gpu", "resource")]
    return asides([*found, *(files.cause("cluster", *one, "resource") for one in rails(files, pool))])


def amount(context: TraceContext, at: Path) -> list[Cause]:
    """Return the causes of the number of an entry's devices that a worker gets (resolve/rdma.py)."""
    asked, count = context.spec("network", "rdma"), context.cluster(*at, "count")
    shared = context.cluster(*at, "shared")
    if isinstance(context.value("spec", "network", "rdma"), int):
        found = [asked]
    elif context.value("spec", "network", "rdma") == "per-gpu":
        found = [*context.chosen("gpus"), asked.aside()]
    elif shared.is_written:
        found = [own("a device that is shared is all that a worker can use"), shared.aside(), asked.aside()]
    else:
        found = [count, asked.aside()]
    return [*found, *_taken(context)]


def stated(context: TraceContext, field: str) -> list[Cause]:
    """Return the causes of a field of all entries, and of the choice of entries for a worker."""
    found = [context.cluster(*one, field) for one in _entries(context)]
    written = [one for one in found if one.is_written]
    return [*written, *asides(found), context.spec("network", "rdma").aside(), *_taken(context)]


def _entries(context: TraceContext) -> list[Path]:
    return rails(context.files, context.job.worker_pool.name)


def _taken(context: TraceContext) -> list[Cause]:
    """Return what decides how the devices of a node are shared out among its workers, as indirect causes."""
    pool = context.job.worker_pool.name
    facts = [
        context.cluster(*one, field) for one in _entries(context) for field in ("resource", "count", "shared")
    ]
    return asides([*facts, *context.chosen("gpus"), context.cluster("nodePools", pool, "gpu", "count")])
