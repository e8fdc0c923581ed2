"""Durations and timestamps: Go's text formats (time.ParseDuration, RFC 3339) and cel-go's checked
arithmetic."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gangplan.cel.errors import EvalError
from gangplan.cel.numbers import INT_MAX, INT_MIN, format_plain_cel_double
from gangplan.cel.values import Duration, Timestamp

SECOND = 10**9
# Seconds since 1970 of the years 1 to 9999 (cel-go v0.26, common/types/timestamp.go).
MIN_UNIX, MAX_UNIX = -62135596800, 253402300799

_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)", re.ASCII)
# Hours may have one digit and fractions a comma: Go's parser accepts both.
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,]([0-9]+))?(?:Z|([-+])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)


class Civil(NamedTuple):
    """A moment in a calendar; month, day and `yearday` count from 1, `weekday` from Sunday 0."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    yearday: int


# Durations


def parse_go_duration(text: str) -> Duration | None:
    """Parse a duration as `time.ParseDuration` does (`1h30m`, `-1.5s`, `0`); return None where that fails."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total = 0
    if not rest:
        return None
    while rest:
        match = _PART.match(rest)
        assert match
        whole, dot, fraction, unit = match[1], match[2], match[3] or "", match[4]
        if (not whole and not fraction) or unit not in _UNITS or not (whole or dot):
            return None
        amount = _compute_duration_part_nanoseconds(whole, fraction, _UNITS[unit])
        if amount is None or (total := total + amount) > 2**63:
            return None
        rest = rest[match.end() :]
    if negative:
        return Duration(-total)
    return Duration(total) if total <= INT_MAX else None


def _compute_duration_part_nanoseconds(whole: str, fraction: str, unit: int) -> int | None:
    """Return one part in nanoseconds; the fraction is computed in float64, as in Go."""
    number = int(whole or "0") if len(whole) < 30 else 2**64
    if number > 2**63 // unit:
        return None
    amount = number * unit
    part, scale = 0, 1.0
    for digit in fraction:
        # Go stops where the next digit would overflow.
        if part > INT_MAX // 10 or part * 10 + int(digit) > 2**63:
            break
        part, scale = part * 10 + int(digit), scale * 10
    if part:
        amount += int(float(part) * (float(unit) / scale))
    return amount if amount <= 2**63 else None


def count_seconds(duration: Duration) -> float:
    """Return `Duration.Seconds()`."""
    return _convert_duration_to_float(duration, SECOND)


def count_minutes(duration: Duration) -> float:
    """Return `Duration.Minutes()`."""
    return _convert_duration_to_float(duration, 60 * SECOND)


def count_hours(duration: Duration) -> float:
    """Return `Duration.Hours()`."""
    return _convert_duration_to_float(duration, 3600 * SECOND)


def _convert_duration_to_float(duration: Duration, unit: int) -> float:
    """Return whole units plus the rest, each as float64, both with the sign of the duration."""
    size = abs(duration.nanoseconds)
    value = float(size // unit) + float(size % unit) / float(unit)
    return -value if duration.nanoseconds < 0 else value


def write_duration(duration: Duration) -> str:
    """Return `string(duration)` in seconds, such as `5400s`."""
    return format_plain_cel_double(count_seconds(duration)) + "s"


# Timestamps


def parse_cel_timestamp(text: str) -> Timestamp | None:
    """Parse RFC 3339 as Go does; return None where that fails. Raises `EvalError` outside the years 1 to
    9999."""
    match = _RFC3339.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    if not (1 <= month <= 12 and 1 <= day <= _count_days_in_month(year, month) and hour < 24 and minute < 60):
        return None
    if second >= 60:
        return None
    offset = 0
    if match[8]:
        # Go's range test lets 24 hours and 60 minutes pass.
        if int(match[9]) > 24 or int(match[10]) > 60:
            return None
        offset = (int(match[9]) * 60 + int(match[10])) * (-60 if match[8] == "-" else 60)
    unix = _count_days_since_epoch(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    nanoseconds = int(f"{(match[7] or '')[:9]:0<9}")
    return Timestamp(_check_timestamp_range(unix) * SECOND + nanoseconds, offset)


def write_timestamp(timestamp: Timestamp) -> str:
    """Return RFC 3339 in the zone in which the timestamp was written, with nanoseconds unless they are 0."""
    civil = _convert_seconds_to_civil(timestamp.nanoseconds // SECOND + timestamp.offset)
    fraction = f"{timestamp.nanoseconds % SECOND:09d}".rstrip("0")
    zone = "Z"
    if timestamp.offset:
        minutes = abs(timestamp.offset) // 60
        zone = f"{'-' if timestamp.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return (
        f"{civil.year:04d}-{civil.month:02d}-{civil.day:02d}T{civil.hour:02d}:{civil.minute:02d}"
        f":{civil.second:02d}{'.' + fraction if fraction else ''}{zone}"
    )


def is_rfc3339_date(text: str) -> bool:
    """Return whether Go reads the text as a date such as `2026-01-31`."""
    match = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", text, re.ASCII)
    if not match:
        return False
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    return 1 <= month <= 12 and 1 <= day <= _count_days_in_month(year, month)


def build_timestamp(seconds: int) -> Timestamp:
    """Return the timestamp of so many seconds since 1970."""
    return Timestamp(_check_timestamp_range(seconds) * SECOND)


def _check_timestamp_range(seconds: int) -> int:
    if MIN_UNIX <= seconds <= MAX_UNIX:
        return seconds
    raise EvalError("timestamp overflow")


def add_to_timestamp(timestamp: Timestamp, nanoseconds: int) -> Timestamp:
    """Return a timestamp later by so many nanoseconds."""
    total = timestamp.nanoseconds + nanoseconds
    _check_timestamp_range(total // SECOND)
    return Timestamp(total, timestamp.offset)


def subtract_cel_timestamps(later: Timestamp, earlier: Timestamp) -> Duration:
    """Return the duration between two timestamps; more than 292 years overflow, as int64 nanoseconds do."""
    seconds = later.nanoseconds // SECOND - earlier.nanoseconds // SECOND
    total = later.nanoseconds - earlier.nanoseconds
    # cel-go multiplies the seconds before it adds the nanoseconds.
    if not INT_MIN <= seconds * SECOND <= INT_MAX or not INT_MIN <= total <= INT_MAX:
        raise EvalError("integer overflow")
    return Duration(total)


# Calendar


def convert_to_civil(timestamp: Timestamp, zone: str) -> Civil:
    """Return the calendar moment in a time zone: an IANA name, or an offset such as `-08:00`. Raises
    `EvalError`."""
    seconds = timestamp.nanoseconds // SECOND
    return _convert_seconds_to_civil(seconds + _resolve_zone_offset(zone, seconds))


def _resolve_zone_offset(zone: str, seconds: int) -> int:
    if zone in ("", "UTC"):
        return 0
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return _find_named_zone_offset(zone, seconds)
    hour, minute = _parse_go_integer(hours), _parse_go_integer(minutes)
    return (hour * 60 + (-minute if zone[0] == "-" else minute)) * 60


def _parse_go_integer(text: str) -> int:
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text, re.ASCII):
        return int(text)
    raise EvalError(f'strconv.Atoi: parsing "{text}": invalid syntax')


def _find_named_zone_offset(name: str, seconds: int) -> int:
    if name == "Local":
        return 0
    if ".." in name or name[0] in "/\\":
        raise EvalError("time: invalid location name")
    moment = datetime.fromtimestamp(0, UTC)
    # The first and last day are clamped: datetime can't leave the years 1 to 9999 in either direction.
    moment += timedelta(seconds=min(max(seconds, MIN_UNIX + 86400), MAX_UNIX - 86400))
    offset = moment.astimezone(_load_time_zone(name)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


@lru_cache(maxsize=64)
def _load_time_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise EvalError(f"unknown time zone {name}") from problem


def _convert_seconds_to_civil(seconds: int) -> Civil:
    days, rest = divmod(seconds, 86400)
    # The calendar repeats every 400 years, which also gives the day before year 1 and the day after 9999.
    cycles, within = divmod(days + 719162, 146097)
    day = date.fromordinal(within + 1)
    hour, minute = rest // 3600, rest % 3600 // 60
    weekday = (days + 4) % 7
    yearday = day.toordinal() - date(day.year, 1, 1).toordinal() + 1
    return Civil(day.year + 400 * cycles, day.month, day.day, hour, minute, rest % 60, weekday, yearday)


def _count_days_since_epoch(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01."""
    cycles, within = divmod(year - 1, 400)
    return date(within + 1, month, day).toordinal() + cycles * 146097 - 719163


def _count_days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
