"""The parts of timestamps and durations (cel-go v0.26 `common/stdlib`; the default zone is UTC)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gangplan.cel import types
from gangplan.cel.clock import Civil, convert_to_civil, count_hours, count_minutes, count_seconds
from gangplan.cel.library.base import Implementation, S
from gangplan.cel.values import Duration, Timestamp

_PARTS: dict[str, tuple[str, Callable[[Civil], int]]] = {
    "getFullYear": ("year", lambda civil: civil.year),
    "getMonth": ("month", lambda civil: civil.month - 1),
    "getDayOfYear": ("day_of_year", lambda civil: civil.yearday - 1),
    "getDayOfMonth": ("day_of_month", lambda civil: civil.day - 1),
    "getDate": ("day_of_month_1_based", lambda civil: civil.day),
    "getDayOfWeek": ("day_of_week", lambda civil: civil.weekday),
    "getHours": ("hours", lambda civil: civil.hour),
    "getMinutes": ("minutes", lambda civil: civil.minute),
    "getSeconds": ("seconds", lambda civil: civil.second),
}


def _build_timestamp_getter(part: Callable[[Civil], int]) -> Callable[..., int]:
    def get(timestamp: Timestamp, zone: str = "UTC") -> int:
        return part(convert_to_civil(timestamp, zone))

    return get


def milliseconds_of_timestamp(timestamp: Timestamp, zone: str = "UTC") -> int:
    """Evaluate `timestamp.getMilliseconds()`; the zone is looked up as for any part."""
    convert_to_civil(timestamp, zone)
    return timestamp.nanoseconds % 10**9 // 10**6


def milliseconds_of_duration(duration: Duration) -> int:
    """Evaluate `duration.getMilliseconds()`: the whole duration, rounded towards zero."""
    return int(abs(duration.nanoseconds) // 10**6) * (-1 if duration.nanoseconds < 0 else 1)


def _list_cel_timestamp_overloads() -> Iterator[Implementation]:
    for function, (name, part) in _PARTS.items():
        zoned = "timestamp_to_seconds_tz" if name == "seconds" else f"timestamp_to_{name}_with_tz"
        yield Implementation(
            f"timestamp_to_{name}", function, (types.TIMESTAMP,), _build_timestamp_getter(part)
        )
        yield Implementation(zoned, function, (types.TIMESTAMP, S), _build_timestamp_getter(part))


_TIMESTAMP, _DURATION = (types.TIMESTAMP,), (types.DURATION,)
_MILLISECONDS = "getMilliseconds"
TABLE = (
    *_list_cel_timestamp_overloads(),
    Implementation("timestamp_to_milliseconds", _MILLISECONDS, _TIMESTAMP, milliseconds_of_timestamp),
    Implementation(
        "timestamp_to_milliseconds_with_tz", _MILLISECONDS, (*_TIMESTAMP, S), milliseconds_of_timestamp
    ),
    Implementation("duration_to_hours", "getHours", _DURATION, lambda duration: int(count_hours(duration))),
    Implementation(
        "duration_to_minutes", "getMinutes", _DURATION, lambda duration: int(count_minutes(duration))
    ),
    Implementation(
        "duration_to_seconds", "getSeconds", _DURATION, lambda duration: int(count_seconds(duration))
    ),
    Implementation("duration_to_milliseconds", _MILLISECONDS, _DURATION, milliseconds_of_duration),
)
