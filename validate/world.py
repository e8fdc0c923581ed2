"""A cluster, as its built objects and node pools describe it, and a run on it: the input of every proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, TypeVar

from gangplan.findings import FieldPath
from gangplan.model.backend import MPIJOB, RUNTIME_KIND
from gangplan.model.manager import UNCONFIGURED_MANAGER, ManagerSettings
from gangplan.model.quantity import Quantity
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.records import dataclass
from gangplan.spec.cluster import Cluster
from gangplan.spec.manager import manager_settings_of
from gangplan.spec.nodes import ARCH_LABEL, NodePool, find_spec_field_of_resource
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.jobset import POD_TEMPLATE_PATH, REPLICATED_JOBS_PATH, list_replicated_jobs

HOSTNAME_LABEL = "kubernetes.io/hostname"
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class NodeGroupTaint:
    """A taint of a node; a taint without a value has ""."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one shape.

    `free` is what one of them has for runs: allocatable without its DaemonSets. `domains` are the topology
    levels, widest first: (node label, nodes in one domain; 0 if unknown). Nodes fill domains in order: node i
    is in domain i // nodes of each level.
    """

    name: str
    count: int
    labels: Mapping[str, str]
    taints: tuple[NodeGroupTaint, ...]
    free: Mapping[str, Fraction]
    domains: tuple[tuple[str, int], ...] = ()
    numa: Mapping[str, int] = field(
        default_factory=dict
    )  # NUMA nodes, by resource that is taken from one of them


Templates = Iterator[tuple[FieldPath, Body]]


def _find_runtime_pod_templates(body: Body) -> Templates:
    for index, job in enumerate(list_replicated_jobs(body)):
        yield (
            (*REPLICATED_JOBS_PATH, index, *POD_TEMPLATE_PATH),
            (job["template"].get("spec") or {}).get("template") or {},
        )


def _find_mpijob_pod_templates(body: Body) -> Templates:
    for name, one in (body["spec"].get("mpiReplicaSpecs") or {}).items():
        yield ("spec", "mpiReplicaSpecs", name, "template"), (one or {}).get("template") or {}


# For every kind that holds pod templates of a run, a function that yields them.
TEMPLATES: Mapping[str, Callable[[Body], Templates]] = {
    RUNTIME_KIND: _find_runtime_pod_templates,
    MPIJOB.holder: _find_mpijob_pod_templates,
}


def find_pod_templates(body: Body) -> Templates:
    """Yield the pod templates in an object of a run, each with its path."""
    find = TEMPLATES.get(body["kind"])
    return find(body) if find else iter(())


class _Kind:
    """The objects of a kind, by namespace and name; of several with the same name, the first counts."""

    __slots__ = ("every", "homes", "names", "places")

    def __init__(self, every: Sequence[Body]) -> None:
        self.every = every
        self.homes: dict[str | None, list[Body]] = {}
        self.names: dict[str, Body] = {}
        self.places: dict[tuple[str, str | None], Body] = {}
        for body in every:
            metadata = body["metadata"]
            name, namespace = metadata["name"], metadata.get("namespace") or None
            self.homes.setdefault(namespace, []).append(body)
            self.names.setdefault(name, body)
            self.places.setdefault((name, namespace), body)


class ObjectIndex:
    """Objects by kind; those of kinds that are looked up are indexed by namespace and name."""

    def __init__(self, world: World) -> None:
        self._bodies: dict[str, list[Body]] = {}
        for body in world.standing:
            self._bodies.setdefault(body["kind"], []).append(body)
        self._kinds: dict[str, _Kind] = {}

    def of(self, kind: str) -> _Kind:
        """Return the objects of a kind."""
        if kind not in self._kinds:
            self._kinds[kind] = _Kind(self._bodies.get(kind, ()))
        return self._kinds[kind]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """All objects that a cluster has before any run, as built, and its nodes.

    Worlds are compared by identity. A run must not cost more on a cluster with more teams: proofs look
    objects up by their names, and read what they need from all objects together through `once`.
    """

    cluster: str
    versions: SchemaVersions
    standing: tuple[Body, ...]
    nodes: tuple[NodeGroup, ...]
    fair_sharing: bool = True
    pods_per_node: int = 110
    manager: ManagerSettings = UNCONFIGURED_MANAGER
    asks_at: str = ""  # the address at which people ask for quota
    # The clusters to which MultiKueue hands the runs; none if a file of one is not in this workspace.
    workers: tuple[World, ...] = ()
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, make: Callable[[World], Value]) -> Value:
        """Return what a function makes of this world, cached for the life of the world.

        The function must read nothing else. Its result must not refer to the world, or neither is ever freed
        without the garbage collector.
        """
        if make not in self._kept:
            self._kept[make] = make(self)
        made: Value = self._kept[make]
        return made

    def of_kind(self, kind: str, namespace: str | None = None) -> Sequence[Body]:
        """Return the objects of a kind, of one namespace if it is given."""
        objects = self.once(ObjectIndex).of(kind)
        return objects.every if namespace is None else objects.homes.get(namespace, ())

    def find(self, kind: str, name: str, namespace: str | None = None) -> Body | None:
        """Return an object by name, of one namespace if it is given."""
        objects = self.once(ObjectIndex).of(kind)
        return objects.names.get(name) if namespace is None else objects.places.get((name, namespace))

    def at(self, kind: str, name: str, namespace: str | None) -> Body | None:
        """Return an object by name and namespace; `namespace` is None for one without a namespace."""
        return self.once(ObjectIndex).of(kind).places.get((name, namespace))


def index_namespace_labels(world: World) -> dict[str, Mapping[str, str]]:
    """Return the labels of the namespaces of a cluster, by name; for `World.once`."""
    return {
        body["metadata"]["name"]: body["metadata"].get("labels") or {} for body in world.of_kind("Namespace")
    }


@dataclass(frozen=True, slots=True)
class BuiltRun:
    """A run: its plan, and its built objects.

    `generated` are the objects before any patch, in the same order; empty if they do not matter.
    """

    unit: RunPlan
    bodies: tuple[Body, ...]
    generated: tuple[Body, ...] = field(default=(), compare=False, repr=False)
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, make: Callable[[World, Sequence[Body]], Value], world: World) -> Value:
        """Return what a function makes of this run on a world, cached so that several proofs share it."""
        if (make, world) not in self._kept:
            self._kept[make, world] = make(world, self.bodies)
        made: Value = self._kept[make, world]
        return made


def format_local_disk(storage_class: str) -> str:
    """Return the name of a class of local disks among a node's resources (CSIStorageCapacity)."""
    return f"storage/{storage_class}"


def is_undeclared_resource(resource: str) -> bool:
    """Return whether nodes may have a resource that their pool does not state: disk, and any volumes."""
    return resource == "ephemeral-storage" or resource.startswith("storage/")


def find_spec_field_asking_for_resource(unit: RunPlan, resource: str) -> str:
    """Return the field of a spec that asks for a resource of a worker."""
    if resource in ("cpu", "memory"):
        return resource
    is_scratch = resource == "ephemeral-storage" and "disk" not in unit.job.origins
    if is_scratch or resource.startswith("storage/"):
        return "scratch"
    return find_spec_field_of_resource(resource)[0] if resource in dict(unit.job.resources.others) else "gpus"


def build_world_of_cluster(
    cluster: str, spec: Cluster, versions: SchemaVersions, standing: Sequence[Body]
) -> World:
    """Build the world of a cluster file and the objects that the cluster has before any run."""
    levels = tuple((level.label, level.nodes or 0) for level in spec.topology)
    groups = tuple(build_node_group_from_pool(name, pool, levels) for name, pool in spec.node_pools.items())
    pods = (
        250 if spec.versions.openshift else 110
    )  # the kubelet's maxPods: OpenShift 4's default, Kubernetes'
    settings, asks_at = manager_settings_of(spec), spec.support.quota or ""
    return World(cluster, versions, tuple(standing), groups, spec.fair_sharing, pods, settings, asks_at)


def build_node_group_from_pool(name: str, pool: NodePool, levels: tuple[tuple[str, int], ...]) -> NodeGroup:
    """Return a node pool as nodes; a pool that grows counts with all the nodes that it may get."""
    count = pool.autoscale.most if pool.autoscale else pool.count
    taken = {"cpu": pool.daemons.cpu, "memory": pool.daemons.memory} if pool.daemons else {}
    free = {"cpu": _convert_quantity_to_number(pool.cpu), "memory": _convert_quantity_to_number(pool.memory)}
    free = {
        resource: amount - _convert_quantity_to_number(taken.get(resource, Quantity(0)))
        for resource, amount in free.items()
    }
    free |= {resource: _convert_quantity_to_number(amount) for resource, amount in pool.offered.items()}
    if pool.local_disk is not None:
        free[format_local_disk(pool.local_disk.storage_class)] = _convert_quantity_to_number(
            pool.local_disk.size
        )
    # Runs may use only Linux nodes.
    labels = {**pool.labels, "kubernetes.io/os": "linux", ARCH_LABEL: pool.processor}
    taints = tuple(NodeGroupTaint(taint.key, taint.value or "", taint.effect) for taint in pool.taints)
    return NodeGroup(name, count, labels, taints, free, levels, _count_pool_numa_nodes_by_resource(pool))


def _count_pool_numa_nodes_by_resource(pool: NodePool) -> dict[str, int]:
    """Return resources that the kubelet must take from one NUMA node, with the number of NUMA nodes.

    It refuses a pod for which it cannot.
    """
    numa = pool.numa
    if numa is None or numa.policy not in ("restricted", "single-numa-node"):
        return {}
    names = {"gpus": pool.gpu.resource if pool.gpu else "", "cpu": "cpu", "memory": "memory"}
    return {names[one]: numa.nodes for one in numa.aligns if names[one]}


def _convert_quantity_to_number(amount: Quantity) -> Fraction:
    return Fraction(amount.nano, 10**9)
