"""Checks of whether a run can train well: memory, CPU and ranks for GPUs, cores to bind to, and the network."""

from __future__ import annotations

import re

from gangplan.model.amounts import format_for_spec, format_with_unit
from gangplan.model.frameworks import ONE_RANK_FRAMEWORKS
from gangplan.model.image import PulledImage
from gangplan.model.quantity import ZERO, Quantity
from gangplan.resolve.context import JobResolution
from gangplan.resolve.limits import check_counts_against_cluster_limits
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.placement import ChosenPlacement
from gangplan.rules.model import WARNING, Rule
from gangplan.rules.specs import SLOTS_NOT_GPUS
from gangplan.rules.workers import (
    BINDING_SHARED,
    CPU_TINY,
    MEMORY_TINY,
    MIG_SLICES,
    NETWORK_SLOW,
    RANKS_SHARE_GPUS,
)
from gangplan.spec.nodes import NodePool

# Frameworks whose ranks use NCCL between GPUs, unless the program chooses otherwise.
_BY_NCCL = ("torch", "deepspeed", "horovod", "paddle")
# The least memory of a process with a CUDA context and PyTorch's libraries, before it trains.
_LEAST_MEMORY = Quantity.of(1 << 30)
_LEAST_CPU = Quantity.of(1)
# With this variable, newer NCCL lets ranks share a GPU (experimental).
_SHARING = "NCCL_MULTI_RANK_GPU_ENABLE"

# Nodes, or GPUs of several nodes, and the least bandwidth of each node in Gbit/s (founding requirement NET-13).
_BANDWIDTHS = ((16, 1 << 30, 25), (8, 32, 10))


def check_requested_amounts_are_plausible(
    context: JobResolution,
    shape: WorkerShape,
    workers: int,
    slots: int,
    image: PulledImage | None,
    placement: ChosenPlacement | None,
) -> None:
    """Check counts against the cluster's limits, and a worker's ranks, CPU and memory against its GPUs."""
    check_counts_against_cluster_limits(context, workers, shape.gpus, slots, image)
    _check_cores_for_bound_ranks(context, shape, slots)
    if shape.gpus:
        _check_ranks_against_requested_gpus(context, shape, workers, slots, image)
        if placement is not None:  # else no node is large enough, which is reported
            _check_requested_worker_amounts(context, shape, placement.node_pool)
            _check_spec_ranks_on_shared_gpus(context, placement, workers * slots, image)
            if image is not None and image.framework != "plain":
                _check_pool_bandwidth_for_workers(context, placement, shape.gpus, workers)


def _check_cores_for_bound_ranks(context: JobResolution, shape: WorkerShape, slots: int) -> None:
    """Check that ranks which are bound to cores have cores of their own."""
    mpi, one = context.spec.spec.mpi, Quantity.of(1).nano
    if mpi is None or mpi.bind_to != "core":
        return
    cpu = format_with_unit("cpu", shape.cpu)
    least = f"{slots} {'rank' if slots == 1 else 'ranks'}"
    if shape.cpu.nano < slots * one:
        message = f"bindTo: core binds {least} to a core each, but a worker has {cpu}"
    elif shape.cpu.nano % one:
        message = f"bindTo: core, but a worker with {cpu} has no cores of its own: pods of one node bind to the same"
    else:
        return
    help = f"Write cpu: {max(slots, -(-shape.cpu.nano // one))}, or remove bindTo."
    context.report(BINDING_SHARED, context.where("mpi", "bindTo"), message, help)


def _check_pool_bandwidth_for_workers(
    context: JobResolution, placement: ChosenPlacement, gpus: int, workers: int
) -> None:
    """Check the bandwidth of the nodes, where it is stated and no RDMA is used, against their number."""
    pool, fabric = placement.node_pool, placement.fabric
    if pool.network_gbps is None or fabric.resources or fabric.access.name:
        return
    nodes = -(-workers // max(1, pool.gpu.count // gpus)) if pool.gpu else workers
    needed = next(
        (
            gbps
            for least, least_gpus, gbps in _BANDWIDTHS
            if nodes >= least or (nodes > 1 and workers * gpus >= least_gpus)
        ),
        0,
    )
    if pool.network_gbps >= needed:
        return
    others = [
        name
        for name, one in context.cluster.spec.node_pools.items()
        if one.gpu and (one.rails or one.fabric or (one.network_gbps or 0) >= needed)
    ]
    better = f"Name a pool with RDMA or a faster network ({', '.join(others)})" if others else ""
    context.report(
        NETWORK_SLOW,
        context.origin_of("workers", ("workers",)),
        f"{workers} workers are on {nodes} nodes with {pool.network_gbps} Gbit/s each (pool '{placement.name}'), which"
        f" need {needed} to keep their GPUs busy",
        f"{better}, or use fewer nodes." if better else "Use fewer nodes, or another cluster.",
    )


def _check_ranks_against_requested_gpus(
    context: JobResolution, shape: WorkerShape, workers: int, slots: int, image: PulledImage | None
) -> None:
    """Check the number of ranks of a worker against its GPUs."""
    gpus, framework = shape.gpus, image.framework if image else ""
    if shape.mig and gpus > 1:
        context.report(
            MIG_SLICES,
            context.where("gpus"),
            f"{gpus} MIG slices per worker, but a process sees one of them: "
            + (f"{slots - 1} of its {slots} ranks have none" if slots > 1 else f"{gpus - 1} stay idle"),
            f"Write gpus: 1 and workers: {workers * gpus}, without slots: a slice and a rank for each worker.",
            level=WARNING if slots == 1 else None,  # it may start processes of its own, each with a slice
        )
    elif slots > gpus and framework in _BY_NCCL and _SHARING not in context.spec.spec.env:
        context.report(
            RANKS_SHARE_GPUS,
            context.where("slots"),
            f"{slots} ranks have {_format_gpu_count(gpus)} on each worker, and NCCL ends a run in which two ranks share a GPU",
            "Omit slots to run one rank per GPU.",
        )
    elif slots != gpus and framework not in ONE_RANK_FRAMEWORKS:
        share = "shares" if slots == 1 else "share"
        what = f"{slots} {'rank' if slots == 1 else 'ranks'} {share} {_format_gpu_count(gpus)} on each worker"
        context.report(SLOTS_NOT_GPUS, context.where("slots"), what, "Omit slots to run one rank per GPU.")


def _check_spec_ranks_on_shared_gpus(
    context: JobResolution, placement: ChosenPlacement, ranks: int, image: PulledImage | None
) -> None:
    """Check for ranks on shared GPUs, where two may get the same card."""
    gpu = placement.node_pool.gpu
    if gpu is None or not gpu.is_shared or ranks == 1 or _SHARING in context.spec.spec.env:
        return
    if image is None or image.framework not in _BY_NCCL:
        return
    pools = context.cluster.spec.node_pools
    whole = [name for name, pool in pools.items() if pool.gpu and not pool.gpu.is_shared and not pool.gpu.mig]
    context.report(
        RANKS_SHARE_GPUS,
        context.where("gpus"),
        f"the GPUs of pool '{placement.name}' are shared: two of the {ranks} ranks can get the same card, and NCCL ends"
        " a run in which two share one",
        f"Use a pool with whole GPUs{' (' + ', '.join(whole) + ')' if whole else ''}, or write workers: 1 and gpus: 1.",
    )


def _format_gpu_count(count: int) -> str:
    return f"{count} {'GPU' if count == 1 else 'GPUs'}"


def _check_requested_worker_amounts(context: JobResolution, shape: WorkerShape, pool: NodePool) -> None:
    """Check CPU and memory of the spec: amounts too small for processes with GPUs are likely a wrong unit."""
    for rule, name, amount, least in (
        (MEMORY_TINY, "memory", shape.memory, _LEAST_MEMORY),
        (CPU_TINY, "cpu", shape.cpu, _LEAST_CPU),
    ):
        if amount.nano < least.nano * shape.gpus and context.origins[name].layer == "spec":
            _report_tiny_requested_amount(context, rule, name, amount, shape, pool)


def _report_tiny_requested_amount(
    context: JobResolution, rule: Rule, name: str, amount: Quantity, shape: WorkerShape, pool: NodePool
) -> None:
    what = format_with_unit(name, amount) if name == "cpu" else f"{amount.canonical()} of {name}"
    meant = _guess_memory_meant_by_spec(name, amount, pool)
    message = (
        f"{what} for {_format_gpu_count(shape.gpus)}: {'no' if name == 'memory' else 'too little to keep'} "
    )
    message += "process of a framework starts with so little" if name == "memory" else "them busy"
    help = f"Write {name}: {meant or _compute_worker_share_of_pool_node(name, shape, pool)}."
    context.report(rule, context.origin_of(name, (name,)), message, help)


def _guess_memory_meant_by_spec(name: str, amount: Quantity, pool: NodePool) -> str:
    """Return the same number in GiB, if the unit may be wrong and a node has that much."""
    number = re.fullmatch(r"(\d+)(?:[mkM]|Ki|Mi)?", amount.canonical())
    if name != "memory" or number is None:
        return ""
    meant = Quantity.of(int(number[1]) << 30)
    return format_for_spec(name, meant) if meant > ZERO and meant.nano <= pool.memory.nano else ""


def _compute_worker_share_of_pool_node(name: str, shape: WorkerShape, pool: NodePool) -> str:
    """Return a fair share of a node for so many GPUs, rounded down; a usual amount if that is zero."""
    usual = Quantity.of(shape.gpus * (64 << 30 if name == "memory" else 8))
    if pool.gpu is None or not pool.gpu.count:
        return format_for_spec(name, usual)
    whole: Quantity = getattr(pool, name)
    unit = (1 << 30 if name == "memory" else 1) * 10**9
    part = whole.nano * min(shape.gpus, pool.gpu.count) // pool.gpu.count // unit * unit
    return format_for_spec(name, Quantity(part or usual.nano))
