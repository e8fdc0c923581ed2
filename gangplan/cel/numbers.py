"""Parse and format numbers as Go does (strconv, fmt; Go 1.24)."""

from __future__ import annotations

import math
import re
from decimal import Decimal

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_SIGNED = re.compile(r"[-+]?[0-9]+", re.ASCII)
_UNSIGNED = re.compile(r"[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[-+]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)  # fmt: skip  # noqa: E501
_HEX = re.compile(r"[-+]?0[xX]_?(?:[0-9a-fA-F_]+\.?[0-9a-fA-F_]*|\.[0-9a-fA-F_]+)[pP][-+]?[0-9]+", re.ASCII)
_SPECIAL = re.compile(r"nan|[-+]?inf(?:inity)?", re.ASCII | re.IGNORECASE)


def parse_bool(text: str) -> bool | None:
    """Parse as `strconv.ParseBool` does; return None where that fails."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def parse_cel_int(text: str) -> int | None:
    """Parse as `strconv.ParseInt` does, in base 10 with 64 bits; return None where that fails."""
    if not _SIGNED.fullmatch(text) or len(text) > 4000:
        return None
    value = int(text)
    return value if INT_MIN <= value <= INT_MAX else None


def parse_cel_uint(text: str) -> int | None:
    """Parse as `strconv.ParseUint` does, in base 10 with 64 bits; return None where that fails."""
    if not _UNSIGNED.fullmatch(text) or len(text) > 4000:
        return None
    value = int(text)
    return value if value <= UINT_MAX else None


def parse_cel_double(text: str) -> float | None:
    """Parse as `strconv.ParseFloat` does with 64 bits; return None where that fails, also out of range."""
    if _SPECIAL.fullmatch(text):
        return float(text)
    if _HEX.fullmatch(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except OverflowError:
            return None
    if not _DECIMAL.fullmatch(text):
        return None
    value = float(text.replace("_", ""))
    return None if math.isinf(value) else value


def format_shortest_cel_double(value: float) -> str:
    """Format a float64 as `%g` and `%v` do: the fewest digits that parse back, with an exponent below 1e-4
    and from 1e6."""
    special = _format_non_finite_cel_double(value)
    if special:
        return special
    digits, point, sign = _split_shortest_digits(value)
    exponent = point - 1
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _format_positional_number(digits, point)


def format_plain_cel_double(value: float) -> str:
    """Format as `strconv.FormatFloat(value, 'f', -1, 64)` does: the fewest digits that parse back, never an
    exponent."""
    special = _format_non_finite_cel_double(value)
    if special:
        return special
    digits, point, sign = _split_shortest_digits(value)
    return sign + _format_positional_number(digits, point)


def _format_non_finite_cel_double(value: float) -> str:
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return ""


def _split_shortest_digits(value: float) -> tuple[str, int, str]:
    """Return the shortest digits, the position of the point among them, and the sign."""
    parts = Decimal(repr(value)).as_tuple()
    written = "".join(map(str, parts.digits))
    assert isinstance(parts.exponent, int)
    point = len(written) + parts.exponent
    digits = written.rstrip("0") or "0"
    return digits, 1 if digits == "0" else point, "-" if parts.sign else ""


def _format_positional_number(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits if digits != "0" else "0"
    if len(digits) <= point:
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


# The characters that `strconv.Quote` escapes with a letter or sign.
_SHORT = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 34: '\\"', 92: "\\\\"}


def quote_as_go(text: str) -> str:
    """Quote as `strconv.Quote` and `%q` do: double quotes, with escapes for anything not printable."""
    return '"' + "".join(map(_escape_go_character, text)) + '"'


def quote_bytes_as_go(data: bytes) -> str:
    """Quote bytes as `%q` does; they need not be UTF-8."""
    return quote_as_go(data.decode(errors="surrogateescape"))


def _escape_go_character(letter: str) -> str:
    code = ord(letter)
    if code in _SHORT:
        return _SHORT[code]
    if letter.isprintable():
        return letter
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
