"""Simulated nodes from plain descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .client import Client, Object, condition

#: What a node has if its description doesn't say.
USUAL = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "500Gi", "pods": "110"}

#: The nodes of a lab that was not given any.
DEFAULT: tuple[Mapping[str, Any], ...] = ({"name": "cpu", "count": 4},)


def node(description: Mapping[str, Any]) -> Object:
    """Return a Node from ``name``, ``labels``, ``taints`` and ``allocatable``."""
    name = description["name"]
    allocatable = {**USUAL, **{key: str(value) for key, value in description.get("allocatable", {}).items()}}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **description.get("labels", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [dict(taint) for taint in description.get("taints", ())]},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def expanded(descriptions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return one description per node; ``count: 3`` of ``a`` is a-0, a-1 and a-2."""
    result: list[Mapping[str, Any]] = []
    for description in descriptions:
        if "count" not in description:
            result.append(description)
        else:
            names = (f"{description['name']}-{number}" for number in range(description["count"]))
            result += [{**description, "name": name} for name in names]
    return result


def create(api: Client, descriptions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Create nodes; return their names."""
    return [api.create(node(each)).object["metadata"]["name"] for each in expanded(descriptions)]


def usable(api: Client, names: Iterable[str]) -> bool:
    """Return whether pods can be scheduled to all of some nodes."""
    return set(names) <= {item["metadata"]["name"] for item in api.list("Node") if _usable(item)}


def _usable(item: Object) -> bool:
    """Return whether a node is ready and no longer has the taint of a new one."""
    taints = {taint["key"] for taint in item["spec"].get("taints", ())}
    return condition(item, "Ready") == "True" and "node.kubernetes.io/not-ready" not in taints
