"""The shortest time between two starts of a schedule, and what clock changes do to its starts.

This module never reads the clock: starts are computed for the years from 2026 on, so the same files always
give the same answer. Zones are those of the tz database, from the system or the package tzdata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from gangplan.model.cron import DAY, HOUR, MINUTE, Cron, iterate_cron_starts, parse_cron
from gangplan.records import dataclass

# After 28 years, days and weekdays coincide again; clock changes are alike in most years.
FIRST_YEAR, YEARS, CLOCK_YEARS = 2026, 28, 6
# How far from a clock change starts can be affected.
_AROUND = 2 * DAY


class NoZonesError(Exception):
    """This machine has no tz database."""


def find_time_zone(name: str) -> tzinfo:
    """Return a time zone by name. Raises KeyError if it is unknown, NoZonesError if only UTC is known."""
    if name in ("UTC", "Etc/UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if not available_timezones():
            raise NoZonesError(name) from None
        raise KeyError(name) from None


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A start that a clock change skips or repeats; `local` is the local time, as people write it."""

    local: str
    is_twice: bool


@lru_cache(maxsize=256)
def find_shortest_cron_start_gap(expression: str, zone: str) -> tuple[int, int] | None:
    """Return the shortest time between two starts, and the first start before it; None if there are no two
    starts.

    A start that is repeated because the clock is set back does not count.
    """
    cron, where = parse_cron(expression), find_time_zone(zone)
    plain = _compute_shortest_cron_start_gap(cron)
    if plain is None or plain[0] <= MINUTE:
        return plain
    least = plain
    for moment, _, _ in _list_clock_changes(where):
        begin, end = moment - plain[0] - _AROUND, moment + plain[0] + _AROUND
        starts = takewhile(lambda at, end=end: at < end, iterate_cron_starts(cron, begin, where))  # type: ignore[misc]
        found = _skip_repeated_cron_starts(starts, where)
        least = min([least, *((later - sooner, sooner) for sooner, later in pairwise(found))])
    return least


def _skip_repeated_cron_starts(found: Iterable[int], where: tzinfo) -> Iterator[int]:
    """Yield starts, except those repeated because the clock is set back: `find_clock_changes` returns
    these."""
    seen: set[str] = set()
    for at in found:
        shown = f"{datetime.fromtimestamp(at, where):%Y%m%d%H%M}"
        if shown not in seen:
            yield at
        seen.add(shown)


def find_clock_changes(expression: str, zone: str) -> tuple[ClockChange, ...]:
    """Return the first start that is skipped and the first that is repeated; nothing if all hours are
    listed."""
    cron, where = parse_cron(expression), find_time_zone(zone)
    if len(cron.hours) == 24:
        return ()
    found: dict[bool, ClockChange] = {}
    for moment, before, after in _list_clock_changes(where):
        is_twice = after < before
        for local in _iterate_local_cron_times(
            cron, moment + min(before, after), moment + max(before, after)
        ):
            if not is_twice or _is_repeated(cron, moment, where, local):
                found.setdefault(is_twice, ClockChange(f"{local:%Y-%m-%d %H:%M}", is_twice))
    return tuple(found.values())


def _is_repeated(cron: Cron, moment: int, where: tzinfo, local: datetime) -> bool:
    near = takewhile(lambda at: at < moment + _AROUND, iterate_cron_starts(cron, moment - _AROUND, where))
    shown = [datetime.fromtimestamp(at, where).replace(tzinfo=None) for at in near]
    return shown.count(local) > 1


def _iterate_local_cron_times(cron: Cron, first: int, last: int) -> Iterator[datetime]:
    """Yield the times of an expression between two local times, excluding the second."""
    for at in range(first, last, MINUTE):
        local = datetime.fromtimestamp(at, UTC).replace(tzinfo=None)
        is_then = local.minute in cron.minutes and local.hour in cron.hours
        if is_then and local.month in cron.months and cron.has_day(local):
            yield local


def _compute_shortest_cron_start_gap(cron: Cron) -> tuple[int, int] | None:
    """Return the shortest time if the clock never changes."""
    times = sorted(hour * HOUR + minute * MINUTE for hour in cron.hours for minute in cron.minutes)
    if not times:
        return None
    first = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
    days = [
        int(day.timestamp())
        for day in (first + timedelta(days=number) for number in range(YEARS * 366))
        if day.month in cron.months and cron.has_day(day)
    ]
    gaps = [(later - sooner, days[0] + sooner) for sooner, later in pairwise(times)] if days else []
    if len(days) > 1:
        apart, day = min((later - sooner, sooner) for sooner, later in pairwise(days))
        gaps.append((apart - times[-1] + times[0], day + times[-1]))
    return min(gaps) if gaps else None


@lru_cache(maxsize=64)
def _list_clock_changes(zone: tzinfo) -> tuple[tuple[int, int, int], ...]:
    """Return the clock changes: the time, and the offsets from UTC before and after it, in seconds."""
    first = int(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp())
    probes = range(first, first + CLOCK_YEARS * 366 * DAY, 7 * DAY)
    found = []
    for sooner, later in pairwise(probes):
        before, after = _compute_utc_offset(sooner, zone), _compute_utc_offset(later, zone)
        if before == after:
            continue
        while later - sooner > MINUTE:
            middle = sooner + (later - sooner) // (2 * MINUTE) * MINUTE
            sooner, later = (
                (middle, later) if _compute_utc_offset(middle, zone) == before else (sooner, middle)
            )
        found.append((later, before, after))
    return tuple(found)


def _compute_utc_offset(at: int, zone: tzinfo) -> int:
    shift = datetime.fromtimestamp(at, zone).utcoffset()
    return int(shift.total_seconds()) if shift else 0
