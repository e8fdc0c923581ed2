"""Disk, huge pages and devices of a worker that are neither GPUs nor RDMA devices."""

from __future__ import annotations

from gangplan.model.job import Origin
from gangplan.model.quantity import Quantity, parse_quantity
from gangplan.resolve.context import JobResolution
from gangplan.rules.devices import DEVICE_HAS_FIELD, HUGE_PAGES_UNEVEN
from gangplan.spec.nodes import key_by_resource


def resolve_other_devices(context: JobResolution) -> tuple[tuple[str, Quantity], ...]:
    """Return what a worker requests by resource, in bytes and pieces. Placement checks that a node has it."""
    spec = context.spec.spec
    for field, value in (("disk", spec.disk), ("hugePages", spec.huge_pages), ("devices", spec.devices)):
        if value:
            context.origins[field] = Origin("spec", context.where(field))
    _check_requested_huge_pages(context)
    devices = {
        name: count
        for name, count in spec.devices.items()
        if _is_neither_gpu_nor_rdma_device(context, name, count)
    }
    return tuple(key_by_resource(spec.disk, spec.huge_pages, devices).items())


def _check_requested_huge_pages(context: JobResolution) -> None:
    """Check that huge pages are whole.

    The API server refuses a part of a page (validateResourceRequirements, Kubernetes v1.34).
    """
    for size, amount in context.spec.spec.huge_pages.items():
        page = parse_quantity(size)
        if amount.nano % page.nano:
            above = Quantity(-(-amount.nano // page.nano) * page.nano, page.format)
            context.report(
                HUGE_PAGES_UNEVEN,
                context.where("hugePages", size),
                f"{amount} is not a whole number of pages of {size}",
                f"Write {above}.",
            )


def _is_neither_gpu_nor_rdma_device(context: JobResolution, resource: str, count: int) -> bool:
    """Return whether a device is neither a GPU nor an RDMA device.

    Those have fields of their own, which know models and networks.
    """
    pools = context.cluster.spec.node_pools.values()
    if any(pool.gpu and pool.gpu.resource == resource for pool in pools):
        field, what, help = "gpus", "GPUs", f"gpus: {count}"
    elif any(rail.resource == resource for pool in pools for rail in pool.rails):
        field, what, help = "network.rdma", "RDMA devices", f"network: {{rdma: {count}}}"
    else:
        return True
    context.report(
        DEVICE_HAS_FIELD,
        context.where("devices", resource, key=True),
        f"{resource} are {what} of cluster {context.cluster.name}, which {field} asks for",
        f"Write {help} at the top level, and remove it here.",
    )
    return False
