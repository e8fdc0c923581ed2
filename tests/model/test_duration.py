"""Durations: one text for each, and a hint for every other way to write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.model.duration import MAX_S, DurationError, format_duration, parse_duration_to_seconds

# text: seconds, canonical text
DURATIONS = {
    "45s": (45, "45s"), "30m": (1800, "30m"), "90m": (5400, "1h30m"), "4h": (14400, "4h"),
    "24h": (86400, "24h"), "1d": (86400, "24h"), "36h": (129600, "36h"), "1d12h": (129600, "36h"),
    "48h": (172800, "2d"), "72h": (259200, "3d"), "7d": (604800, "7d"), "168h": (604800, "7d"),
    "1h30m": (5400, "1h30m"), "1h0m5s": (3605, "1h5s"), "2d1h": (176400, "49h"), "007d": (604800, "7d"),
    "3600s": (3600, "1h"),
}  # fmt: skip

REFUSED: list[tuple[Any, str, str]] = [
    (24, "24 has no unit", "Did you mean 24h or 24m?"),
    ("90", "'90' has no unit", "Did you mean 90h or 90m (1h30m)?"),
    ("1.5h", "not a time", "Did you mean 1h30m?"),
    ("0.5d", "not a time", "Did you mean 12h?"),
    ("2 weeks", "not a time", "Did you mean 14d?"),
    ("1y", "not a time", "Did you mean 365d?"),
    ("7y", "not a time", "Did you mean 2555d?"),
    ("6 months", "not a time", "Did you mean 180d?"),
    ("P7Y", "not a time", "Did you mean 2555d?"),
    ("P1Y6M", "not a time", "Did you mean 545d?"),
    ("1w", "not a time", "Did you mean 7d?"),
    ("1 day", "not a time", "Did you mean 24h?"),
    ("1 hour, 30 minutes", "not a time", "Did you mean 1h30m?"),
    ("30m1h", "not a time", "Did you mean 1h30m?"),
    ("1h30m30m", "not a time", "Did you mean 2h?"),
    ("24H", "not a time", "Did you mean 24h?"),
    (" 24h", "not a time", "Did you mean 24h?"),
    ("1h 30m", "not a time", "Did you mean 1h30m?"),
    ("1:30:00", "not a time", "Did you mean 1h30m?"),
    ("-1h", "not a time", "Write it as"),
    ("", "not a time", "Write it as"),
    ("forever", "not a time", "Write it as"),
    (True, "not a time", "Write it as"),
    (1.5, "not a time", "Write it as"),
    (None, "not a time", "Write it as"),
    ("\u0663h", "not a time", "Write it as"),
    ("0h", "is not a time: it is zero", "Write it as"),
    ("69y", "not a time", "Write it as"),
    ("99999d", "longer than 68 years", "shorter"),
    ("9" * 30 + "h", "longer than 68 years", "shorter"),
    ("9" * 5000 + "h", "not a time", "Write it as"),
    ("9" * 5000, "not a time", "Write it as"),
]


@pytest.mark.parametrize("text", DURATIONS)
def test_each_duration_is_read_and_written_canonically(text: str) -> None:
    seconds, canonical = DURATIONS[text]
    assert parse_duration_to_seconds(text) == seconds
    assert format_duration(seconds) == canonical


@pytest.mark.parametrize(("written", "message", "help"), REFUSED)
def test_invalid_durations_are_refused(written: Any, message: str, help: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration_to_seconds(written)
    assert message in caught.value.message
    assert help in caught.value.help
    assert len(caught.value.message) < 100


@given(st.integers(1, MAX_S))
def test_every_duration_has_one_text(seconds: int) -> None:
    text = format_duration(seconds)
    assert parse_duration_to_seconds(text) == seconds
    assert format_duration(parse_duration_to_seconds(text)) == text


@given(st.text(alphabet="0123456789dhms .,wy", max_size=14))
def test_any_text_is_parsed_or_explained(text: str) -> None:
    try:
        seconds, help = parse_duration_to_seconds(text), "none needed"
    except DurationError as problem:
        seconds, help = 1, problem.help
    assert 0 < seconds <= MAX_S
    assert help


def test_zero_seconds_cannot_be_formatted() -> None:
    with pytest.raises(ValueError, match="more than zero"):
        format_duration(0)
