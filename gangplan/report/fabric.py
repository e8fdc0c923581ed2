"""The RDMA network of a run's workers, as text and as data."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gangplan.model.fabric import WorkerFabric


def describe_worker_fabric(fabric: WorkerFabric) -> str:
    """Return `roce: the node's network; networks fabric/rail0, fabric/rail1; cards mlx5_0`; empty without
    any."""
    often = Counter(fabric.networks)
    networks = [name if count == 1 else f"{name} ({count} times)" for name, count in often.items()]
    found = (("network", networks), ("interface", fabric.interfaces), ("card", fabric.hcas))
    words = [f"{noun}{'s' * (len(names) > 1)} {', '.join(names)}" for noun, names in found if names]
    access = fabric.access
    if not access.name:
        return "; ".join(words)
    beside = [one.name for one in access.containers]
    given = [*access.needs, *([f"next to it {', '.join(beside)}"] if beside else []), *words]
    return f"{access.name}: {'; '.join(given)}" if given else access.name


def build_worker_fabric_json(fabric: WorkerFabric) -> dict[str, Any] | None:
    """Return the network as data; None for a run without RDMA."""
    if not fabric.resources and not fabric.access.name:
        return None
    access = fabric.access
    given = {"name": access.name, "needs": list(access.needs), "level": access.level} if access.name else {}
    return {
        **given,
        "resources": list(fabric.resources),
        "networks": list(fabric.networks),
        "interfaces": list(fabric.interfaces),
        "hcas": list(fabric.hcas),
    }
