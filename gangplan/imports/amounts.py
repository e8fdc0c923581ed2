"""Convert amounts of other systems to those of a spec."""

from __future__ import annotations

from gangplan.model.quantity import QuantityError, parse_quantity

MIG_PREFIX = "nvidia.com/mig-"
# RDMA and EFA devices: k8s-rdma-shared-dev-plugin, SR-IOV network device plugin, aws-efa-k8s-device-plugin.
_FABRICS = ("rdma/", "vpc.amazonaws.com/efa", "openshift.io/", "intel.com/sriov", "mellanox.com/")
_BYTES_A_STEP = 1024


def is_fabric(resource: str) -> bool:
    """Return whether an extended resource is a device of the fabric."""
    return resource.startswith(_FABRICS) or (
        "nvidia.com/" in resource and any(one in resource for one in ("rdma", "sriov", "roce", "hostdev"))
    )


def convert_imported_cores(text: str) -> int | float | str | None:
    """Return cores, whole ones as a number; None for what is not an amount, or not positive."""
    try:
        amount = parse_quantity(text)
    except QuantityError:
        return None
    if amount.nano <= 0:
        return None
    if amount.nano % 10**9 == 0:
        return amount.nano // 10**9
    return f"{amount.milli()}m"


def convert_imported_memory(text: str) -> str | None:
    """Return memory with its unit, in the largest binary unit that holds it exactly.

    Return None for what is not an amount, or less than 1 KiB.
    """
    try:
        amount = parse_quantity(text)
    except QuantityError:
        return None
    count = amount.value()
    if count < _BYTES_A_STEP:
        return None
    for unit in ("", "Ki", "Mi", "Gi"):
        larger = {"": "Ki", "Ki": "Mi", "Mi": "Gi", "Gi": ""}[unit]
        if count % _BYTES_A_STEP or not larger:
            return f"{count}{unit}" if unit else _format_decimal_bytes(count)
        count //= _BYTES_A_STEP
    return None


def _format_decimal_bytes(count: int) -> str:
    """Return bytes that are not a multiple of 1024 in a decimal unit, else rounded up to whole Ki."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count % size == 0:
            return f"{count // size}{unit}"
    return f"{-(-count // _BYTES_A_STEP)}Ki"
