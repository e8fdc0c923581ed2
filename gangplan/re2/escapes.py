"""The small parts of RE2's syntax: escapes and the counts of repetitions (Go 1.24 `regexp/syntax`)."""

from __future__ import annotations

ALPHANUMERIC = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_HEX = frozenset("0123456789abcdefABCDEF")
_OCTAL = frozenset("01234567")
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PatternError(ValueError):
    """Go would refuse the pattern; the message is Go's."""


def build_pattern_error(code: str, expression: str) -> PatternError:
    """Return Go's error for an invalid pattern."""
    return PatternError(f"error parsing regexp: {code}: `{expression}`")


def read_re2_repeat_counts(text: str, at: int) -> tuple[int, int, int] | None:
    """Read the bounds in braces (-1: no upper bound) and their end; None if the brace is a literal."""
    low, at = _read_re2_repeat_count(text, at + 1)
    high = low
    if low is not None and text[at : at + 1] == ",":
        at += 1
        high, at = (-1, at) if text[at : at + 1] == "}" else _read_re2_repeat_count(text, at)
    if low is None or high is None or text[at : at + 1] != "}":
        return None
    return low, high, at + 1


def _read_re2_repeat_count(text: str, at: int) -> tuple[int | None, int]:
    end = at
    while end < len(text) and text[end] in "0123456789":
        end += 1
    if end == at or (end - at > 1 and text[at] == "0"):
        return None, at
    return min(int(text[at : min(end, at + 12)]), 10**9), end


def read_re2_escape(pattern: str, start: int) -> tuple[str, int]:
    """Read the character of an escape and its end. Raises `PatternError`."""
    at = start + 1
    if at >= len(pattern):
        raise build_pattern_error("trailing backslash at end of expression", "")
    letter = pattern[at]
    at += 1
    if letter in _CONTROLS:
        return _CONTROLS[letter], at
    if letter in _OCTAL and (letter == "0" or pattern[at : at + 1] in tuple(_OCTAL)):
        end = at
        while end < at + 2 and pattern[end : end + 1] in tuple(_OCTAL):
            end += 1
        return chr(int(pattern[at - 1 : end], 8)), end
    if letter == "x":
        return _read_re2_hex_escape(pattern, start)
    if letter not in ALPHANUMERIC and ord(letter) < 0x80:
        return letter, at
    raise build_pattern_error("invalid escape sequence", pattern[start:at])


def _read_re2_hex_escape(pattern: str, start: int) -> tuple[str, int]:
    at = start + 2
    if pattern[at : at + 1] != "{":
        digits = pattern[at : at + 2]
        if len(digits) == 2 and set(digits) <= _HEX:
            return chr(int(digits, 16)), at + 2
        raise build_pattern_error("invalid escape sequence", pattern[start : at + 2])
    value, end = 0, at + 1
    while end < len(pattern) and pattern[end] in _HEX and value <= 0x10FFFF:
        value = value * 16 + int(pattern[end], 16)
        end += 1
        if value > 0x10FFFF:
            raise build_pattern_error("invalid escape sequence", pattern[start:end])
    if pattern[end : end + 1] == "}" and end > at + 1:
        return chr(value), end + 1
    raise build_pattern_error("invalid escape sequence", pattern[start : end + 1])
