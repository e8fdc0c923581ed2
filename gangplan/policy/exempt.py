"""Which policies exempt namespaces whose Pod Security level the platform raised for a fabric.

A policy of the packs baseline and restricted that refuses what a fabric gives to workers cannot hold in
namespaces where the cluster's file admits exactly that. Only those policies exempt such namespaces; a patch
that needs more requires a waiver, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.model.fabric import BASELINE, LEVELS, RESTRICTED, FabricAccess
from gangplan.resolve.fabrics import access_of
from gangplan.spec.cluster import Cluster


def excused_levels(cluster: Cluster) -> Mapping[str, tuple[str, ...]]:
    """Return the levels of the namespaces that a policy exempts, by policy; empty if no team states
    a level."""
    stated = {queue.pod_security.level for queue in cluster.teams.values() if queue.pod_security}
    if not stated:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for pool in cluster.node_pools.values():
        for policy, least in _refusing(access_of(cluster, pool)).items():
            levels = tuple(level for level in LEVELS[LEVELS.index(least) :] if level in stated)
            if levels:
                found[policy] = levels
    return found


def _refusing(access: FabricAccess) -> dict[str, str]:
    """Return the policies that refuse what a fabric gives, each with the least strict level needed to admit
    it."""
    found: dict[str, str] = {}
    if access.host_network:
        # Kubernetes makes every port of a pod on the host network a port of its node.
        found |= {"host-namespaces": LEVELS[2], "host-ports": LEVELS[2]}
    if any(volume.path for volume in access.volumes):
        found["host-path"] = LEVELS[2]
    if access.is_privileged or any(one.is_privileged for one in access.containers):
        found |= {"privileged": LEVELS[2], "privilege-escalation": LEVELS[2]}
    if set(access.added) - BASELINE:
        found["capabilities-added"] = LEVELS[2]
    if set(access.added) & (BASELINE - RESTRICTED):
        found["capabilities-dropped"] = LEVELS[1]
    if any(one.is_root for one in access.containers):
        found["non-root"] = LEVELS[1]
    return found
