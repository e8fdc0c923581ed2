"""What runs cost, as a table, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from decimal import Decimal

from gangplan.model.bill import CostItem, CostSum
from gangplan.model.cost import CENT, format_hours

CostRow = dict[str, object]
# The month of runs that are in Git once: they start when they are admitted, at any time.
ONCE_MONTH = "once"
# Prices without further digits are shown to this place.
_SHOWN = Decimal("0.0001")


def build_cost_item_rows(
    items: Sequence[CostItem], with_expected: bool, with_months: bool = False
) -> list[CostRow]:
    """Return a row for each run, for people."""
    return [
        {
            "run": one.run,
            "team": one.team,
            "cluster": one.cluster,
            "pool": one.pool,
            **({"month": one.month or ONCE_MONTH, "starts": one.starts} if with_months else {}),
            "GPU-hours": format_hours(one.gpu_hours) if one.gpu_hours else None,
            "per hour": format_money(one.per_hour, one.currency),
            "at most": format_money(one.cost, one.currency),
            **({"expected": format_money(one.expected, one.currency)} if with_expected else {}),
        }
        for one in items
    ]


def build_cost_sum_rows(found: Sequence[CostSum], by: str, with_expected: bool) -> list[CostRow]:
    """Return a row for each sum, for people."""
    return [
        {
            by: one.name,
            "runs": one.runs,
            "GPU-hours": format_hours(one.gpu_hours) if one.gpu_hours else None,
            "at most": format_money(one.cost, one.currency) if one.unpriced < one.runs else None,
            **(
                {"expected": format_money(one.expected, one.currency)}
                if with_expected and one.unpriced < one.runs
                else {}
            ),
            "without price": one.unpriced or None,
        }
        for one in found
    ]


def format_money(value: Decimal | None, currency: str) -> str | None:
    """Return an amount without zeros at the end, but with cents."""
    if value is None:
        return None
    plain = value.normalize()
    return f"{plain if plain.as_tuple().exponent < -2 else plain.quantize(CENT):f} {currency}"  # type: ignore[operator]


def build_costs_json(
    items: Sequence[CostItem], found: Sequence[CostSum], by: str, months: Sequence[str] = ()
) -> dict[str, object]:
    """Return items and sums as JSON, version 1; amounts are texts, which keep every digit."""
    return {
        "version": 1,
        "by": by,
        **({"months": list(months)} if months else {}),
        "runs": [build_cost_item_json(one, bool(months)) for one in items],
        "sums": [
            {
                "name": one.name,
                "runs": one.runs,
                "gpuHours": format_cost_decimal(one.gpu_hours),
                "cpuHours": format_cost_decimal(one.cpu_hours),
                "most": format_cost_decimal(one.cost) if one.unpriced < one.runs else None,
                "expected": format_cost_decimal(one.expected) if one.unpriced < one.runs else None,
                "unpriced": one.unpriced,
                "currency": one.currency,
            }
            for one in found
        ],
    }


def render_costs_csv(items: Sequence[CostItem], with_months: bool = False) -> str:
    """Return a line for each run (RFC 4180), for spreadsheets and showback."""
    return render_cost_rows_csv([build_cost_item_json(one, with_months) for one in items])


def render_cost_rows_csv(rows: Sequence[CostRow]) -> str:
    """Return rows that all have the same columns, as CSV."""
    stream = io.StringIO()
    names = list(rows[0]) if rows else []
    writer = csv.DictWriter(stream, names, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _escape_csv_formula(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


def _escape_csv_formula(value: object) -> object:
    """Return a cell; a text that a spreadsheet would take for a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def build_cost_item_json(one: CostItem, with_months: bool = False) -> CostRow:
    """Return a run as data."""
    return {
        **({"month": one.month or ONCE_MONTH, "starts": one.starts} if with_months else {}),
        "cluster": one.cluster,
        "team": one.team,
        "job": one.job,
        "run": one.run,
        "pool": one.pool,
        "gpuHours": format_cost_decimal(one.gpu_hours),
        "cpuHours": format_cost_decimal(one.cpu_hours),
        "perHour": format_exact_price(one.per_hour),
        "most": format_cost_decimal(one.cost),
        "expected": format_cost_decimal(one.expected),
        "currency": one.currency if one.per_hour is not None else None,
    }


def format_exact_price(value: Decimal | None) -> str | None:
    """Return a price with all of its digits."""
    if value is None:
        return None
    short = value.normalize()
    exponent = short.as_tuple().exponent
    return f"{short if isinstance(exponent, int) and exponent < -4 else value.quantize(_SHOWN):f}"


def format_cost_decimal(value: Decimal | None) -> str | None:
    """Return hours to a thousandth, and money as it is."""
    if value is None:
        return None
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -4:
        value = value.quantize(Decimal("0.001"))
    return f"{value:f}"
