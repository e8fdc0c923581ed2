"""Strings: the functions of every CEL, and cel-go's extension version 2 (`format` is in formatting.py).

Positions count code points. Source: cel-go v0.26 `ext/strings.go`, `common/types/string.go`.
"""

from __future__ import annotations

from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import LIST_OF_STRINGS, I, Implementation, S
from gangplan.cel.operators import NO_OVERLOAD, format_cel_value

_UPPER = {ord(letter): letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}
_LOWER = {ord(upper): chr(lower) for lower, upper in _UPPER.items()}
# The characters that Go's strings.TrimSpace trims (unicode.IsSpace); Python's strip() removes more.
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_ESCAPES = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\"}
    | {'"': '\\"'}
)


def _require_string_argument(value: object) -> str:
    if type(value) is not str:
        raise EvalError(NO_OVERLOAD)
    return value


def starts_with(text: object, prefix: object) -> bool:
    """Evaluate `text.startsWith(prefix)`."""
    return _require_string_argument(text).startswith(_require_string_argument(prefix))


def ends_with(text: object, suffix: object) -> bool:
    """Evaluate `text.endsWith(suffix)`."""
    return _require_string_argument(text).endswith(_require_string_argument(suffix))


def contains(text: object, part: object) -> bool:
    """Evaluate `text.contains(part)`."""
    return _require_string_argument(part) in _require_string_argument(text)


def char_at(text: str, index: int) -> str:
    """Evaluate `text.charAt(index)`; the position after the last character gives the empty string."""
    if not 0 <= index <= len(text):
        raise EvalError(f"index out of range: {index}")
    return text[index : index + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Evaluate `text.indexOf(part, start)`: -1 if it is not found."""
    if not part:
        return start
    if start < 0:
        raise EvalError(f"index out of range: {start}")
    return text.find(part, start) if start < len(text) else -1


def last_index_of(text: str, part: str) -> int:
    """Evaluate `text.lastIndexOf(part)`."""
    if not part:
        return len(text)
    # cel-go compares the lengths in bytes, and refuses to search the empty string.
    if len(text.encode()) < len(part.encode()):
        return -1
    return last_index_from(text, part, len(text) - 1)


def last_index_from(text: str, part: str, start: int) -> int:
    """Evaluate `text.lastIndexOf(part, start)`: the last occurrence that begins at or before `start`."""
    if not part:
        return start
    if start < 0:
        raise EvalError(f"index out of range: {start}")
    if start >= len(text):
        return -1
    return text.rfind(part, 0, start + len(part))


def join(parts: list[object], separator: str = "") -> str:
    """Evaluate `parts.join(separator)`."""
    for part in parts:
        if type(part) is not str:
            raise EvalError(f"join: invalid input: {format_cel_value(part)}")
    return separator.join(parts)  # type: ignore[arg-type]


def lower_ascii(text: str) -> str:
    """Evaluate `text.lowerAscii()`."""
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    """Evaluate `text.upperAscii()`."""
    return text.translate(_UPPER)


def replace(text: str, old: str, new: str, times: int = -1) -> str:
    """Evaluate `text.replace(old, new, times)`; a negative number replaces all."""
    return text.replace(old, new, times if times >= 0 else -1)


def split(text: str, separator: str, most: int = -1) -> list[str]:
    """Evaluate `text.split(separator, most)`: at most so many parts; 0 gives none, a negative number all."""
    if most == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if most < 0 or most >= len(parts) else [*parts[: most - 1], "".join(parts[most - 1 :])]
    return text.split(separator, most - 1 if most > 0 else -1)


def substring(text: str, start: int) -> str:
    """Evaluate `text.substring(start)`."""
    if not 0 <= start <= len(text):
        raise EvalError(f"index out of range: {start}")
    return text[start:]


def substring_range(text: str, start: int, end: int) -> str:
    """Evaluate `text.substring(start, end)`."""
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise EvalError(f"index out of range: {index}")
    return text[start:end]


def trim(text: str) -> str:
    """Evaluate `text.trim()`."""
    return text.strip(_SPACE)


def quote(text: str) -> str:
    """Evaluate `strings.quote(text)`."""
    return f'"{text.translate(_ESCAPES)}"'


TABLE = (
    Implementation("starts_with_string", "startsWith", (S, S), starts_with, guarded=False),
    Implementation("ends_with_string", "endsWith", (S, S), ends_with, guarded=False),
    Implementation("contains_string", "contains", (S, S), contains, guarded=False),
    Implementation("string_char_at_int", "charAt", (S, I), char_at),
    Implementation("string_index_of_string", "indexOf", (S, S), index_of),
    Implementation("string_index_of_string_int", "indexOf", (S, S, I), index_of),
    Implementation("string_last_index_of_string", "lastIndexOf", (S, S), last_index_of),
    Implementation("string_last_index_of_string_int", "lastIndexOf", (S, S, I), last_index_from),
    Implementation("list_join", "join", (LIST_OF_STRINGS,), join),
    Implementation("list_join_string", "join", (LIST_OF_STRINGS, S), join),
    Implementation("string_lower_ascii", "lowerAscii", (S,), lower_ascii),
    Implementation("string_upper_ascii", "upperAscii", (S,), upper_ascii),
    Implementation("string_replace_string_string", "replace", (S, S, S), replace),
    Implementation("string_replace_string_string_int", "replace", (S, S, S, I), replace),
    Implementation("string_split_string", "split", (S, S), split),
    Implementation("string_split_string_int", "split", (S, S, I), split),
    Implementation("string_substring_int", "substring", (S, I), substring),
    Implementation("string_substring_int_int", "substring", (S, I, I), substring_range),
    Implementation("string_trim", "trim", (S,), trim),
    Implementation("strings_quote", "strings.quote", (S,), quote),
)
