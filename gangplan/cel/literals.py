"""Convert tokens of constants to values (cel-go v0.26.0: parser/unescape.go, literals of
parser/parser.go)."""

from __future__ import annotations

import math
from collections.abc import Callable

from gangplan.cel.values import Uint

_SHORT = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}


class LiteralError(ValueError):
    """The token is not a constant: a number out of range, or an invalid escape."""


def integer(word: str) -> int:
    """Parse a signed 64-bit integer: `12`, `-0x1F`."""
    sign, digits = (-1, word[1:]) if word.startswith("-") else (1, word)
    value = sign * _parse_integer_digits(digits)
    if not -(2**63) <= value < 2**63:
        raise LiteralError("invalid int literal")
    return value


def unsigned(word: str) -> Uint:
    """Parse an unsigned 64-bit integer: `12u`, `0x1Fu`."""
    value = _parse_integer_digits(word[:-1])
    if value >= 2**64:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def _parse_integer_digits(digits: str) -> int:
    """Parse digits; Python's int() alone refuses more than 4300."""
    if digits.startswith("0x"):
        return int(digits[2:], 16)
    return int(digits) if len(digits) < 4000 else 2**64


def floating(word: str) -> float:
    """Parse a finite double: `1.5`, `-1e3`."""
    value = float(word)
    if math.isinf(value):
        raise LiteralError("invalid double literal")
    return value


def parse_cel_string(word: str) -> str:
    """Parse a string in any of its eight quotings."""
    body, is_raw = _strip_cel_literal_quotes(word)
    return (
        body
        if is_raw or "\\" not in body
        else "".join(chr(code) for code, _ in _unescape_cel_literal(body, False))
    )


def parse_cel_bytes_literal(word: str) -> bytes:
    """Parse a bytes constant with its `b`: octal and hex escapes are bytes, other characters are encoded in
    UTF-8."""
    body, is_raw = _strip_cel_literal_quotes(word[1:])
    if is_raw or "\\" not in body:
        return body.encode()
    parts = (
        bytes((code,)) if is_byte else chr(code).encode()
        for code, is_byte in _unescape_cel_literal(body, True)
    )
    return b"".join(parts)


def _strip_cel_literal_quotes(word: str) -> tuple[str, bool]:
    """Return the text between the quotes, with line ends as newlines, and whether backslashes are literal."""
    word = word.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = word[0] in "rR"
    if is_raw:
        word = word[1:]
    quotes = 3 if len(word) >= 6 and word[:3] in ('"""', "'''") else 1
    return word[quotes:-quotes], is_raw


def _unescape_cel_literal(body: str, is_bytes: bool) -> list[tuple[int, bool]]:
    """Return code points, each with whether it is a single byte."""
    found = []
    at = 0
    while at < len(body):
        if body[at] != "\\":
            found.append((ord(body[at]), False))
            at += 1
            continue
        letter = body[at + 1]
        if letter in _SHORT:
            found.append((ord(_SHORT[letter]), False))
            at += 2
            continue
        if is_bytes and letter in "uU":
            raise LiteralError("unable to unescape string")
        start, count, base = (at + 2, _DIGITS[letter], 16) if letter in _DIGITS else (at + 1, 3, 8)
        code = int(body[start : start + count], base)
        if not is_bytes and (code > 0x10FFFF or 0xD800 <= code <= 0xDFFF):
            raise LiteralError("invalid unicode code point")
        found.append((code, is_bytes))
        at = start + count
    return found


# The readers of tokens by kind, and the words that are constants.
LITERAL_READERS: dict[str, Callable[[str], object]] = {
    "NUM_INT": integer,
    "NUM_UINT": unsigned,
    "NUM_FLOAT": floating,
    "STRING": parse_cel_string,
    "BYTES": parse_cel_bytes_literal,
}
LITERAL_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
