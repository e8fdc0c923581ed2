"""`gangplan cluster quota`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gangplan.commands.common import print_findings
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, in_order
from gangplan.model.amounts import bare, say
from gangplan.model.quantity import ZERO, Quantity
from gangplan.model.site import Site
from gangplan.model.usage import Usage, read_usage
from gangplan.pipeline.request import Request
from gangplan.pipeline.stages import platform_findings
from gangplan.report.quota import Holding, Row, percent, quota_document, quota_text
from gangplan.resolve import resolve_site
from gangplan.resolve.shares import capacity, measure
from gangplan.resolve.tree import most_by_queue
from gangplan.rules.model import Severity
from gangplan.rules.quotas import QUOTA_NEARLY_USED
from gangplan.workspace import ClusterFile, load_workspace, nearest

# Founding requirements, appendix A: warn from 90 % of a quota (S0's example is 30/32 = 94 %).
NEARLY = 90


def quota(request: Request, usage_file: Path | None, format: str) -> Exit:
    """Print the quotas of each cluster, and how much of them a snapshot says is used."""
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    workspace = load_workspace(request.root)
    findings = [*workspace.findings, *platform_findings(workspace)]
    for name in request.clusters:
        if name not in workspace.clusters and not findings:
            raise UserError(f"there is no cluster '{name}'", nearest(name, workspace.clusters))
    names = request.clusters or tuple(sorted(workspace.clusters))
    if any(finding.severity is Severity.ERROR for finding in findings):
        print_findings(in_order(findings))
        return Exit.INPUT
    usage = read_usage(usage_file) if usage_file else None
    if usage is not None and len(names) != 1:
        raise UserError(
            f"a snapshot is of one cluster, and there are {len(names)}", "Name it with --cluster NAME."
        )
    sites = {name: resolve_site(workspace, name) for name in names}
    queueless = [name for name, site in sites.items() if not site.queues]
    if len(queueless) == len(names):
        raise UserError("nothing to show: Kueue runs on none of these clusters", "Name another cluster.")
    if usage is not None:
        _check_known(usage, next(iter(sites.values())), usage_file)
    holdings = [
        holding_of(workspace.clusters[name], site, usage) for name, site in sites.items() if site.queues
    ]
    near = [
        finding
        for holding in holdings
        for finding in nearly_used(workspace.clusters[holding.cluster], holding)
    ]
    if format == "json":
        sys.stdout.write(json.dumps(quota_document(holdings), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(quota_text(holding) for holding in holdings))
    print_findings(in_order(near))
    return Exit.CLEAN


def _check_known(usage: Usage, site: Site, file: Path | None) -> None:
    """A snapshot of another cluster, or from before flavors were renamed, would read as if nothing were used."""
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


def holding_of(cluster: ClusterFile, site: Site, usage: Usage | None) -> Holding:
    """The quotas of a cluster's teams, and what a snapshot says is used of them."""
    pools = cluster.spec.node_pools
    most = most_by_queue(site)
    names = {flavor.name: flavor.pool for flavor in site.flavors}
    rows = []
    for queue in site.queues:
        for quota in queue.quotas:
            pool = names[quota.flavor]
            resource = measure(pools[pool])
            (own,) = (amount.nominal for amount in quota.amounts if amount.resource == resource)
            used = None
            if usage is not None:
                used = usage.get(queue.name, {}).get(quota.flavor, {}).get(resource, ZERO)
            rows.append(Row(queue.team, pool, resource, own, most[queue.name][quota.flavor][resource], used))
    offered = {name: (measure(pool), capacity(pool)[measure(pool)]) for name, pool in pools.items()}
    reserves: dict[str, Quantity] = {}
    for cohort in site.cohorts:
        for quota in cohort.quotas:
            resource = measure(pools[names[quota.flavor]])
            kept = sum((amount.nominal for amount in quota.amounts if amount.resource == resource), ZERO)
            reserves[resource] = reserves.get(resource, ZERO) + kept
    return Holding(cluster.name, rows, offered, reserves)


def nearly_used(cluster: ClusterFile, holding: Holding) -> list[Finding]:
    """Teams that use nine tenths of what is theirs, all pools of one resource together (QUO-08)."""
    found = []
    for team in dict.fromkeys(row.team for row in holding.rows):
        for resource in dict.fromkeys(row.resource for row in holding.rows):
            rows = [row for row in holding.rows if (row.team, row.resource) == (team, resource)]
            own = sum((row.quota for row in rows), ZERO)
            used = sum((row.used for row in rows if row.used is not None), Quantity(0))
            if own and used and percent(used, own) >= NEARLY:
                shares = f"{bare(resource, used)}/{say(resource, own)}"
                beyond = " and borrows" if used > own else ""
                message = f"team {team} is approaching its quota limit ({shares} used)"
                if beyond:
                    message = f"team {team} uses more than its quota ({shares}): the rest is borrowed"
                where = cluster.document.where(("teams", team), key=True)
                found.append(
                    Finding(QUOTA_NEARLY_USED, where, message, "Raise its quota, or expect its runs to wait.")
                )
    return found
