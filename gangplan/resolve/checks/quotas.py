"""Checks of quotas of teams and cohorts: existing pools, fitting measures, limits that Kueue accepts."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.amounts import format_amount, format_for_spec, format_with_unit
from gangplan.model.quantity import Quantity
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.quota import DEFAULT_WEIGHT, cohort_of, compute_unassigned_pool_quota, weight_of
from gangplan.resolve.shares import (
    DISK_RESOURCE,
    compute_pool_capacity,
    find_measure,
    resolve_pool_share_amounts,
)
from gangplan.rules.clusters import KUEUE_FIELD_UNUSED
from gangplan.rules.platform import WEIGHT_OMITTED
from gangplan.rules.quotas import (
    LEND_OVER_QUOTA,
    PREEMPTION_CONTRADICTS,
    PREEMPTION_UNUSED,
    QUEUE_NAME_TWICE,
    QUOTA_EMPTY,
    QUOTA_MEASURE,
    QUOTA_OVER_POOL,
    QUOTA_POOL_MISSING,
    RECLAIM_NEVER,
    WEIGHT_NOBODY,
)
from gangplan.rules.specs import POOL_UNKNOWN
from gangplan.spec.cluster import Cluster
from gangplan.spec.queues import Preemption, Share, Shares, TeamQueue


def check_cluster_file_quotas(notes: ClusterCheck) -> None:
    """Check stated quotas, limits, weights and preemption."""
    for name, cohort in notes.spec.cohorts.items():
        for field in ("quota", "borrow", "lend"):
            _check_cluster_file_quota_shares(notes, ("cohorts", name, field), getattr(cohort, field) or {})
    for name, team in notes.spec.teams.items():
        path = ("teams", name)
        for field in ("quota", "borrow", "lend"):
            shares = getattr(team, field) or {}
            _check_cluster_file_quota_shares(notes, (*path, field), shares)
            if field != "quota":
                _check_cluster_file_quota_limit(notes, (*path, field), shares, team.quota)
        if team.quota is not None and not team.quota:
            notes.report(
                QUOTA_EMPTY,
                (*path, "quota"),
                f"team '{name}' has no quota in any pool: none of its runs can ever start",
                "Name a pool, or remove quota to share what is left.",
            )
    _check_cluster_file_team_weights(notes)
    _check_cluster_file_weight_scale(notes)
    if notes.spec.gang != "kueue":
        return
    for name, team in notes.spec.teams.items():
        if team.preemption is not None:
            _check_cluster_file_preemption(notes, ("teams", name, "preemption"), team.preemption)
    _check_cluster_file_preemption(notes, ("preemption",), notes.spec.preemption)
    _check_cluster_file_queue_names(notes)


def _check_cluster_file_team_weights(notes: ClusterCheck) -> None:
    """Check that not all teams that share the unquoted rest of pools weigh 0, or no team would get it."""
    sharing = [name for name, team in notes.spec.teams.items() if team.quota is None]
    if not sharing or any(weight_of(notes.spec.teams[name]) for name in sharing):
        return
    left = [
        name
        for name in notes.spec.node_pools
        if any(compute_unassigned_pool_quota(notes.spec, name).values())
    ]
    if left:
        notes.report(
            WEIGHT_NOBODY,
            ("teams", sharing[0], "weight"),
            f"all teams that share what is left of {', '.join(left)} ({', '.join(sharing)}) have weight 0: none of them gets it",
            "Give one of them a weight above 0, or state quotas.",
        )


def _check_cluster_file_weight_scale(notes: ClusterCheck) -> None:
    """Report an omitted weight (1) that is tiny because the other teams count in another unit.

    Reported if a team gets less than half of what the smallest stated weight gets: a single `weight: 2` is
    the usual way to say "twice the others".
    """
    beside = _Stated(notes.spec)
    for name, team in notes.spec.teams.items():
        if team.weight is not None:
            continue
        stated = beside.range_for(team)
        if stated and stated[0] > DEFAULT_WEIGHT + DEFAULT_WEIGHT:
            shown = " and ".join(weight.canonical() for weight in dict.fromkeys(stated))
            notes.report(
                WEIGHT_OMITTED,
                ("teams", name),
                f"team '{name}' states no weight and so has 1, next to weights of {shown}",
                f"Add weight: {stated[0].canonical()} to match the smallest of the others, or weight: 1 if that is meant.",
                key=True,
            )


class _Stated:
    """The smallest and largest stated weights above zero to compare a team's own with.

    If idle capacity is shared, these are the weights in its cohort; if what is left of pools is divided,
    those of all teams without a quota. Read once, because a cluster may have hundreds of teams.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._is_fair = cluster.gang == "kueue" and cluster.fair_sharing
        self._of_cohorts: dict[str, list[Quantity]] = {}
        self._of_rest: list[Quantity] = []
        for team in cluster.teams.values():
            if team.weight:
                _widen_weight_range(self._of_cohorts.setdefault(cohort_of(cluster, team), []), team.weight)
                if team.quota is None:
                    _widen_weight_range(self._of_rest, team.weight)

    def range_for(self, team: TeamQueue) -> list[Quantity]:
        """Return the smallest and largest weights that compete with a team's; empty if there are none."""
        found: list[Quantity] = []
        cohort = self._of_cohorts.get(cohort_of(self._cluster, team), ()) if self._is_fair else ()
        for weight in (*cohort, *(self._of_rest if team.quota is None else ())):
            _widen_weight_range(found, weight)
        return found


def _widen_weight_range(range_: list[Quantity], weight: Quantity) -> None:
    """Widen a range in place to include a weight."""
    range_[:] = [min(range_[0], weight), max(weight, range_[1])] if range_ else [weight, weight]


def _check_cluster_file_quota_shares(notes: ClusterCheck, path: FieldPath, shares: Shares) -> None:
    pools = notes.spec.node_pools
    for name, share in shares.items():
        here = (*path, name)
        if name not in pools:
            notes.unknown(POOL_UNKNOWN, here, "node pool", name, pools, key=True)
            continue
        pool = pools[name]
        if pool.gpu and share.gpus is None:
            notes.report(
                QUOTA_MEASURE,
                here,
                f"pool '{name}' has GPUs, but the share does not say how many",
                "Add gpus:; CPU and memory follow in proportion.",
                key=True,
            )
        if not pool.gpu and share.gpus is not None:
            notes.report(
                QUOTA_MEASURE,
                (*here, "gpus"),
                f"pool '{name}' has no GPUs",
                "Write cpu: instead; memory follows in proportion.",
            )
        if not pool.gpu and share.cpu is None and share.gpus is None:
            notes.report(
                QUOTA_MEASURE,
                here,
                f"the share of pool '{name}' does not say how many CPU cores",
                "Add cpu:; memory follows in proportion.",
                key=True,
            )
        _check_cluster_file_share_devices(notes, here, name, share)
        _check_cluster_file_share_size(notes, here, name, share)


def _check_cluster_file_share_devices(notes: ClusterCheck, path: FieldPath, name: str, share: Share) -> None:
    """Check that the pool has the devices and the disk that a share states."""
    pool = notes.spec.node_pools[name]
    offered = pool.offered
    if pool.gpu and pool.gpu.resource in share.devices:
        notes.report(
            QUOTA_MEASURE,
            (*path, "devices", pool.gpu.resource),
            f"{pool.gpu.resource} are the GPUs of pool '{name}', whose share gpus says",
            "Write gpus: alone.",
            key=True,
        )
    stated: list[tuple[FieldPath, str]] = [((*path, "devices", device), device) for device in share.devices]
    if share.disk is not None:
        stated.append(((*path, "disk"), DISK_RESOURCE))
    for at, resource in stated:
        if resource not in offered:
            what = "disk" if resource == DISK_RESOURCE else resource
            help = f"State what a node of the pool has in nodePools.{name}, or remove it."
            notes.report(QUOTA_MEASURE, at, f"pool '{name}' states no {what}", help, key=True)


def _check_cluster_file_share_size(notes: ClusterCheck, path: FieldPath, name: str, share: Share) -> None:
    """Check that a single share is not more than the pool."""
    pool = notes.spec.node_pools[name]
    if notes.spec.overcommit or (pool.gpu is None) != (share.gpus is None):
        return
    whole, amounts = compute_pool_capacity(pool), resolve_pool_share_amounts(share, pool)
    for resource in sorted(whole, key=lambda resource: resource != find_measure(pool)):
        amount = amounts[resource]
        # A pool that DaemonSets fill has its own finding.
        if amount > whole[resource] and whole[resource]:
            field = _find_cluster_file_share_field(resource, share)
            notes.report(
                QUOTA_OVER_POOL,
                (*path, *field),
                f"{format_with_unit(resource, amount)}, but pool '{name}' has {format_amount(resource, whole[resource])}",
                f"Write at most {format_for_spec(resource, whole[resource])}.",
            )
            return


def _find_cluster_file_share_field(resource: str, share: Share) -> FieldPath:
    """Return the path, below a share, of the field for a resource; empty if it follows in proportion."""
    if resource in share.devices:
        return ("devices", resource)
    field = {"cpu": "cpu", "memory": "memory", DISK_RESOURCE: "disk"}.get(resource, "gpus")
    return (field,) if getattr(share, field) is not None else ()


def _check_cluster_file_quota_limit(
    notes: ClusterCheck, path: FieldPath, shares: Shares, quota: Shares | None
) -> None:
    """Check that a limit names pools in the quota, and lends no more than the quota."""
    pools = notes.spec.node_pools
    for name, share in shares.items():
        if name not in pools or quota is None:
            continue
        if name not in quota:
            notes.report(
                QUOTA_POOL_MISSING,
                (*path, name),
                f"the team has no quota in pool '{name}', so it can neither lend nor borrow there",
                f"Add {name}: to its quota, with gpus: 0 or cpu: 1m when it only borrows.",
                key=True,
            )
        elif path[-1] == "lend":
            _check_cluster_file_lent_quota(notes, (*path, name), share, quota[name])


def _check_cluster_file_lent_quota(notes: ClusterCheck, path: FieldPath, share: Share, quota: Share) -> None:
    """Report the first resource that is lent beyond the quota, also in proportion: Kueue refuses the queue."""
    name = str(path[-1])
    pool = notes.spec.node_pools[name]
    lent, own = resolve_pool_share_amounts(share, pool), resolve_pool_share_amounts(quota, pool)
    for resource in sorted(lent, key=lambda resource: resource != find_measure(pool)):
        if lent[resource] > own[resource]:
            field = _find_cluster_file_share_field(resource, share)
            notes.report(
                LEND_OVER_QUOTA,
                (*path, *field),
                f"the team lends {format_with_unit(resource, lent[resource])} of pool '{name}', and its quota is"
                f" {format_amount(resource, own[resource])}",
                "Lower it to the quota, or remove it to lend all.",
                key=True,
            )
            return


def _check_cluster_file_preemption(notes: ClusterCheck, path: FieldPath, rule: Preemption) -> None:
    if rule.borrow_within_cohort != "Never" and rule.reclaim_within_cohort == "Never":
        notes.report(
            PREEMPTION_CONTRADICTS,
            (*path, "borrowWithinCohort"),
            "Kueue refuses borrowWithinCohort where reclaimWithinCohort is Never",
            "Write reclaimWithinCohort: Any, or borrowWithinCohort: Never.",
        )
    elif rule.borrow_within_cohort != "Never" and notes.spec.fair_sharing:
        notes.report(
            PREEMPTION_UNUSED,
            (*path, "borrowWithinCohort"),
            "with fair sharing Kueue does not look at borrowWithinCohort",
            "Remove it, or set fairSharing: false.",
        )
    if rule.reclaim_within_cohort == "Never":
        notes.report(
            RECLAIM_NEVER,
            (*path, "reclaimWithinCohort"),
            "what is lent comes back only when the borrower's run ends",
            "Write reclaimWithinCohort: Any to get it back when it is needed.",
        )


def _check_cluster_file_queue_names(notes: ClusterCheck) -> None:
    seen: dict[str, str] = {}
    for name, team in notes.spec.teams.items():
        queue = team.cluster_queue or name
        first = seen.setdefault(queue, name)
        if first != name:
            notes.report(
                QUEUE_NAME_TWICE,
                ("teams", name, "clusterQueue") if team.cluster_queue else ("teams", name),
                f"ClusterQueue '{queue}' already belongs to team '{first}'",
                "Each team has its own; choose another name, or remove the line.",
                key=team.cluster_queue is None,
            )


# The fields of the cluster and of a team that only Kueue reads.
_KUEUE_FIELDS = {"cohorts": "cohorts", "multi_kueue": "multiKueue"}
_KUEUE_TEAM_FIELDS = {"cohort": "cohort", "borrow": "borrow", "lend": "lend", "weight": "weight"}


def check_quota_fields_unused_without_kueue(notes: ClusterCheck) -> None:
    """Report fields that only Kueue reads, on a cluster where Kueue does not start the runs."""
    said = f"gang is {notes.spec.gang}, so nothing reads this"
    help = "Remove it, or set gang: kueue."
    for field, alias in _KUEUE_FIELDS.items():
        if getattr(notes.spec, field):
            notes.report(KUEUE_FIELD_UNUSED, (alias,), said, help, key=True)
    for name, team in notes.spec.teams.items():
        for field, alias in _KUEUE_TEAM_FIELDS.items():
            # Weights also divide the pools among teams that state no quota.
            if getattr(team, field) is not None and not (field == "weight" and team.quota is None):
                notes.report(KUEUE_FIELD_UNUSED, ("teams", name, alias), said, help, key=True)
