"""A random world: its node groups and objects, with unique names.

All names in a scene begin with the scene's name (`w12-...`), its nodes have a label of their own (`WORLD`),
and every run in it selects that label: many scenes share one lab without interfering.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.world import NodeGroup, World

Object = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
WORLD = "node.example.com/world"
POOL = "node.example.com/pool"
ZONE = "node.example.com/zone"
BLOCK, RACK = "topology.example.com/block", "topology.example.com/rack"
GPU = "nvidia.com/gpu"
ACCOUNT = "training"
GIB = 2**30
HEAD = {"apiVersion": "gangplan.dev/v1"}
IMAGES = ("openmpi", "openmpi", "pytorch")
PRIORITIES = {"low": -10, "normal": 0, "high": 1000}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where runs of a team enter: a namespace, its LocalQueue, and the ClusterQueue of that."""

    namespace: str
    local: str
    queue: str


@dataclass(slots=True)
class Scene:
    """One world, while it is drawn and afterwards."""

    name: str
    random: Random
    groups: list[NodeGroup] = field(default_factory=list)
    flavors: dict[str, Object] = field(default_factory=dict)
    topologies: list[Object] = field(default_factory=list)
    cohorts: list[Object] = field(default_factory=list)
    queues: list[Object] = field(default_factory=list)
    locals: list[Object] = field(default_factory=list)
    others: list[Object] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    pool_of: dict[str, NodeGroup] = field(default_factory=dict)
    levels: tuple[str, ...] = ()
    mistake: str = ""

    @property
    def standing(self) -> tuple[Object, ...]:
        """All objects in an order in which they can be created."""
        return (
            *self.others,
            *self.topologies,
            *self.flavors.values(),
            *self.cohorts,
            *self.queues,
            *self.locals,
        )

    def world(self, versions: SchemaVersions, fair_sharing: bool = False) -> World:
        """Return the world as gangplan sees it."""
        return World(self.name, versions, self.standing, tuple(self.groups), fair_sharing)


def meta(name: str, namespace: str | None = None, **labels: str) -> Object:
    """Return an object's metadata."""
    found: Object = {"name": name}
    if namespace:
        found["namespace"] = namespace
    if labels:
        found["labels"] = dict(labels)
    return found


def kueue(kind: str, name: str, spec: Object, namespace: str | None = None) -> Object:
    """Return a Kueue object."""
    return {"apiVersion": KUEUE, "kind": kind, "metadata": meta(name, namespace), "spec": spec}
