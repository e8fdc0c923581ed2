"""RDMA devices of a node pool in the cluster's file, one entry or a list: where their fields stand."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import TraceContext
from gangplan.trace.files import Files, own


def rails(files: Files, pool: str) -> list[Path]:
    """The paths of the entries; where there are none, of the one that could be."""
    base: Path = ("nodePools", pool, "rdma")
    written = files.value("cluster", *base)
    return [(*base, number) for number in range(len(written))] if isinstance(written, list) else [base]


def rail_of(files: Files, pool: str, resource: str) -> Path | None:
    """The path of the entry with this resource; None where there is none."""
    return next(
        (one for one in rails(files, pool) if files.value("cluster", *one, "resource") == resource), None
    )


def resources(files: Files, pool: str) -> list[Cause]:
    """The names of a pool's devices, as causes that do not show."""
    found = [files.cause("cluster", "nodePools", pool, "gpu", "resource")]
    return asides([*found, *(files.cause("cluster", *one, "resource") for one in rails(files, pool))])


def amount(context: TraceContext, at: Path) -> list[Cause]:
    """How many devices of an entry a worker gets (resolve/rdma.py)."""
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
    """A field of every entry, each that is written, and what decides which entries a worker takes."""
    found = [context.cluster(*one, field) for one in _entries(context)]
    written = [one for one in found if one.is_written]
    return [*written, *asides(found), context.spec("network", "rdma").aside(), *_taken(context)]


def _entries(context: TraceContext) -> list[Path]:
    return rails(context.files, context.job.worker_pool.name)


def _taken(context: TraceContext) -> list[Cause]:
    """What decides how the devices of a node are dealt out to its workers, as causes that do not show."""
    pool = context.job.worker_pool.name
    facts = [
        context.cluster(*one, field) for one in _entries(context) for field in ("resource", "count", "shared")
    ]
    return asides([*facts, *context.chosen("gpus"), context.cluster("nodePools", pool, "gpu", "count")])
