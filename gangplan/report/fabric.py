"""The RDMA network of a run's workers, in words and as data."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gangplan.model.job import Fabric


def fabric_words(fabric: Fabric) -> str:
    """`networks fabric/rail0, fabric/rail1; interfaces net1, net2; cards mlx5_0, mlx5_1`; empty without any."""
    often = Counter(fabric.networks)
    networks = [name if count == 1 else f"{name} ({count} times)" for name, count in often.items()]
    found = (("network", networks), ("interface", fabric.interfaces), ("card", fabric.hcas))
    return "; ".join(f"{noun}{'s' * (len(names) > 1)} {', '.join(names)}" for noun, names in found if names)


def fabric_document(fabric: Fabric) -> dict[str, Any] | None:
    """The same as data; None for a run without RDMA."""
    if not fabric.resources:
        return None
    return {
        "resources": list(fabric.resources),
        "networks": list(fabric.networks),
        "interfaces": list(fabric.interfaces),
        "hcas": list(fabric.hcas),
    }
