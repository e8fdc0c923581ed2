"""What all active runs take, by team and cluster, before and after; and what quotas leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from decimal import Decimal

from gangplan.model.quantity import ZERO, Quantity
from gangplan.model.run_facts import NANOSECONDS, SECONDS, RunFacts
from gangplan.pipeline.platform import find_clusters_closed_by_errors
from gangplan.pipeline.quota import build_cluster_holdings
from gangplan.records import dataclass
from gangplan.resolve import resolve_site
from gangplan.resolve.shares import find_measure
from gangplan.review.sides import Side

NONE = Decimal(0)


@dataclass(frozen=True, slots=True)
class Total:
    """Some active runs: how many there are, their GPUs, the GPU-seconds that they take at most, and the cost.

    Seconds of cores only cover runs without GPUs.
    """

    runs: int = 0
    gpus: int = 0
    gpu_seconds: int = 0
    cpu_nano_seconds: int = 0
    cost: Mapping[str, Decimal] = field(default_factory=dict)

    @property
    def gpu_hours(self) -> Decimal:
        """The GPU-hours that the runs take at most."""
        return Decimal(self.gpu_seconds) / SECONDS

    @property
    def cpu_hours(self) -> Decimal:
        """The CPU-hours that runs without GPUs take at most."""
        return Decimal(self.cpu_nano_seconds) / NANOSECONDS / SECONDS


@dataclass(frozen=True, slots=True)
class TotalChange:
    """The totals of a team on a cluster, before and after."""

    team: str
    cluster: str
    before: Total
    after: Total


@dataclass(frozen=True, slots=True)
class Headroom:
    """A team's quota in a pool, in the pool's measure, and what all its active runs together want of it.

    `most` is what the team can have with borrowing. `wanted` is what workers request, and steps in their
    pool, which Kueue admits with them: launchers and pods in other pools are not counted.
    """

    team: str
    cluster: str
    pool: str
    resource: str
    quota: tuple[Quantity, Quantity]
    most: tuple[Quantity, Quantity]
    wanted: tuple[Quantity, Quantity]


def sum_active_runs_of_side(runs: Iterable[RunFacts]) -> Total:
    """Return the exact total of the active runs."""
    active = [one for one in runs if one.is_active]
    cost: dict[str, Decimal] = {}
    for one in active:
        if one.cost:
            cost[one.currency] = cost.get(one.currency, NONE) + Decimal(one.cost)
    return Total(
        len(active),
        sum(one.gpus for one in active),
        sum(one.gpu_seconds for one in active),
        sum(one.cpu_seconds for one in active if not one.gpu_seconds),
        dict(sorted(cost.items())),
    )


def compare_totals_of_both_sides(before: Side, after: Side) -> list[TotalChange]:
    """Return every team on every cluster on which it has active runs, by team and cluster."""
    sides = [_group_active_runs_by_team(side.runs.values()) for side in (before, after)]
    return [
        TotalChange(
            team, cluster, *(sum_active_runs_of_side(side.get((team, cluster), ())) for side in sides)
        )
        for team, cluster in sorted({*sides[0], *sides[1]})
    ]


def _group_active_runs_by_team(runs: Iterable[RunFacts]) -> dict[tuple[str, str], list[RunFacts]]:
    found: dict[tuple[str, str], list[RunFacts]] = {}
    for one in runs:
        if one.is_active:
            found.setdefault((one.team, one.cluster), []).append(one)
    return found


def compare_headroom_of_both_sides(before: Side, after: Side) -> list[Headroom]:
    """Return every quota that exists before or after, by team, cluster and pool."""
    quotas = [_collect_team_quotas_of_side(side) for side in (before, after)]
    wanted = [_sum_run_requests_of_side_by_pool(side) for side in (before, after)]
    found = []
    for key in sorted({*quotas[0], *quotas[1]}):
        team, cluster, pool, resource = key
        quota, most = (tuple(side.get(key, (ZERO, ZERO))[place] for side in quotas) for place in (0, 1))
        asked = tuple(side.get(key, ZERO) for side in wanted)
        found.append(
            Headroom(
                team, cluster, pool, resource, (quota[0], quota[1]), (most[0], most[1]), (asked[0], asked[1])
            )
        )
    return found


Pool = tuple[str, str, str, str]  # team, cluster, pool, resource


def _collect_team_quotas_of_side(side: Side) -> dict[Pool, tuple[Quantity, Quantity]]:
    """Return the quota of each team in each pool, and the most that it can have, where that can be
    resolved."""
    if not side.is_there:
        return {}
    closed = find_clusters_closed_by_errors(side.workspace, side.findings)
    found = {}
    for cluster, file in side.workspace.clusters.items():
        if cluster in closed:
            continue
        site = resolve_site(side.workspace, cluster)
        if site.queues:
            for row in build_cluster_holdings(file, site, None).rows:
                found[row.team, cluster, row.pool, row.resource] = (row.quota, row.most)
    return found


def _sum_run_requests_of_side_by_pool(side: Side) -> dict[Pool, Quantity]:
    """Return what active runs want of each pool, in its measure."""
    found: dict[Pool, Quantity] = {}
    for one in side.runs.values():
        pool = side.workspace.clusters[one.cluster].spec.node_pools.get(one.pool)
        if one.is_active and pool is not None:
            key = one.team, one.cluster, one.pool, find_measure(pool)
            cores = one.cpu_nano + one.other_cpu_nano
            amount = Quantity.of(one.gpus + one.step_gpus) if pool.gpu else Quantity(cores)
            found[key] = found.get(key, ZERO) + amount
    return found
