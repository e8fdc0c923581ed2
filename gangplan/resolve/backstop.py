"""The namespace's own bounds: ResourceQuota and LimitRange that never refuse what Kueue admits.

Kueue owns compute; a ResourceQuota below what a queue can admit would leave admitted runs without pods while
they hold their quota (kueue#1403). So the ResourceQuota is the most that the queue can ever give, unless the
cluster file states a cap of its own, which checks compare with that amount.
"""

from __future__ import annotations

from gangplan.model.backend import BACKENDS
from gangplan.model.manager import format_claim_quota_key
from gangplan.model.quantity import Quantity, parse_cpu, parse_memory_quantity
from gangplan.model.site import ContainerBounds
from gangplan.records import dataclass
from gangplan.resolve.quota import ResourceQuantities, list_gpu_resources
from gangplan.resolve.shares import CPU_RESOURCE, MEMORY_RESOURCE, compute_free_per_node
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import Priority
from gangplan.spec.manager import map_device_classes_to_resources
from gangplan.spec.queues import HardQuota, TeamQueue

# The requests of a container that states none: a debug container, never a worker, which states its own.
DEFAULT_CPU = parse_cpu(1)
DEFAULT_MEMORY = parse_memory_quantity("1Gi")


@dataclass(frozen=True, slots=True)
class Backstop:
    """The bounds of a tenant's namespace."""

    hard: tuple[tuple[str, Quantity], ...]
    bounds: ContainerBounds
    forbidden_priorities: tuple[str, ...]


def resolve_namespace_limits(cluster: Cluster, team: TeamQueue, most: ResourceQuantities) -> Backstop:
    """Return the bounds of a team's namespace whose queue can give at most `most` of each resource."""
    classes = {resource: name for name, resource in map_device_classes_to_resources(cluster).items()}
    hard = {
        format_claim_quota_key(classes[resource]) if resource in classes else f"requests.{resource}": amount
        for resource, amount in _resolve_limits_with_run_creators(cluster, most).items()
    }
    hard |= {
        f"requests.{resource}": cap
        for resource, cap in resolve_team_caps_of_cluster_file(cluster, team.hard_quota).items()
    }
    if team.hard_quota is not None:
        hard |= {storage_of(name): cap for name, cap in team.hard_quota.storage.items()}
    objects = cluster.limits.objects
    stated = {"trainer": cluster.versions.trainer, "mpiOperator": cluster.versions.mpi_operator}
    hard |= {
        **{
            f"count/{made.resource}": Quantity.of(objects.runs)
            for made in BACKENDS.values()
            if stated[made.stated]
        },
        "persistentvolumeclaims": Quantity.of(objects.claims),
        "pods": Quantity.of(objects.pods),
        # Training needs no ingress from outside the cluster.
        "services.loadbalancers": Quantity.of(0),
        "services.nodeports": Quantity.of(0),
    }
    forbidden = tuple(
        name for name in cluster.limits.priorities if name not in list_allowed_priorities(cluster, team)
    )
    return Backstop(tuple(sorted(hard.items())), _compute_container_bounds(cluster), forbidden)


def storage_of(storage_class: str) -> str:
    """Return the quota resource for claims of a class (Kubernetes v1.34, quota/evaluator/core, claims)."""
    return f"{storage_class}.storageclass.storage.k8s.io/requests.storage"


def _resolve_limits_with_run_creators(cluster: Cluster, most: ResourceQuantities) -> ResourceQuantities:
    """Return the most that a queue gives, plus the pods that create scheduled runs.

    Those must start even when the whole quota is in use.
    """
    if cluster.schedules is None or cluster.schedules.starter(cluster.gitops_only) != "cronjob":
        return most
    from gangplan.model.schedule import CREATOR_CPU as POD_CPU  # few clusters have schedules
    from gangplan.model.schedule import CREATOR_MEMORY as POD_MEMORY
    from gangplan.model.schedule import MAX_STARTS_TOGETHER

    room = {
        CPU_RESOURCE: parse_cpu(POD_CPU) * MAX_STARTS_TOGETHER,
        MEMORY_RESOURCE: parse_memory_quantity(POD_MEMORY) * MAX_STARTS_TOGETHER,
    }
    return {name: amount + room[name] if name in room else amount for name, amount in most.items()}


def resolve_team_caps_of_cluster_file(cluster: Cluster, hard: HardQuota | None) -> ResourceQuantities:
    """Return the caps that a cluster file states for a team, by resource."""
    caps: ResourceQuantities = {}
    if hard is None:
        return caps
    if hard.gpus is not None:
        caps |= {resource: Quantity.of(hard.gpus) for resource in list_gpu_resources(cluster)}
    if hard.cpu is not None:
        caps[CPU_RESOURCE] = hard.cpu
    if hard.memory is not None:
        caps[MEMORY_RESOURCE] = hard.memory
    return caps


def list_allowed_priorities(cluster: Cluster, team: TeamQueue) -> tuple[Priority, ...]:
    """Return the priorities that a team's runs may have: those stated, else all but critical."""
    if team.priorities is not None:
        return team.priorities
    return tuple(name for name in cluster.limits.priorities if name != "critical")


def _compute_container_bounds(cluster: Cluster) -> ContainerBounds:
    """Return bounds that make no container, and no default, larger than the largest node."""
    sizes = [compute_free_per_node(pool) for pool in cluster.node_pools.values()]
    cpu, memory = max(cpu for cpu, _ in sizes), max(memory for _, memory in sizes)
    return ContainerBounds(min(DEFAULT_CPU, cpu), min(DEFAULT_MEMORY, memory), cpu, memory)
