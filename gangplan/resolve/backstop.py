"""The namespace's own bounds: ResourceQuota and LimitRange that never refuse what Kueue admits.

Kueue owns compute; a ResourceQuota below what a queue can admit would leave admitted runs without pods while
they hold their quota (kueue#1403). So it is the most that the queue can ever give, unless the cluster file
states a cap of its own, which checks hold against that amount.
"""

from __future__ import annotations

from gangplan.model.backend import BACKENDS
from gangplan.model.quantity import Quantity, parse_cpu, parse_memory
from gangplan.model.site import ContainerBounds
from gangplan.records import dataclass
from gangplan.resolve.quota import Amounts, gpu_resources
from gangplan.resolve.shares import CPU, MEMORY, free_per_node
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import Priority
from gangplan.spec.queues import HardQuota, TeamQueue

# What a container gets that states nothing: a debug container, never a worker, which always states its own.
DEFAULT_CPU = parse_cpu(1)
DEFAULT_MEMORY = parse_memory("1Gi")


@dataclass(frozen=True, slots=True)
class Backstop:
    """What a tenant's own bounds are."""

    hard: tuple[tuple[str, Quantity], ...]
    bounds: ContainerBounds
    forbidden_priorities: tuple[str, ...]


def backstop(cluster: Cluster, team: TeamQueue, most: Amounts) -> Backstop:
    """The bounds of a team's namespace, where its queue can give at most `most` of each resource."""
    hard = {f"requests.{resource}": amount for resource, amount in _with_room(cluster, most).items()}
    hard |= {f"requests.{resource}": cap for resource, cap in caps_of(cluster, team.hard_quota).items()}
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
        # Training needs no way in from outside.
        "services.loadbalancers": Quantity.of(0),
        "services.nodeports": Quantity.of(0),
    }
    forbidden = tuple(
        name for name in cluster.limits.priorities if name not in allowed_priorities(cluster, team)
    )
    return Backstop(tuple(sorted(hard.items())), _bounds(cluster), forbidden)


def storage_of(storage_class: str) -> str:
    """What claims of a class request, as a quota counts it (Kubernetes v1.34, quota/evaluator/core, claims)."""
    return f"{storage_class}.storageclass.storage.k8s.io/requests.storage"


def _with_room(cluster: Cluster, most: Amounts) -> Amounts:
    """The most that a queue gives, and what creates the runs of schedules: it has to start when all is in use."""
    if cluster.schedules is None or cluster.schedules.starter(cluster.gitops_only) != "cronjob":
        return most
    from gangplan.model.schedule import CPU as POD_CPU  # few clusters have schedules
    from gangplan.model.schedule import MEMORY as POD_MEMORY
    from gangplan.model.schedule import TOGETHER

    room = {CPU: parse_cpu(POD_CPU) * TOGETHER, MEMORY: parse_memory(POD_MEMORY) * TOGETHER}
    return {name: amount + room[name] if name in room else amount for name, amount in most.items()}


def caps_of(cluster: Cluster, hard: HardQuota | None) -> Amounts:
    """The caps that a cluster file states for a team, by resource."""
    caps: Amounts = {}
    if hard is None:
        return caps
    if hard.gpus is not None:
        caps |= {resource: Quantity.of(hard.gpus) for resource in gpu_resources(cluster)}
    if hard.cpu is not None:
        caps[CPU] = hard.cpu
    if hard.memory is not None:
        caps[MEMORY] = hard.memory
    return caps


def allowed_priorities(cluster: Cluster, team: TeamQueue) -> tuple[Priority, ...]:
    """The priorities that a team's runs may have: those stated, else all of the cluster's but critical."""
    if team.priorities is not None:
        return team.priorities
    return tuple(name for name in cluster.limits.priorities if name != "critical")


def _bounds(cluster: Cluster) -> ContainerBounds:
    """No container is larger than the largest node, nor is what it gets unasked."""
    sizes = [free_per_node(pool) for pool in cluster.node_pools.values()]
    cpu, memory = max(cpu for cpu, _ in sizes), max(memory for _, memory in sizes)
    return ContainerBounds(min(DEFAULT_CPU, cpu), min(DEFAULT_MEMORY, memory), cpu, memory)
