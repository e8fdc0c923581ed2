"""Reading plain YAML scalars into Python values, exactly as `sigs.k8s.io/yaml` reads them for Kubernetes.

That reader uses YAML 1.1 without sexagesimal numbers and dates: `y` is true, `1e3` and `0o10` are numbers,
`1:30` and `2026-01-01` are strings. Its value then passes through JSON, so `1.0` becomes the integer 1.
"""

from __future__ import annotations

import re
from decimal import Decimal

Scalar = str | int | float | bool | None

_TRUE = "y Y yes Yes YES true True TRUE on On ON"
_FALSE = "n N no No NO false False FALSE off Off OFF"
_NULL = "~ null Null NULL"
# Numbers that JSON cannot represent, so that Kubernetes refuses the document.
_NOT_FINITE = frozenset(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")) | {
    ".nan",
    ".NaN",
    ".NAN",
}

SCALAR_WORDS: dict[str, bool | None] = {
    "": None,
    **dict.fromkeys(_NULL.split()),
    **dict.fromkeys(_TRUE.split(), True),
    **dict.fromkeys(_FALSE.split(), False),
}

# Only a scalar that starts with one of these can be anything but a string.
_HINTS = frozenset("yYnNtTfFoO~+-.0123456789")
_NUMBER_HINTS = frozenset("+-.0123456789")

_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# Underscores are dropped anywhere after a sign or a digit; after a leading dot they must be between digits.
_DOT_FLOAT = re.compile(r"\.[0-9](?:_?[0-9])*(?:[eE][-+]?[0-9](?:_?[0-9])*)?", re.ASCII)
_INT64_MIN, _INT64_MAX, _UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1
# Up to here every integral float is exactly the integer in its shortest decimal text.
_EXACT_FLOAT = 2**53


class NotFiniteError(ValueError):
    """The scalar is an infinity or not a number; JSON and Kubernetes support neither."""


def parse_plain_yaml_scalar(text: str) -> Scalar:
    """Return the value of a scalar written without quotes. Raises `NotFiniteError`."""
    if not text:
        return None
    first = text[0]
    if first not in _HINTS:
        return text
    if text in SCALAR_WORDS:
        return SCALAR_WORDS[text]
    if first not in _NUMBER_HINTS:
        return text
    number = _parse_yaml_number(text)
    return text if number is None else number[1]


def parse_tagged_yaml_scalar(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with a core tag such as `!!int`.

    Raises `NotFiniteError`, and another `ValueError` if the text does not fit the tag.
    """
    kind = tag.removeprefix("tag:yaml.org,2002:")
    if kind == "str":
        return text
    if text in SCALAR_WORDS:
        value = SCALAR_WORDS[text]
        if kind == ("null" if value is None else "bool"):
            return value
    elif kind in ("int", "float"):
        number = _parse_yaml_number(text)
        if number is not None and (number[0] or kind == "float"):
            return number[1]
    raise ValueError(f"{text!r} is not a {tag.replace('tag:yaml.org,2002:', '!!')}")


def _parse_yaml_number(text: str) -> tuple[bool, int | float] | None:
    """Return whether it is written as an integer, and its value; None if Kubernetes reads a string."""
    if text[0] == ".":
        if text in _NOT_FINITE:
            raise NotFiniteError(text)
        return _convert_yaml_float_to_json(text) if _DOT_FLOAT.fullmatch(text) else None
    if text in _NOT_FINITE:
        raise NotFiniteError(text)
    digits = text.replace("_", "") if "_" in text else text
    if match := _INTEGER.fullmatch(digits):
        integer = _convert_yaml_integer(match)
        if _INT64_MIN <= integer <= (_INT64_MAX if match[1] else _UINT64_MAX):
            return True, integer
    return _convert_yaml_float_to_json(digits) if _FLOAT.fullmatch(digits) else None


def _convert_yaml_integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    # A text of more digits than any 64-bit number must not take quadratic time (or exceed the limit of
    # int()).
    for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)):
        if digits:
            digits = digits.lstrip("0") or "0"
            magnitude = int(digits, base) if len(digits) <= 64 else _UINT64_MAX + 1
            return -magnitude if sign == "-" else magnitude
    return 0


def _convert_yaml_float_to_json(text: str) -> tuple[bool, int | float] | None:
    """Return a decimal float after its conversion to JSON, where an integral one of 64 bits is an integer."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return None  # out of range for Go's ParseFloat, so it remains a string
    if not value.is_integer():
        return False, value
    if abs(value) <= _EXACT_FLOAT:
        return False, int(value)
    # JSON contains the shortest text of the float (1234567890123456800), not its exact value.
    integer = int(Decimal(repr(value)))
    return False, integer if _INT64_MIN <= integer <= _UINT64_MAX else value
