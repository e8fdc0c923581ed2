"""Amounts of resources as people write them: the one formatter for messages, plans and tables.

`format_with_unit`: `186.5 CPU`, `34 GiB of memory`, `8 GPUs`; `format_amount`: the same without the noun;
`format_for_spec`: what to paste into a file, `186.5`, `34Gi`, `8`. Machines get `Quantity.canonical`, the
text of Kubernetes.
"""

from __future__ import annotations

import re
from fractions import Fraction

from gangplan.model.quantity import Quantity, QuantityFormat, format_bytes

_BYTES = re.compile(r"memory|ephemeral-storage|storage(/.*)?|hugepages-.*")
_MIG = re.compile(r"[a-z0-9.]+/mig-(.+)")
_GPU = re.compile(r"[a-z0-9.-]+/(?:gpu|gpu\.shared|gpus)")
_NOUNS = {"ephemeral-storage": "scratch disk", "storage": "storage"}

# Resources that are GPUs: the device plugins of NVIDIA, AMD, Intel, Habana and AWS (their READMEs, 2026).
GPU_RESOURCES = frozenset(
    {
        "nvidia.com/gpu",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        "nvidia.com/gpu.shared",
    }
    | {"aws.amazon.com/neuron", "aws.amazon.com/neurondevice", "google.com/tpu"}
)


def is_gpu(resource: str) -> bool:
    """Return whether a resource is GPUs or slices of a GPU, of any vendor."""
    return resource in GPU_RESOURCES or bool(_GPU.fullmatch(resource) or _MIG.fullmatch(resource))


def format_with_unit(resource: str, amount: Quantity | Fraction) -> str:
    """Return the amount with the noun of its resource."""
    if resource == "cpu":
        return f"{format_amount(resource, amount)} CPU"
    if _BYTES.fullmatch(resource):
        page = resource.removeprefix("hugepages-")
        noun = f"huge pages of {page}" if page != resource else _NOUNS.get(resource, resource)
        noun = noun.replace("storage/", "local disks of ")
        return f"{format_amount(resource, amount)} of {noun}"
    number = format_amount(resource, amount)
    if mig := _MIG.fullmatch(resource):
        return f"{number} MIG {'slice' if number == '1' else 'slices'} ({mig[1]})"
    if _GPU.fullmatch(resource):
        return f"{number} {'GPU' if number == '1' else 'GPUs'}"
    return f"{number} {resource}"


def format_amount(resource: str, amount: Quantity | Fraction) -> str:
    """Return the amount alone: GiB of memory, else a plain number (`1000`, not `1k`; `0.5`, not `500m`)."""
    exact = _convert_to_quantity(amount)
    return format_bytes(exact) if _BYTES.fullmatch(resource) else _format_decimal_number(exact)


def format_for_spec(resource: str, amount: Quantity | Fraction) -> str:
    """Return the amount as a file of gangplan takes it."""
    exact = _convert_to_quantity(amount)
    if _BYTES.fullmatch(resource):
        return Quantity(exact.nano, QuantityFormat.BINARY_SI).canonical()
    return _format_decimal_number(exact)


def _convert_to_quantity(amount: Quantity | Fraction) -> Quantity:
    if isinstance(amount, Quantity):
        return amount
    nano = amount * 10**9
    return Quantity(-(-nano.numerator // nano.denominator))


def _format_decimal_number(amount: Quantity) -> str:
    whole, rest = divmod(abs(amount.nano), 10**9)
    text = f"{whole}.{rest:09}".rstrip("0").rstrip(".") if rest else str(whole)
    return f"-{text}" if amount.nano < 0 else text
