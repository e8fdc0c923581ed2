"""Quotas of a cluster's teams against a snapshot of what is in use: usage by team, and teams near their
quota."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.model.amounts import format_amount, format_with_unit
from gangplan.model.manager import ManagerSettings
from gangplan.model.quantity import ZERO, Quantity
from gangplan.model.site import Site
from gangplan.model.usage import QueueUsage
from gangplan.records import dataclass
from gangplan.resolve.counted import (
    list_counted_resources,
    resolve_counted_amounts,
    resolve_counted_site_quotas,
)
from gangplan.resolve.shares import compute_pool_capacity, find_measure
from gangplan.resolve.tree import resolve_queue_maximum_by_flavor
from gangplan.rules.quotas import QUOTA_NEARLY_USED
from gangplan.spec.nodes import NodePool
from gangplan.workspace import ClusterFile

# Founding requirements, appendix A: warn from 90 % of a quota (S0's example is 30/32 = 94 %).
NEARLY = 90


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One team in one pool, in the pool's measure (GPUs, else CPU). `used` is None without a snapshot."""

    team: str
    pool: str
    resource: str
    quota: Quantity
    most: Quantity
    used: Quantity | None


@dataclass(frozen=True, slots=True)
class ClusterHoldings:
    """One cluster: its rows by team, the capacity of each pool, what cohorts keep, by resource."""

    cluster: str
    rows: Sequence[QuotaRow]
    pools: dict[str, tuple[str, Quantity]]
    reserves: dict[str, Quantity] = field(default_factory=dict)


def compute_percent(used: Quantity, whole: Quantity) -> int:
    """Return the used part of the whole in percent, rounded to the nearest."""
    return round(100 * used.nano / whole.nano) if whole else 0


def check_usage_snapshot_matches_site(usage: QueueUsage, site: Site, file: Path | None) -> None:
    """Raise UserError for a snapshot of another cluster, or from before flavors were renamed.

    It would look as if nothing were used.
    """
    queues = {queue.name for queue in site.queues}
    if not queues & {*usage}:
        raise UserError(
            f"{file} is a snapshot of another cluster: it has none of the queues {', '.join(sorted(queues))}",
            "Take it from the cluster that --cluster names.",
        )
    flavors = {flavor.name for flavor in site.flavors}
    for name in sorted(queues & {*usage}):
        for flavor, amounts in usage[name].items():
            if flavor not in flavors and any(amounts.values()):
                raise UserError(
                    f"{file}: queue '{name}' uses flavor '{flavor}', which the cluster file no longer has",
                    f"It has {', '.join(sorted(flavors))}; wait until its runs have ended.",
                )


def build_cluster_holdings(cluster: ClusterFile, site: Site, usage: QueueUsage | None) -> ClusterHoldings:
    """Return the quotas of a cluster's teams, and what a snapshot says is used of them."""
    pools = cluster.spec.node_pools
    site = resolve_counted_site_quotas(site)
    most = resolve_queue_maximum_by_flavor(site)
    names = {flavor.name: flavor.pool for flavor in site.flavors}
    rows = []
    for queue in site.queues:
        for quota in queue.quotas:
            pool = names[quota.flavor]
            resource = shown_measure(pools[pool], site.manager)
            (own,) = (amount.nominal for amount in quota.amounts if amount.resource == resource)
            used = None
            if usage is not None:
                queues = (queue.name, *(one.name for one in site.sweeps if one.team == queue.team))
                used = sum(
                    (usage.get(name, {}).get(quota.flavor, {}).get(resource, ZERO) for name in queues), ZERO
                )
            rows.append(
                QuotaRow(queue.team, pool, resource, own, most[queue.name][quota.flavor][resource], used)
            )
    offered = {name: _compute_offered_capacity(pool, site.manager) for name, pool in pools.items()}
    reserves: dict[str, Quantity] = {}
    for cohort in site.cohorts:
        for quota in cohort.quotas:
            resource = shown_measure(pools[names[quota.flavor]], site.manager)
            kept = sum((amount.nominal for amount in quota.amounts if amount.resource == resource), ZERO)
            reserves[resource] = reserves.get(resource, ZERO) + kept
    return ClusterHoldings(cluster.name, rows, offered, reserves)


def shown_measure(pool: NodePool, manager: ManagerSettings) -> str:
    """Return the resource that a pool is divided by, or what quota counts for it."""
    resource = find_measure(pool)
    return resource if resource in (names := list_counted_resources((resource,), manager)) else names[0]


def _compute_offered_capacity(pool: NodePool, manager: ManagerSettings) -> tuple[str, Quantity]:
    resource = shown_measure(pool, manager)
    return resource, resolve_counted_amounts(compute_pool_capacity(pool), manager)[resource]


def check_nearly_used_team_quotas(cluster: ClusterFile, holding: ClusterHoldings) -> list[Finding]:
    """Report teams that use nine tenths of their own quota, all pools of one resource together."""
    found = []
    for team in dict.fromkeys(row.team for row in holding.rows):
        for resource in dict.fromkeys(row.resource for row in holding.rows):
            rows = [row for row in holding.rows if (row.team, row.resource) == (team, resource)]
            own = sum((row.quota for row in rows), ZERO)
            used = sum((row.used for row in rows if row.used is not None), Quantity(0))
            if own and used and compute_percent(used, own) >= NEARLY:
                shares = f"{format_amount(resource, used)}/{format_with_unit(resource, own)}"
                beyond = " and borrows" if used > own else ""
                message = f"team {team} is approaching its quota limit ({shares} used)"
                if beyond:
                    message = f"team {team} uses more than its quota ({shares}): the rest is borrowed"
                where = cluster.document.where(("teams", team), key=True)
                asks_at = cluster.spec.support.quota
                help = "Raise its quota, or expect its runs to wait."
                help += f" {asks_at} is where to ask for more." if asks_at else ""
                found.append(Finding(QUOTA_NEARLY_USED, where, message, help))
    return found
