"""Months of calendars and budgets, in UTC, and how often a schedule starts in one.

A month is that of UTC everywhere, like the names of dated runs, so a run is in the same month for each team,
cluster and time zone. The days and hours of a schedule are those of its own zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile

from gangplan.model.bill import CostItem
from gangplan.model.cost import CENT, compute_max_seconds
from gangplan.model.cron import DAY, HOUR, MINUTE, Cron, iterate_cron_starts, parse_cron
from gangplan.model.job import Job
from gangplan.model.starts import CLOCK_YEARS, FIRST_YEAR, find_time_zone
from gangplan.records import dataclass

_WRITTEN = re.compile(r"([0-9]{4})(?:-(0[1-9]|1[0-2]))?", re.ASCII)
# Every day of these years has a timestamp in every zone.
_LEAST, _MOST = 1970, 9998


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month of a year, in UTC."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}"

    @property
    def next(self) -> Month:
        """The following month."""
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    @property
    def begin(self) -> int:
        """Its first second, since 1970; that of the next month is its end."""
        return int(datetime(self.year, self.month, 1, tzinfo=UTC).timestamp())

    @property
    def seconds(self) -> int:
        """Its length in seconds."""
        return self.next.begin - self.begin


def parse_months(text: str) -> tuple[Month, ...]:
    """Return the month of `2026-12`, or the twelve of `2026`. Raises ValueError for any other text."""
    found = _WRITTEN.fullmatch(text)
    year = int(found[1]) if found else 0
    if found is None or not _LEAST <= year <= _MOST:
        raise ValueError(text)
    return (Month(year, int(found[2])),) if found[2] else tuple(Month(year, one) for one in range(1, 13))


def list_twelve_months_from(day: date) -> tuple[Month, ...]:
    """Return the month of a day and the eleven after it."""
    found = [Month(day.year, day.month)]
    while len(found) < 12:
        found.append(found[-1].next)
    return tuple(found)


@lru_cache(maxsize=65536)
def count_starts(expression: str, zone: str, month: Month) -> int:
    """Return how often a schedule starts in a month.

    Days on which the clock changes are simulated, all others counted. Raises what parse_cron and
    find_time_zone raise.
    """
    cron, where = parse_cron(expression), find_time_zone(zone)
    times = [hour * HOUR + minute * MINUTE for hour in cron.hours for minute in cron.minutes]
    begin, end = month.begin, month.next.begin
    count = 0
    for first, last, day, is_plain in _list_month_days_in_zone(where, month):
        if is_plain and not (day.month in cron.months and cron.has_day(day)):
            continue
        if not is_plain:
            count += _count_starts_between(cron, where, max(first, begin), min(last, end))
        elif begin <= first and last <= end:
            count += len(times)
        else:
            count += sum(begin <= first + time < end for time in times)
    return count


def _count_starts_between(cron: Cron, where: tzinfo, first: int, last: int) -> int:
    return sum(1 for _ in takewhile(lambda at: at < last, iterate_cron_starts(cron, first - 1, where)))


@lru_cache(maxsize=4096)
def _list_month_days_in_zone(where: tzinfo, month: Month) -> tuple[tuple[int, int, datetime, bool], ...]:
    """Return the days of a zone that overlap a month: first second, that of the next day, and whether the
    clock does not change."""
    return tuple(_iterate_days_in_time_zone(where, month.begin, month.next.begin))


def _iterate_days_in_time_zone(
    where: tzinfo, begin: int, end: int
) -> Iterator[tuple[int, int, datetime, bool]]:
    shown = datetime.fromtimestamp(begin, where)
    day = datetime(shown.year, shown.month, shown.day)
    while (first := int(day.replace(tzinfo=where).timestamp())) < end:
        following = day + timedelta(days=1)
        last = int(following.replace(tzinfo=where).timestamp())
        if last > begin:
            yield first, last, day, last - first == DAY
        day = following


def build_monthly_cost_item(one: CostItem, job: Job, month: Month) -> CostItem | None:
    """Return the item of all runs that a job's schedule starts in a month; None if it starts none.

    `one` is the item of a single start. A start is skipped while an earlier run trains (concurrency: forbid),
    so all runs of a month together take no longer than the month and one run. Raises what `count_starts`
    raises.
    """
    assert job.schedule is not None
    starts = count_starts(job.schedule.cron, job.schedule.time_zone, month)
    if not starts:
        return None
    longest = compute_max_seconds(job)
    most = count_busy_seconds(starts, longest, month.seconds)
    cost = None if one.cost is None else compute_schedule_cost(one.cost, starts, longest, month.seconds)
    return replace(
        one,
        gpu_hours=one.gpu_hours * most / longest,
        cpu_hours=one.cpu_hours * most / longest,
        cost=cost,
        expected=None if one.expected is None or cost is None else min(one.expected * starts, cost),
        month=str(month),
        starts=starts,
    )


def count_busy_seconds(starts: int, longest: int, span: int) -> int:
    """Return the most seconds that all runs of a schedule take in `span` seconds, one after the other."""
    return min(starts * longest, span + longest)


def compute_schedule_cost(cost: Decimal, starts: int, longest: int, span: int) -> Decimal:
    """Return what all runs cost together if one costs `cost` and takes `longest` at most."""
    return (cost * count_busy_seconds(starts, longest, span) / longest).quantize(CENT)


def list_budget_months() -> tuple[Month, ...]:
    """Return the months that budgets are checked against, 2026 to 2031. They are fixed, so the same files
    always give the same answer."""
    return tuple(Month(FIRST_YEAR + year, month) for year in range(CLOCK_YEARS) for month in range(1, 13))


@lru_cache(maxsize=4096)
def find_month_with_most_cron_starts(expression: str, zone: str) -> tuple[int, Month]:
    """Return the most starts in any month, and the first month that has them. Raises what `count_starts`
    raises."""
    counted = [(count_starts(expression, zone, one), one) for one in list_budget_months()]
    most = max(count for count, _ in counted)
    return next(one for one in counted if one[0] == most)
