"""What a pod of an earlier commit used, and the price of its pool then.

The files may be of any age, so nothing in them is certain but that they are YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from gangplan.model.bill import ZERO_COST
from gangplan.model.cost import NANOS_PER_UNIT
from gangplan.model.quantity import QuantityError, parse_quantity

_GPU = "nvidia.com/gpu"


def find_nested_value(value: Any, *path: str) -> Any:
    """Return the value at a path of mappings; None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def find_pool_of_past_pod(pod: Mapping[str, Any], pools: Mapping[str, Any]) -> str:
    """Return the pool whose labels the pod selects: of several, the one with most labels; empty if none
    fits."""
    asked = find_nested_value(pod, "nodeSelector") or {}
    fits = [
        (len(labels), name)
        for name, pool in pools.items()
        if (labels := pool.get("labels") or {})
        and all(asked.get(key) == str(value) for key, value in labels.items())
    ]
    return max(fits)[1] if fits else ""


def sum_resources_of_past_pod(pod: Mapping[str, Any], pool: Mapping[str, Any]) -> tuple[Decimal, Decimal]:
    """Return the GPUs and cores of one pod."""
    resource = find_nested_value(pool, "gpu", "resource") or _GPU
    found = {resource: ZERO_COST, "cpu": ZERO_COST}
    for container in find_nested_value(pod, "containers") or ():
        for name in found:
            amount = find_nested_value(container, "resources", "requests", name) or find_nested_value(
                container, "resources", "limits", name
            )
            try:
                found[name] += (
                    Decimal(parse_quantity(str(amount)).nano) / NANOS_PER_UNIT
                    if amount is not None
                    else ZERO_COST
                )
            except QuantityError:
                continue
    return found[resource], found["cpu"]


def compute_pool_hourly_price(pool: Mapping[str, Any]) -> Decimal | None:
    """Return the hourly price of a pool's GPU or core, less its discount; None if none can be read."""
    stated = find_nested_value(pool, "price", "perGpuHour" if pool.get("gpu") else "perCpuHour")
    try:
        price, off = Decimal(str(stated)), Decimal(str(find_nested_value(pool, "price", "discount") or 0))
    except InvalidOperation:
        return None
    is_sound = price.is_finite() and off.is_finite() and price >= 0 and 0 <= off <= 100
    return price * (100 - off).scaleb(-2) if is_sound and stated is not None else None
