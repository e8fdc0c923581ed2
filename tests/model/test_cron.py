"""Cron expressions and their starts, compared with the library that the CronJob controller uses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.model.cron import CronError, find_next_cron_start, parse_cron
from tests.model import cron_answers


def ours(asked: dict[str, Any]) -> dict[str, Any]:
    """Return our answer to a question, in the form of the library's."""
    try:
        cron = parse_cron(asked["cron"])
    except CronError:
        return {"error": True}
    at, found = asked["after"], []
    while len(found) < asked["count"]:
        start = find_next_cron_start(cron, at, ZoneInfo(asked["zone"]))
        if start is None:
            break
        found.append(at := start)
    return {"starts": found}


def theirs(answer: dict[str, Any]) -> dict[str, Any]:
    return {"error": True} if "error" in answer else {"starts": answer["starts"]}


def differing(asked: list[dict[str, Any]], told: list[dict[str, Any]]) -> list[object]:
    pairs = ((one, ours(one), theirs(answer)) for one, answer in zip(asked, told, strict=True))
    # An interval that counts from the creation of the CronJob is refused on purpose.
    return [pair for pair in pairs if pair[1] != pair[2] and not pair[0]["cron"].startswith("@every")]


def test_starts_equal_the_recorded_answers_of_the_library() -> None:
    told = cron_answers.kept()
    assert len(told) > 5000
    assert sum("error" in one for one in told) > 1000
    assert {one["zone"] for one in told} == set(cron_answers.ZONES)
    assert differing(told, told) == []


@pytest.mark.e2e
def test_starts_equal_those_of_the_library(tmp_path: Path) -> None:
    if not cron_answers.can_ask():
        pytest.skip("needs Go, and robfig/cron in its module cache")
    asked = cron_answers.questions()[::7]
    assert differing(asked, cron_answers.ask(asked, tmp_path)) == []


# Expression, what the message says, what the help says.
REFUSED = {
    "TZ=Europe/Berlin 0 2 * * *": ("a time zone has a field of its own", "timeZone"),
    "CRON_TZ=UTC 0 2 * * *": ("a time zone has a field of its own", "timeZone"),
    "@every 6h": ("@every counts from when the schedule reached the cluster", "*/30"),
    "@nightly": ("'@nightly' is not a descriptor", "@daily"),
    "0 2 * *": ("five fields", "0 2 * * *"),
    "0 0 2 * * *": ("five fields", "0 2 * * *"),
    "0 2 * * 7": ("'7' is not a weekday from 0 to 6", "SUN"),
    "0 24 * * *": ("'24' is not an hour from 0 to 23", "Write a number from 0 to 23."),
    "0 22-6 * * *": ("'22-6' begins after its end", "two ranges"),
    "0 2 * * L": ("'L' in 'L' is neither a number nor a weekday", ""),
}


@pytest.mark.parametrize("text", REFUSED)
def test_each_invalid_expression_is_refused_with_a_help(text: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(text)
    message, help = REFUSED[text]
    assert message in str(caught.value)
    assert help in caught.value.help


def test_starts_at_clock_changes_are_those_of_the_library() -> None:
    """A start that the clock skips does not happen that day; one that it shows twice happens at both
    times, as in the library."""
    berlin = ZoneInfo("Europe/Berlin")
    half = parse_cron("30 2 * * *")
    spring = int(datetime(2026, 3, 28, 12, tzinfo=berlin).timestamp())
    first = find_next_cron_start(half, spring, berlin)
    assert first is not None
    assert datetime.fromtimestamp(first, berlin).isoformat() == "2026-03-30T02:30:00+02:00"
    autumn = int(datetime(2026, 10, 24, 12, tzinfo=berlin).timestamp())
    found = [find_next_cron_start(half, autumn, berlin)]
    found.append(find_next_cron_start(half, found[0] or 0, berlin))
    assert [datetime.fromtimestamp(one or 0, UTC).isoformat() for one in found] == [
        "2026-10-25T00:30:00+00:00",
        "2026-10-25T01:30:00+00:00",
    ]


FIELD = st.sampled_from(["*", "0", "*/7", "3-5", "1,4", "2/2"])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(FIELD, min_size=5, max_size=5),
    st.integers(1_200_000_000, 1_900_000_000),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/UTC"]),
)
def test_a_start_matches_and_is_later(fields: list[str], after: int, name: str) -> None:
    fields[2] = "*" if fields[2] == "0" else fields[2]
    fields[3] = "*" if fields[3] == "0" else fields[3]
    cron, zone = parse_cron(" ".join(fields)), ZoneInfo(name)
    start = find_next_cron_start(cron, after, zone)
    if start is None:
        return
    local = datetime.fromtimestamp(start, zone)
    assert start > after
    assert start % 60 == 0
    assert local.minute in cron.minutes
    assert local.hour in cron.hours
    assert local.month in cron.months
    assert cron.has_day(local)
    assert find_next_cron_start(cron, start - 1, zone) == start
