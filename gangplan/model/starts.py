"""What the starts of a schedule have in common: the shortest time between two, and what changed clocks do.

Nothing here asks for today: starts are looked at over the years from 2026 on, so that the same files always
give the same answer. Zones are those of the tz database, of the system or of the package tzdata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from gangplan.model.cron import DAY, HOUR, MINUTE, Cron, parse_cron, starts
from gangplan.records import dataclass

# After 28 years, days and weekdays come together as before; the rules of clocks are alike in most years.
FIRST, YEARS, CLOCK_YEARS = 2026, 28, 6
# What happens within two days of a changed clock.
_AROUND = 2 * DAY


class NoZonesError(Exception):
    """There is no tz database on this machine."""


def zone_of(name: str) -> tzinfo:
    """A time zone by name. Raises KeyError for an unknown one, NoZonesError where none is known but UTC."""
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
    """A start that a changed clock leaves out, or that happens twice: the local time, as people write it."""

    local: str
    is_twice: bool


@lru_cache(maxsize=256)
def shortest_gap(expression: str, zone: str) -> tuple[int, int] | None:
    """The shortest time between two starts, and the first start before it; None where there are no two.

    A start that a clock which was set back repeats does not count.
    """
    cron, where = parse_cron(expression), zone_of(zone)
    plain = _plain_gap(cron)
    if plain is None or plain[0] <= MINUTE:
        return plain
    least = plain
    for moment, _, _ in _changes(where):
        begin, end = moment - plain[0] - _AROUND, moment + plain[0] + _AROUND
        found = _once(takewhile(lambda at, end=end: at < end, starts(cron, begin, where)), where)  # type: ignore[misc]
        least = min([least, *((later - sooner, sooner) for sooner, later in pairwise(found))])
    return least


def _once(found: Iterable[int], where: tzinfo) -> Iterator[int]:
    """Starts without those that a clock which was set back repeats: `clock_changes` has these."""
    seen: set[str] = set()
    for at in found:
        shown = f"{datetime.fromtimestamp(at, where):%Y%m%d%H%M}"
        if shown not in seen:
            yield at
        seen.add(shown)


def clock_changes(expression: str, zone: str) -> tuple[ClockChange, ...]:
    """The first start that is left out, and the first that happens twice; none where all hours are listed."""
    cron, where = parse_cron(expression), zone_of(zone)
    if len(cron.hours) == 24:
        return ()
    found: dict[bool, ClockChange] = {}
    for moment, before, after in _changes(where):
        is_twice = after < before
        for local in _locals(cron, moment + min(before, after), moment + max(before, after)):
            if not is_twice or _is_repeated(cron, moment, where, local):
                found.setdefault(is_twice, ClockChange(f"{local:%Y-%m-%d %H:%M}", is_twice))
    return tuple(found.values())


def _is_repeated(cron: Cron, moment: int, where: tzinfo, local: datetime) -> bool:
    near = takewhile(lambda at: at < moment + _AROUND, starts(cron, moment - _AROUND, where))
    shown = [datetime.fromtimestamp(at, where).replace(tzinfo=None) for at in near]
    return shown.count(local) > 1


def _locals(cron: Cron, first: int, last: int) -> Iterator[datetime]:
    """Times of an expression that the clock shows between two readings of it, the last one excluded."""
    for at in range(first, last, MINUTE):
        local = datetime.fromtimestamp(at, UTC).replace(tzinfo=None)
        is_then = local.minute in cron.minutes and local.hour in cron.hours
        if is_then and local.month in cron.months and cron.has_day(local):
            yield local


def _plain_gap(cron: Cron) -> tuple[int, int] | None:
    """The shortest time where no clock changes."""
    times = sorted(hour * HOUR + minute * MINUTE for hour in cron.hours for minute in cron.minutes)
    if not times:
        return None
    first = datetime(FIRST, 1, 1, tzinfo=UTC)
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
def _changes(zone: tzinfo) -> tuple[tuple[int, int, int], ...]:
    """When the clock changes: the moment, and the seconds from UTC before and after it."""
    first = int(datetime(FIRST, 1, 1, tzinfo=UTC).timestamp())
    probes = range(first, first + CLOCK_YEARS * 366 * DAY, 7 * DAY)
    found = []
    for sooner, later in pairwise(probes):
        before, after = _shift(sooner, zone), _shift(later, zone)
        if before == after:
            continue
        while later - sooner > MINUTE:
            middle = sooner + (later - sooner) // (2 * MINUTE) * MINUTE
            sooner, later = (middle, later) if _shift(middle, zone) == before else (sooner, middle)
        found.append((later, before, after))
    return tuple(found)


def _shift(at: int, zone: tzinfo) -> int:
    shift = datetime.fromtimestamp(at, zone).utcoffset()
    return int(shift.total_seconds()) if shift else 0
