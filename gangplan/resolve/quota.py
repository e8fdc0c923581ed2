"""Quotas of teams and cohorts, in every resource of every pool; and the most that a team can ever get."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.model.quantity import ZERO, Quantity
from gangplan.model.site import FlavorQuota, QuotaAmount
from gangplan.resolve.shares import (
    compute_fraction_of_pool_amount,
    compute_pool_capacity,
    list_resources_of_cluster_pools,
    resolve_pool_share_amounts,
)
from gangplan.spec.cluster import Cluster
from gangplan.spec.nodes import NodePool
from gangplan.spec.queues import Share, TeamQueue

# The cohort of all teams if a cluster file declares none.
DEFAULT_COHORT = "training"
DEFAULT_WEIGHT = Quantity.of(1)

ResourceQuantities = dict[str, Quantity]  # resource -> amount


def weight_of(team: TeamQueue) -> Quantity:
    """Return a team's fair share; 1 unless stated."""
    return DEFAULT_WEIGHT if team.weight is None else team.weight


def cohort_of(cluster: Cluster, team: TeamQueue) -> str:
    """Return the cohort that a team is in. Checks make sure that it names one if there are several."""
    return team.cohort or next(iter(cluster.cohorts), DEFAULT_COHORT)


def list_team_pools(cluster: Cluster, team: str) -> tuple[str, ...]:
    """Return the pools that a team may use, in the cluster's order of preference."""
    stated = cluster.teams[team].quota if team in cluster.teams else None
    return tuple(name for name in cluster.node_pools if stated is None or name in stated)


def compute_team_quota_shares(cluster: Cluster) -> dict[str, dict[str, ResourceQuantities]]:
    """Return each team's guaranteed amounts by pool and resource: its quota, else a part of the rest."""
    pools, teams = cluster.node_pools, cluster.teams
    shares: dict[str, dict[str, ResourceQuantities]] = {name: {} for name in teams}
    weights = {name: weight_of(team).nano for name, team in teams.items() if team.quota is None}
    for name, pool in pools.items():
        for team, queue in teams.items():
            if queue.quota is not None and name in queue.quota:
                shares[team][name] = resolve_pool_share_amounts(queue.quota[name], pool)
        for team, amounts in _split_unassigned_quota_among_teams(
            pool, compute_unassigned_pool_quota(cluster, name), weights
        ).items():
            shares[team][name] = amounts
    return shares


def _split_unassigned_quota_among_teams(
    pool: NodePool, rest: ResourceQuantities, weights: Mapping[str, int]
) -> dict[str, ResourceQuantities]:
    """Divide what stated quotas leave of a pool by weight among the teams that state none."""
    if pool.gpu:
        gpus = _split_pool_devices_among_teams(rest[pool.gpu.resource].value(), weights)
        return {team: resolve_pool_share_amounts(Share(gpus=count), pool) for team, count in gpus.items()}
    whole = sum(weights.values())
    return {
        team: {
            resource: compute_fraction_of_pool_amount(amount, weight, whole, resource)
            for resource, amount in rest.items()
        }
        for team, weight in weights.items()
    }


def compute_unassigned_pool_quota(cluster: Cluster, name: str) -> ResourceQuantities:
    """Return what the stated quotas of teams and cohorts leave of a pool; never below zero."""
    pool = cluster.node_pools[name]
    stated = [team.quota for team in cluster.teams.values()] + [
        cohort.quota for cohort in cluster.cohorts.values()
    ]
    taken = [resolve_pool_share_amounts(shares[name], pool) for shares in stated if shares and name in shares]
    left = {}
    for resource, total in compute_pool_capacity(pool).items():
        for amounts in taken:
            total -= amounts[resource]
        left[resource] = max(total, ZERO)
    return left


def _split_pool_devices_among_teams(count: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Divide whole devices by weight; the rest from rounding goes to the largest remainders, then by name."""
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    parts = {name: count * weight // whole for name, weight in weights.items()}
    order = sorted(weights, key=lambda name: (-(count * weights[name] % whole), name))
    for name in order[: count - sum(parts.values())]:
        parts[name] += 1
    return parts


def resolve_team_quotas(
    cluster: Cluster, team: str, shares: Mapping[str, ResourceQuantities], flavors: Mapping[str, str]
) -> tuple[FlavorQuota, ...]:
    """Return the quotas of a team's queue; `flavors` names the flavor of each pool."""
    queue = cluster.teams[team]
    return tuple(
        _resolve_flavor_quota(
            cluster,
            flavors[pool],
            amounts,
            _compute_quota_limit(cluster, queue.borrow, pool),
            _compute_quota_limit(cluster, queue.lend, pool),
        )
        for pool, amounts in shares.items()
    )


def resolve_cohort_quotas(cluster: Cluster, name: str, flavors: Mapping[str, str]) -> tuple[FlavorQuota, ...]:
    """Return a cohort's own quotas and limits, for every pool that its block concerns."""
    cohort = cluster.cohorts[name]
    named = {*cohort.quota, *(cohort.borrow or ()), *(cohort.lend or ())}
    is_limited = cohort.borrow is not None or cohort.lend is not None
    pools = [pool for pool in cluster.node_pools if is_limited or pool in named]
    return tuple(
        _resolve_flavor_quota(
            cluster,
            flavors[pool],
            resolve_pool_share_amounts(cohort.quota.get(pool, Share()), cluster.node_pools[pool]),
            _compute_quota_limit(cluster, cohort.borrow, pool),
            _compute_quota_limit(cluster, cohort.lend, pool),
        )
        for pool in pools
    )


def _compute_quota_limit(
    cluster: Cluster, shares: dict[str, Share] | None, pool: str
) -> ResourceQuantities | None:
    """Return a borrowing or lending limit; None means no limit, and a pool missing from a stated one is zero."""
    if shares is None:
        return None
    return resolve_pool_share_amounts(shares.get(pool, Share()), cluster.node_pools[pool])


def _resolve_flavor_quota(
    cluster: Cluster,
    flavor: str,
    nominal: ResourceQuantities,
    borrow: ResourceQuantities | None,
    lend: ResourceQuantities | None,
) -> FlavorQuota:
    return FlavorQuota(
        flavor,
        tuple(
            QuotaAmount(
                resource,
                nominal.get(resource, ZERO),
                None if borrow is None else borrow.get(resource, ZERO),
                None if lend is None else lend.get(resource, ZERO),
            )
            for resource in list_resources_of_cluster_pools(cluster)
        ),
    )


def list_gpu_resources(cluster: Cluster) -> set[str]:
    """Return the names of the resources under which the cluster's pools offer GPUs."""
    return {pool.gpu.resource for pool in cluster.node_pools.values() if pool.gpu}
