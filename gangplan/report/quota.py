"""Quotas of a cluster's teams and their use: as text for people, as data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.model.amounts import format_amount
from gangplan.model.quantity import ZERO
from gangplan.pipeline.quota import ClusterHoldings, QuotaRow, compute_percent

SHAPE = 1


def render_quota_text(holding: ClusterHoldings) -> str:
    """Return a table per cluster, and the sums of its pools."""
    lines = [f"{holding.cluster}\n"]
    header = ("team", "pool", "resource", "quota", "most", "used", "of quota")
    table = [header, *(_build_quota_table_row(row) for row in holding.rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    for line in table:
        cells = [
            cell.rjust(width) if column >= 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip() + "\n")
    lines += [f"  {line}\n" for line in _describe_quota_totals(holding)]
    return "".join(lines)


def _build_quota_table_row(row: QuotaRow) -> tuple[str, ...]:
    used = "-" if row.used is None else format_amount(row.resource, row.used)
    share = "-" if row.used is None or not row.quota else f"{compute_percent(row.used, row.quota)} %"
    return (
        row.team,
        row.pool,
        row.resource,
        format_amount(row.resource, row.quota),
        format_amount(row.resource, row.most),
        used,
        share,
    )


def _describe_quota_totals(holding: ClusterHoldings) -> list[str]:
    """Return, for each resource that pools are measured in, what is promised, used and available."""
    lines = []
    for resource in dict.fromkeys(resource for resource, _ in holding.pools.values()):
        whole = sum((amount for name, amount in holding.pools.values() if name == resource), ZERO)
        rows = [row for row in holding.rows if row.resource == resource]
        reserve = holding.reserves.get(resource, ZERO)
        kept = f", {format_amount(resource, reserve)} of them cohorts' reserves," if reserve else ""
        promised = sum((row.quota for row in rows), reserve)
        parts = [
            format_amount(resource, amount) for name, amount in holding.pools.values() if name == resource
        ]
        sum_of = f" = {' + '.join(parts)}" if len(parts) > 1 else ""
        line = f"{resource}: {format_amount(resource, promised)} promised{kept} of {format_amount(resource, whole)}{sum_of}"
        if any(row.used is not None for row in rows):
            used = sum((row.used for row in rows if row.used is not None), ZERO)
            line += f", {format_amount(resource, used)}/{format_amount(resource, whole)} used ({compute_percent(used, whole)} %)"
        lines.append(line)
    return lines


def build_quota_json(holdings: Sequence[ClusterHoldings]) -> dict[str, Any]:
    """Return the quotas as data: canonical quantities as texts, null where nothing is known."""
    return {
        "version": SHAPE,
        "clusters": {
            holding.cluster: {
                "pools": {
                    name: {"resource": resource, "capacity": amount.canonical()}
                    for name, (resource, amount) in holding.pools.items()
                },
                "teams": [
                    {
                        "team": row.team,
                        "pool": row.pool,
                        "resource": row.resource,
                        "quota": row.quota.canonical(),
                        "most": row.most.canonical(),
                        "used": None if row.used is None else row.used.canonical(),
                    }
                    for row in holding.rows
                ],
            }
            for holding in holdings
        },
    }
