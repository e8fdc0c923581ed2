"""Checks of sums: quotas against the capacity of pools, caps of namespaces against what queues admit."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.amounts import format_amount, format_for_spec, format_with_unit
from gangplan.model.quantity import ZERO
from gangplan.resolve.backstop import resolve_team_caps_of_cluster_file
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.quota import ResourceQuantities, compute_team_quota_shares
from gangplan.resolve.shares import (
    compute_fraction_of_pool_amount,
    compute_pool_capacity,
    find_measure,
    resolve_pool_share_amounts,
)
from gangplan.resolve.site import compute_team_maximum_by_resource, resolve_site_without_sweeps
from gangplan.resolve.tree import resolve_queue_maximum_by_flavor
from gangplan.rules.quotas import (
    HARD_QUOTA_BELOW_QUEUE,
    LEND_OVER_QUOTA,
    QUOTA_OVER_CAPACITY,
    QUOTA_UNUSED,
    TEAM_SHARE,
)
from gangplan.spec.queues import Shares
from gangplan.workspace import Workspace


def check_cluster_file_quota_sums(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check amounts. All names in the file are known to exist."""
    for pool in notes.spec.node_pools:
        if not notes.spec.overcommit:
            _check_cluster_file_pool_quota_sum(notes, pool)
        _check_cluster_file_unused_capacity(notes, pool)
    _check_cluster_file_namespace_caps(notes, workspace)
    _check_cluster_file_lent_shares(notes)
    if notes.spec.gang == "kueue" and notes.spec.limits.team_share < 100:
        _check_cluster_file_team_share(notes, workspace)


def _list_cluster_file_quota_holders(notes: ClusterCheck) -> list[tuple[str, str, Shares]]:
    """Return what states quotas: a name for messages, the key in the file, the shares; cohorts come first."""
    found: list[tuple[str, str, Shares]] = [
        (f"cohort {name}", "cohorts", cohort.quota) for name, cohort in notes.spec.cohorts.items()
    ]
    return found + [(name, "teams", team.quota or {}) for name, team in notes.spec.teams.items()]


def _check_cluster_file_pool_quota_sum(notes: ClusterCheck, pool: str) -> None:
    """Check that the quotas of a pool add up to no more than it has; report the first that exceeds it."""
    node_pool = notes.spec.node_pools[pool]
    whole = compute_pool_capacity(node_pool)
    for resource in _sort_measured_resource_first(whole, find_measure(node_pool)):
        total, parts = ZERO, []
        for name, kind, shares in _list_cluster_file_quota_holders(notes):
            if pool not in shares:
                continue
            amount = resolve_pool_share_amounts(shares[pool], node_pool)[resource]
            total += amount
            parts.append(f"{name} {format_amount(resource, amount)}")
            if total > whole[resource]:
                notes.report(
                    QUOTA_OVER_CAPACITY,
                    (kind, name.removeprefix("cohort "), "quota", pool),
                    f"quotas of pool '{pool}' add up to {format_with_unit(resource, total)}"
                    f" ({', '.join(parts)}), but it has {format_amount(resource, whole[resource])}",
                    "Lower a quota, add nodes, or set overcommit: true to promise more than there is.",
                    key=True,
                )
                return


def _sort_measured_resource_first(amounts: ResourceQuantities, measured: str) -> list[str]:
    return [measured, *(resource for resource in amounts if resource != measured)]


def _check_cluster_file_unused_capacity(notes: ClusterCheck, pool: str) -> None:
    """Report capacity that no quota covers: Kueue never uses it, because it hands out quotas, not nodes."""
    node_pool = notes.spec.node_pools[pool]
    if any(team.quota is None for team in notes.spec.teams.values()) or not notes.spec.teams:
        return
    resource = find_measure(node_pool)
    left = compute_pool_capacity(node_pool)[resource]
    for _, _, shares in _list_cluster_file_quota_holders(notes):
        if pool in shares:
            left -= resolve_pool_share_amounts(shares[pool], node_pool)[resource]
    if left > ZERO:
        notes.report(
            QUOTA_UNUSED,
            ("nodePools", pool),
            f"{format_with_unit(resource, left)} of pool '{pool}' belong to no team and are never used",
            "Raise a quota, or give them to a cohort as a reserve.",
            key=True,
        )


def _check_cluster_file_namespace_caps(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check that no namespace's cap is below what its queue admits: runs would get no pods (kueue#1403)."""
    if all(team.hard_quota is None for team in notes.spec.teams.values()):
        return
    most = compute_team_maximum_by_resource(workspace, notes.cluster.name)
    shares = compute_team_quota_shares(notes.spec)
    for name, team in notes.spec.teams.items():
        for resource, cap in resolve_team_caps_of_cluster_file(notes.spec, team.hard_quota).items():
            can = most.get(name, {}).get(resource, ZERO)
            if cap >= can:
                continue
            own = sum((amounts.get(resource, ZERO) for amounts in shares[name].values()), ZERO)
            field = {"cpu": "cpu", "memory": "memory"}.get(resource, "gpus")
            borrowed = can - own
            limit = (
                f", or limit borrow to {format_for_spec(resource, cap - own)}"
                if cap >= own and borrowed > ZERO
                else ""
            )
            notes.report(
                HARD_QUOTA_BELOW_QUEUE,
                ("teams", name, "hardQuota", field),
                f"the namespace of team '{name}' is capped at {format_with_unit(resource, cap)}, but its queue may"
                f" admit {format_amount(resource, can)} ({format_amount(resource, own)} of its own and {format_amount(resource, borrowed)} borrowed):"
                " an admitted run would wait for pods forever",
                f"Write {format_for_spec(resource, can)} or more{',' if limit else ' or'} remove the cap{limit}.",
            )


def _check_cluster_file_team_share(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check that no team can hold more of a pool, borrowing included, than the cluster allows one team."""
    site = resolve_site_without_sweeps(workspace, notes.cluster.name)
    most = resolve_queue_maximum_by_flavor(site)
    percent = notes.spec.limits.team_share
    pools = {flavor.name: flavor.pool for flavor in site.flavors}
    for queue in site.queues:
        own = {
            quota.flavor: amount.nominal
            for quota in queue.quotas
            for amount in quota.amounts
            if amount.resource == find_measure(notes.spec.node_pools[pools[quota.flavor]])
        }
        for flavor, amounts in most[queue.name].items():
            pool = notes.spec.node_pools[pools[flavor]]
            whole = compute_pool_capacity(pool)[find_measure(pool)]
            can = amounts[find_measure(pool)]
            allowed = compute_fraction_of_pool_amount(whole, percent, 100, find_measure(pool))
            if can > allowed:
                notes.report(
                    TEAM_SHARE,
                    _find_excessive_quota_field(notes, queue.team, pools[flavor], own[flavor] > allowed),
                    f"team '{queue.team}' can get {format_amount(find_measure(pool), can)} of {format_with_unit(find_measure(pool), whole)} of pool"
                    f" '{pools[flavor]}', more than the {percent} % that limits.teamShare allows",
                    f"Lower its quota to {format_for_spec(find_measure(pool), allowed)} or less."
                    if own[flavor] > allowed
                    else f"Limit borrow of '{pools[flavor]}' to {format_for_spec(find_measure(pool), allowed - own[flavor])}.",
                )


def _find_excessive_quota_field(notes: ClusterCheck, team: str, pool: str, is_quota: bool) -> FieldPath:
    """Return the path of the field that gives a team too much: its quota, else what it may borrow."""
    field = "quota" if is_quota else "borrow"
    shares = getattr(notes.spec.teams[team], field)
    return ("teams", team, field, pool) if shares and pool in shares else ("teams", team, "queue")


def _check_cluster_file_lent_shares(notes: ClusterCheck) -> None:
    """Check that a team without a stated quota lends no more than its part of what is left."""
    shares = compute_team_quota_shares(notes.spec)
    for name, team in notes.spec.teams.items():
        for pool, lent in (team.lend or {}).items() if team.quota is None else ():
            resource = find_measure(notes.spec.node_pools[pool])
            most = shares[name][pool][resource]
            if resolve_pool_share_amounts(lent, notes.spec.node_pools[pool])[resource] > most:
                notes.report(
                    LEND_OVER_QUOTA,
                    ("teams", name, "lend", pool),
                    f"the team lends more of pool '{pool}' than its part of what is left, {format_with_unit(resource, most)}",
                    "Lower it to that, or remove it to lend all.",
                    key=True,
                )
