"""Checks that pods can run in the zones of their volumes; otherwise they would never be scheduled."""

from __future__ import annotations

from gangplan.model.job import Job, TargetPool
from gangplan.resolve.context import JobResolution
from gangplan.resolve.mounts import place_of
from gangplan.resolve.tenant import default_class
from gangplan.rules.platform import CLAIM_ZONE
from gangplan.spec.team import Claim

# The label of nodes and volumes (k8s.io/api core/v1 well_known_labels.go); a volume in one zone requires it
# by its node affinity, which the scheduler's plugin VolumeBinding respects.
ZONE = "topology.kubernetes.io/zone"


def check_zones(context: JobResolution, job: Job) -> None:
    """Check each claim of a single-zone storage class against the pools of the pods that mount it."""
    pods = [("workers run", "worker", job.worker_pool)]
    if job.uses_mpi:
        pods.append(("the launcher runs", "launcher", job.launcher_pool))
    for name, claim in context.team.spec.claims.items():
        zone, of_class = _zone(context, claim)
        for what, role, pool in pods:
            mount = next((m for m in job.mounts_of(role) if m.claim == (claim.claim_name or name)), None)
            there = dict(pool.selector).get(ZONE)
            if mount is None or not zone or there in (None, zone):
                continue
            context.report(
                CLAIM_ZONE,
                place_of(context, mount),
                f"claim '{name}' uses storage class '{of_class}', whose volumes are in zone {zone};"
                f" {what} in pool '{pool.name}', in zone {there}",
                _help(context, zone, pool),
            )
            break


def _zone(context: JobResolution, claim: Claim) -> tuple[str, str]:
    """Return the only zone of a claim's volumes, and its storage class; empty if it has no single zone."""
    cluster = context.cluster.spec
    chosen = claim.storage_class or (default_class(cluster) if claim.size else None)
    found = cluster.storage_classes.get(chosen) if chosen else None
    return (found.zone or "" if found else "", chosen or "")


def _help(context: JobResolution, zone: str, pool: TargetPool) -> str:
    pools = context.cluster.spec.node_pools
    near = [name for name, one in pools.items() if one.labels.get(ZONE) == zone and name != pool.name]
    there = f"Run it in zone {zone} (placement: {{nodePool: {near[0]}}}), or use" if near else "Use"
    return f"{there} a claim of a storage class that pool '{pool.name}' can mount."
