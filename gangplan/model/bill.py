"""What runs cost, by owner, place and hardware. Money is exact: the cents of each run are added up.

GPU-hours count every GPU of a run for as long as the run has its pods. A run whose pool has no price counts
its hours, but no money.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

from gangplan.model.cost import (
    CENT,
    compute_max_cost,
    compute_max_seconds,
    count_cpu_hours,
    count_gpu_hours,
    list_cost_parts,
    list_unpriced_pools,
)
from gangplan.model.job import Job
from gangplan.records import dataclass

ZERO_COST = Decimal(0)


@dataclass(frozen=True, slots=True)
class CostItem:
    """One run: its hours and money until its deadline, and for its expected duration, if that is stated.

    `cost` and `expected` are in `currency`, to the cent; None if the pool of its workers has no price.
    `per_hour` excludes steps, which run before the other pods. With a `month`, the figures are those of all
    `starts` runs that a schedule starts in it. `without` lists the pools of its pods, including the
    launcher's, that have no price.
    """

    cluster: str
    team: str
    job: str
    run: str
    pool: str
    gpu_hours: Decimal
    cpu_hours: Decimal
    per_hour: Decimal | None
    cost: Decimal | None
    expected: Decimal | None
    currency: str
    month: str = ""
    starts: int = 1
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CostSum:
    """The total of several runs. `unpriced` counts runs without a price; a run without a stated duration is
    expected to cost its maximum."""

    name: str
    runs: int
    gpu_hours: Decimal
    cpu_hours: Decimal
    cost: Decimal
    expected: Decimal
    unpriced: int
    currency: str


def build_cost_item(job: Job, run: str, seconds: float | None) -> CostItem:
    """Return the item of a run that lasts `seconds`, or until its deadline."""
    most = compute_max_seconds(job)
    per_hour = None
    parts = list_cost_parts(job)
    lasts = None if seconds is None else min(Decimal(str(seconds)), Decimal(most))
    expected = None
    if parts is not None:
        per_hour = sum((part.per_hour for part in parts if not part.is_step), ZERO_COST)
        if lasts is not None:
            expected = sum((part.cost(lasts) for part in parts), ZERO_COST).quantize(CENT)
    return CostItem(
        job.platform.cluster,
        job.team,
        job.name,
        run,
        job.worker_pool.name,
        count_gpu_hours(job),
        count_cpu_hours(job),
        per_hour,
        compute_max_cost(job),
        expected,
        job.platform.currency,
        without=list_unpriced_pools(job),
    )


def sum_costs(items: Iterable[CostItem], key: Callable[[CostItem], str]) -> list[CostSum]:
    """Return the totals of the items by key and currency, sorted by both."""
    groups: dict[tuple[str, str], list[CostItem]] = {}
    for item in items:
        groups.setdefault((key(item), item.currency), []).append(item)
    return [_sum_cost_items(name, currency, found) for (name, currency), found in sorted(groups.items())]


def _sum_cost_items(name: str, currency: str, items: list[CostItem]) -> CostSum:
    return CostSum(
        name,
        sum(one.starts for one in items),
        sum((one.gpu_hours for one in items), ZERO_COST),
        sum((one.cpu_hours for one in items), ZERO_COST),
        sum((one.cost for one in items if one.cost is not None), ZERO_COST),
        sum(
            (one.cost if one.expected is None else one.expected for one in items if one.cost is not None),
            ZERO_COST,
        ),
        sum(one.starts for one in items if one.cost is None),
        currency,
    )
