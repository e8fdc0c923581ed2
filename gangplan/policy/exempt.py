"""Which policies exempt namespaces whose Pod Security level the platform raised for a fabric.

A policy of the packs baseline and restricted that refuses what a fabric gives to workers cannot hold in
namespaces where the cluster's file admits exactly that. Only those policies exempt such namespaces; a patch
that needs more requires a waiver, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.model.fabric import (
    BASELINE_CAPABILITIES,
    RESTRICTED_CAPABILITIES,
    SECURITY_LEVELS,
    FabricAccess,
)
from gangplan.resolve.fabrics import resolve_fabric_access
from gangplan.spec.cluster import Cluster


def find_levels_exempt_by_policy(cluster: Cluster) -> Mapping[str, tuple[str, ...]]:
    """Return the levels of the namespaces that a policy exempts, by policy; empty if no team states
    a level."""
    stated = {queue.pod_security.level for queue in cluster.teams.values() if queue.pod_security}
    if not stated:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for pool in cluster.node_pools.values():
        for policy, least in _list_policies_refusing_fabric(resolve_fabric_access(cluster, pool)).items():
            levels = tuple(
                level for level in SECURITY_LEVELS[SECURITY_LEVELS.index(least) :] if level in stated
            )
            if levels:
                found[policy] = levels
    return found


def _list_policies_refusing_fabric(access: FabricAccess) -> dict[str, str]:
    """Return the policies that refuse what a fabric gives, each with the least strict level needed to admit
    it."""
    found: dict[str, str] = {}
    if access.host_network:
        # Kubernetes makes every port of a pod on the host network a port of its node.
        found |= {"host-namespaces": SECURITY_LEVELS[2], "host-ports": SECURITY_LEVELS[2]}
    if any(volume.path for volume in access.volumes):
        found["host-path"] = SECURITY_LEVELS[2]
    if access.is_privileged or any(one.is_privileged for one in access.containers):
        found |= {"privileged": SECURITY_LEVELS[2], "privilege-escalation": SECURITY_LEVELS[2]}
    if set(access.added) - BASELINE_CAPABILITIES:
        found["capabilities-added"] = SECURITY_LEVELS[2]
    if set(access.added) & (BASELINE_CAPABILITIES - RESTRICTED_CAPABILITIES):
        found["capabilities-dropped"] = SECURITY_LEVELS[1]
    if any(one.is_root for one in access.containers):
        found["non-root"] = SECURITY_LEVELS[1]
    return found
