"""Durations in specs: text such as `90m`, `24h` or `1h30m` from and to whole seconds."""

from __future__ import annotations

import re

from gangplan.model.units import AmountError, AmountProposal

_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
# Each unit at most once, larger units first, so that there is one obvious way to write every duration.
_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", re.ASCII)
# `activeDeadlineSeconds` and similar fields are int32 in several kinds of object.
MAX_S = 2**31 - 1
# The most characters of a text that a message shows; longer texts are never durations.
_SHOWN = 40

_WORDS = {
    word: letter
    for words, letter in (
        ("s sec secs second seconds", "s"),
        ("m min mins minute minutes", "m"),
        ("h hr hrs hour hours", "h"),
        ("d day days", "d"),
    )
    for word in words.split()
}
# Words that only proposals understand, with their days: how long data is kept is often said in years.
_DAYS = {
    word: days
    for words, days in (("w wk week weeks", 7), ("mo month months", 30), ("y yr yrs year years", 365))
    for word in words.split()
}
_PART = re.compile(r"([0-9]+)(\.[0-9]+)?\s*([A-Za-z]+)[\s,]*", re.ASCII)


class DurationError(AmountError):
    """The text is not a duration."""


def parse_duration_to_seconds(text: str | int, span: tuple[int, int] | None = None) -> int:
    """Parse a duration to whole seconds, more than zero. Raises `DurationError`.

    What is proposed for a number without a unit lies within `span`, in seconds.
    """
    shown = repr(text) if len(repr(text)) <= _SHOWN else repr(text)[:_SHOWN] + "..."
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise DurationError(f"{shown} is not a time", _GENERAL)
    written = str(text).strip()
    if len(written) > _SHOWN:
        raise DurationError(f"{shown} is not a time", _GENERAL)
    if re.fullmatch(r"[0-9]+", written, re.ASCII) and int(written):
        raise DurationError(f"{shown} has no unit", _GENERAL, _propose_duration_units(int(written), span))
    match = _DURATION.fullmatch("0s" if written and not written.strip("0") else written)
    if not match or not written or text != written:
        raise DurationError(f"{shown} is not a time", _GENERAL, _propose_parsed_duration(written))
    seconds = sum(int(part or 0) * size for part, size in zip(match.groups(), _SECONDS.values(), strict=True))
    if seconds <= 0:
        raise DurationError(f"{shown} is not a time: it is zero", _GENERAL)
    if seconds > MAX_S:
        raise DurationError(f"{shown} is longer than 68 years", "write a shorter time")
    return seconds


def format_duration(seconds: int) -> str:
    """Return the canonical text, which `parse_duration_to_seconds` reads back; in days if they are whole and
    two or more."""
    if seconds <= 0:
        raise ValueError(f"a duration is more than zero seconds, not {seconds}")
    days, rest = divmod(seconds, _SECONDS["d"])
    if days > 1 and not rest:
        return f"{days}d"
    parts = []
    for letter in "hms":
        count, seconds = divmod(seconds, _SECONDS[letter])
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts)


_GENERAL = "Write it as 30m, 24h, 7d or 1h30m."
# A number without a unit, up to this much -> the units that its writer may mean, likelier ones first.
_READINGS = ((7, "hd"), (9, "h"), (168, "hm"), (299, "m"), (999, "ms"), (MAX_S, "s"))
# Notations of Slurm and clocks (days-hours:minutes:seconds, minutes:seconds), and of ISO 8601.
_CLOCK = re.compile(r"(?:(?:([0-9]+)-)?([0-9]{1,3}):)?([0-9]{1,3}):([0-9]{2})", re.ASCII)
_ISO = re.compile(
    r"P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)W)?(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_ISO_SECONDS = (*(days * _SECONDS["d"] for days in (365, 30, 7)), *_SECONDS.values())


def _propose_duration_units(number: int, span: tuple[int, int] | None) -> list[AmountProposal]:
    """Return the plausible readings of a number without a unit; those in minutes or seconds also in larger
    units."""
    if not 0 < number <= MAX_S:
        return []
    letters = next(letters for most, letters in _READINGS if number <= most)
    if span is not None:
        fitting = [letter for letter in "hms" if span[0] <= number * _SECONDS[letter] <= span[1]]
        letters = "".join(fitting)
    proposals = []
    for letter in letters:
        plain, text = format_duration(number * _SECONDS[letter]), f"{number}{letter}"
        proposals.append((text, plain if letter in "sm" and plain != text else ""))
    return proposals


def _propose_parsed_duration(text: str) -> list[AmountProposal]:
    """Return the same time in the units of gangplan, if the text can be understood."""
    for pattern, sizes in ((_CLOCK, _ISO_SECONDS[3:]), (_ISO, _ISO_SECONDS)):
        if match := pattern.fullmatch(text):
            amounts = zip(match.groups(), sizes, strict=True)
            return _build_duration_proposal(sum(int(part or 0) * size for part, size in amounts))
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text):
        return []
    seconds = 0
    for whole, fraction, word in parts:
        days, letter = _DAYS.get(word.lower(), 0), _WORDS.get(word.lower(), "")
        unit = days * _SECONDS["d"] or _SECONDS.get(letter, 0)
        if not unit:
            return []
        seconds += int(whole) * unit + int(fraction[1:] or 0) * unit // 10 ** max(len(fraction) - 1, 0)
    return _build_duration_proposal(seconds)


def _build_duration_proposal(seconds: int) -> list[AmountProposal]:
    return [(format_duration(seconds), "")] if 0 < seconds <= MAX_S else []
