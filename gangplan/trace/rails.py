"""Causes of the RDMA devices of a node pool: one entry or a list in the cluster's file."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext
from gangplan.trace.files import TracedFiles, build_own_cause


def trace_rail_entry_paths(files: TracedFiles, pool: str) -> list[FieldPath]:
    """Return the paths of the entries; if there are none, that of the entry that could be written."""
    base: FieldPath = ("nodePools", pool, "rdma")
    written = files.value("cluster", *base)
    return [(*base, number) for number in range(len(written))] if isinstance(written, list) else [base]


def find_rail_path(files: TracedFiles, pool: str, resource: str) -> FieldPath | None:
    """Return the path of the entry with this resource, or None."""
    return next(
        (
            one
            for one in trace_rail_entry_paths(files, pool)
            if files.value("cluster", *one, "resource") == resource
        ),
        None,
    )


def trace_device_claim_causes(context: TraceContext, number: int, field: str = "") -> list[Cause]:
    """Return the causes of a worker's claim by its number: of the whole claim, its class or its count.

    A claim that the job does not have is of an earlier time, or from a patch.
    """
    if number >= len(context.job.resources.claims):
        return [build_own_cause("each worker claims the devices of a class")]
    claim = context.job.resources.claims[number]
    path = trace_rail_entry_paths(context.files, context.job.worker_pool.name)[claim.rail]
    stated, around = context.cluster(*path, "deviceClass"), context.pool(context.job.worker_pool.name)
    if field == "count":
        return [*trace_rdma_amount_causes(context, path), stated.aside(), *around]
    if field == "deviceClassName":
        return [stated, *mark_indirect(trace_rdma_amount_causes(context, path)), *around]
    claimed = build_own_cause("each worker claims the devices of a class")
    return [claimed, stated.aside(), *mark_indirect(trace_rdma_amount_causes(context, path)), *around]


def trace_rdma_name_causes(files: TracedFiles, pool: str) -> list[Cause]:
    """Return the names of a pool's devices, as indirect causes."""
    found = [files.cause("cluster", "nodePools", pool, "gpu", "resource")]
    found += [files.cause("cluster", *one, "resource") for one in trace_rail_entry_paths(files, pool)]
    return mark_indirect([*found, *_list_device_class_causes(files, pool)])


def trace_rdma_amount_causes(context: TraceContext, at: FieldPath) -> list[Cause]:
    """Return the causes of the number of an entry's devices that a worker gets (resolve/rdma.py)."""
    asked, count = context.spec("network", "rdma"), context.cluster(*at, "count")
    shared = context.cluster(*at, "shared")
    if isinstance(context.value("spec", "network", "rdma"), int):
        found = [asked]
    elif context.value("spec", "network", "rdma") == "per-gpu":
        found = [*context.chosen("gpus"), asked.aside()]
    elif shared.is_written:
        found = [
            build_own_cause("a device that is shared is all that a worker can use"),
            shared.aside(),
            asked.aside(),
        ]
    else:
        found = [count, asked.aside()]
    return [*found, *_trace_device_sharing_causes(context)]


def trace_rdma_causes(context: TraceContext, field: str) -> list[Cause]:
    """Return the causes of a field of all entries, and of the choice of entries for a worker."""
    found = [context.cluster(*one, field) for one in _list_rail_field_paths(context)]
    written = [one for one in found if one.is_written]
    return [
        *written,
        *mark_indirect(found),
        context.spec("network", "rdma").aside(),
        *_trace_device_sharing_causes(context),
    ]


def _list_device_class_causes(files: TracedFiles, pool: str) -> list[Cause]:
    """Return the classes of a pool's devices, where the file states any."""
    found = (files.cause("cluster", *one, "deviceClass") for one in trace_rail_entry_paths(files, pool))
    return [one for one in found if one.is_written]


def _list_rail_field_paths(context: TraceContext) -> list[FieldPath]:
    return trace_rail_entry_paths(context.files, context.job.worker_pool.name)


def _trace_device_sharing_causes(context: TraceContext) -> list[Cause]:
    """Return what decides how the devices of a node are shared out among its workers, as indirect causes."""
    pool = context.job.worker_pool.name
    facts = [
        context.cluster(*one, field)
        for one in _list_rail_field_paths(context)
        for field in ("resource", "count", "shared")
    ]
    facts += _list_device_class_causes(context.files, pool)
    return mark_indirect(
        [*facts, *context.chosen("gpus"), context.cluster("nodePools", pool, "gpu", "count")]
    )
