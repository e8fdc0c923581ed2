"""Checks that pods can run in the zones of their volumes; otherwise they would never be scheduled."""

from __future__ import annotations

from gangplan.model.job import Job, Mount, TargetPool
from gangplan.resolve.context import JobResolution
from gangplan.resolve.mounts import locate_mount_in_spec
from gangplan.resolve.tenant import find_default_class, is_claim_on_cluster
from gangplan.rules.platform import CLAIM_ZONE

# The label of nodes and volumes (k8s.io/api core/v1 well_known_labels.go); a volume in one zone requires it
# by its node affinity, which the scheduler's plugin VolumeBinding respects.
ZONE = "topology.kubernetes.io/zone"


def check_storage_zones_against_pools(context: JobResolution, job: Job) -> None:
    """Check what has a single-zone storage class against the pools of the pods that mount it."""
    pods = [("workers run", "worker", job.worker_pool)]
    if job.uses_mpi:
        pods.append(("the launcher runs", "launcher", job.launcher_pool))
    pods += [(f"role '{one.name}' runs", one.name, one.pool) for one in job.roles]
    pods += [(f"step '{one.name}' runs", one.name, one.pool) for one in job.steps]
    told: set[str] = set()
    for mount in job.mounts:
        said, of_class = _describe_mounted_volume(context, mount)
        zone = context.cluster.spec.storage_classes[of_class].zone if of_class else None
        for what, role, pool in pods:
            there = dict(pool.selector).get(ZONE)
            if not zone or there in (None, zone) or said in told or mount not in job.mounts_of(role):
                continue
            told.add(said)
            context.report(
                CLAIM_ZONE,
                locate_mount_in_spec(context, mount),
                f"{said} uses storage class '{of_class}', whose volumes are in zone {zone};"
                f" {what} in pool '{pool.name}', in zone {there}",
                _suggest_pool_in_zone(context, zone, pool),
            )


def _describe_mounted_volume(context: JobResolution, mount: Mount) -> tuple[str, str]:
    """Return what is mounted, in words, and its storage class; empty if the cluster declares none for it."""
    cluster, said, chosen = context.cluster.spec, "", None
    if mount.own_claim:
        said, chosen = f"volume '{mount.own_claim.name}'", mount.own_claim.storage_class
    for name, claim in context.team.spec.claims.items():
        if mount.claim == (claim.claim_name or name) and is_claim_on_cluster(claim, context.cluster.name):
            said = f"claim '{name}'"
            chosen = claim.storage_class or (find_default_class(cluster) if claim.size else None)
    return said, chosen if chosen in cluster.storage_classes else ""


def _suggest_pool_in_zone(context: JobResolution, zone: str, pool: TargetPool) -> str:
    pools = context.cluster.spec.node_pools
    near = [name for name, one in pools.items() if one.labels.get(ZONE) == zone and name != pool.name]
    there = f"Run it in zone {zone} (placement: {{nodePool: {near[0]}}}), or use" if near else "Use"
    return f"{there} a claim of a storage class that pool '{pool.name}' can mount."
