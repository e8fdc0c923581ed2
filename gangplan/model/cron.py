"""The starts of a schedule: cron expressions as the CronJob controller reads them.

Written after robfig/cron v3.0.1 (parser.go and spec.go), which Kubernetes uses (v1.34,
pkg/controller/cronjob); `tests/model/answers_cron.json.gz` contains its answers. Times are whole seconds
since 1970. Days, times and clock changes are those of the time zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from gangplan.records import dataclass

MINUTE, HOUR, DAY = 60, 3600, 86400
# The limit of the library: an expression that matches no day within five years starts nothing.
_YEARS = 5
_NAMES = {
    "month": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    "weekday": ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
}
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# Fields in their order, with the smallest and the largest number.
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
_NUMBER = re.compile(r"\+?[0-9]+")


class CronError(ValueError):
    """An expression that the controller does not accept; `help` says what to write instead."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


@dataclass(frozen=True, slots=True)
class Cron:
    """The minutes, hours, days, months and weekdays (0 is Sunday) of an expression.

    `is_either`: days and weekdays are both listed, and a day needs to match only one of them.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either: bool

    def has_day(self, at: datetime) -> bool:
        """Return whether the schedule may start on a day, regardless of the month."""
        by_day, by_weekday = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self.is_either else by_day and by_weekday


def parse_cron(text: str) -> Cron:
    """Parse an expression of five fields, or a descriptor such as @daily. Raises CronError.

    `TZ=` is refused as the API server refuses it. `@every` counts from the moment when the CronJob was
    created, so it is refused because its starts cannot be known from Git.
    """
    if "TZ" in text:
        raise CronError("a time zone has a field of its own", "Write timeZone: Europe/Berlin next to cron.")
    if text.startswith("@every"):
        message = "@every counts from when the schedule reached the cluster, which Git does not know"
        raise CronError(message, "Write the minutes and hours: '*/30 * * * *' starts each half hour.")
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise CronError(f"'{text}' is not a descriptor", f"Known: {', '.join(_DESCRIPTORS)}.")
    words = _DESCRIPTORS.get(text, text).split()
    if len(words) != len(_FIELDS):
        message = f"cron has five fields (minute hour day month weekday), and this has {len(words)}"
        raise CronError(message, "Write for example '0 2 * * *' for two o'clock every night.")
    found, stars = [], []
    for word, (name, least, most) in zip(words, _FIELDS, strict=True):
        numbers, is_star = _parse_cron_field(word, name, least, most)
        found.append(numbers)
        stars.append(is_star)
    minutes, hours, days, months, weekdays = found
    return Cron(minutes, hours, days, months, weekdays, not (stars[2] or stars[4]))


def _parse_cron_field(word: str, name: str, least: int, most: int) -> tuple[frozenset[int], bool]:
    """Return the numbers of a field, and whether it is unrestricted (a star without a step)."""
    numbers: set[int] = set()
    is_star = False
    for part in filter(None, word.split(",")):
        some, star = _parse_cron_range(part, name, least, most)
        numbers.update(some)
        is_star |= star
    return frozenset(numbers), is_star


def _parse_cron_range(part: str, name: str, least: int, most: int) -> tuple[range, bool]:
    span, *steps = part.split("/")
    ends = span.split("-")
    is_star = ends[0] in ("*", "?")
    if is_star:
        first, last = least, most
    elif len(ends) > 2:
        raise CronError(f"'{part}' has too many hyphens")
    else:
        first = _parse_cron_number(ends[0], name, part)
        last = _parse_cron_number(ends[1], name, part) if len(ends) == 2 else first
    if len(steps) > 1:
        raise CronError(f"'{part}' has too many slashes")
    step = _parse_cron_number(steps[0], "", part) if steps else 1
    if steps and len(ends) == 1:
        last = most  # N/STEP is N-MOST/STEP
    if first < least or last > most:
        is_sunday = name == "weekday" and 7 in (first, last)
        help = "Write 0 or SUN for Sunday." if is_sunday else f"Write a number from {least} to {most}."
        article = "an" if name == "hour" else "a"
        raise CronError(f"'{part}' is not {article} {name} from {least} to {most}", help)
    if first > last:
        raise CronError(f"'{part}' begins after its end", "Write two ranges with a comma.")
    if step == 0:
        raise CronError(f"'{part}' has a step of 0")
    return range(first, last + 1, step), is_star and step == 1


def _parse_cron_number(word: str, name: str, part: str) -> int:
    names = _NAMES.get(name, [])
    if word.lower() in names:
        return names.index(word.lower()) + (1 if name == "month" else 0)
    if not _NUMBER.fullmatch(word):
        raise CronError(
            f"'{word}' in '{part}' is " + (f"neither a number nor a {name}" if names else "not a number")
        )
    return int(word)


def find_next_cron_start(cron: Cron, after: int, zone: tzinfo = UTC) -> int | None:
    """Return the first start after a time; None if there is no start within five years.

    The steps are those of SpecSchedule.Next, because its behaviour around clock changes depends on them.
    """
    if not (cron.minutes and cron.hours and cron.months):  # a field that contains only commas
        return None
    clock = _Clock(zone)
    at, is_set = after + 1, False
    limit = clock.local(at).year + _YEARS
    while clock.local(at).year <= limit:
        found, at, is_set = _advance_to_cron_match(cron, clock, at, is_set)
        if found:
            return at
    return None


def iterate_cron_starts(cron: Cron, after: int, zone: tzinfo = UTC) -> Iterator[int]:
    """Yield all starts after a time, in order."""
    at = find_next_cron_start(cron, after, zone)
    while at is not None:
        yield at
        at = find_next_cron_start(cron, at, zone)


def _advance_to_cron_match(cron: Cron, clock: _Clock, at: int, is_set: bool) -> tuple[bool, int, bool]:
    """Advance to the next match, or to where a larger field must be checked again."""
    while (now := clock.local(at)).month not in cron.months:
        if not is_set:
            now, is_set = clock.local(clock.unix(now.year, now.month, 1, 0)), True
        at = clock.unix(now.year, now.month + 1, now.day, _count_seconds_of_day(now))
        if clock.local(at).month == 1:
            return False, at, True
    while not cron.has_day(now := clock.local(at)):
        if not is_set:
            at, is_set = clock.unix(now.year, now.month, now.day, 0), True
            now = clock.local(at)
        there = clock.unix(now.year, now.month, now.day + 1, _count_seconds_of_day(now))
        at = there if there > at else at + DAY  # a day that the calendar of the zone leaves out
        hour = clock.local(at).hour
        if hour:  # midnight does not exist, or exists twice
            at += (24 - hour) * HOUR if hour > 12 else -hour * HOUR
        if clock.local(at).day == 1:
            return False, at, True
    while (now := clock.local(at)).hour not in cron.hours:
        if not is_set:
            at, is_set = clock.unix(now.year, now.month, now.day, now.hour * HOUR), True
        at += HOUR
        if clock.local(at).hour == 0:
            return False, at, True
    while (now := clock.local(at)).minute not in cron.minutes:
        at, is_set = at + MINUTE - (0 if is_set else at % MINUTE), True
        if clock.local(at).minute == 0:
            return False, at, True
    if seconds := clock.local(at).second:
        return False, at + MINUTE - seconds, True
    return True, at, is_set


def _count_seconds_of_day(at: datetime) -> int:
    return at.hour * HOUR + at.minute * MINUTE + at.second


class _Clock:
    """Local times of a zone, as Go computes them (time.Date, time.Time.In)."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def local(self, unix: int) -> datetime:
        """Return the local time at a timestamp."""
        return datetime.fromtimestamp(unix, self._zone)

    def unix(self, year: int, month: int, day: int, seconds: int) -> int:
        """Return the timestamp of a local time; if that time never occurs or occurs twice, Go's choice."""
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        naive = datetime(year, month, 1, tzinfo=UTC) + timedelta(days=day - 1, seconds=seconds)
        unix = int(naive.timestamp())
        offset = self._offset(unix)
        return unix - self._offset(unix - offset) if offset else unix

    def _offset(self, unix: int) -> int:
        shift = self.local(unix).utcoffset()
        return int(shift.total_seconds()) if shift else 0
