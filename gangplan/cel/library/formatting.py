"""`text.format(arguments)` of cel-go's strings extension version 2, in the locale en_US.

Its quirks are kept (cel-go v0.26 `ext/formatting.go`): `%f` groups thousands (`1,234.500000`), `%e` prints
`1.234500×10⁰³` and takes its precision for a width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from gangplan.cel import types
from gangplan.cel.clock import write_duration, write_timestamp
from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import Implementation, S
from gangplan.cel.numbers import go_quote, go_quote_bytes, shortest
from gangplan.cel.values import Duration, Timestamp, TypeValue, Uint, kind

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_DEFAULT_PRECISION = 6

Clause = Callable[[object], str]


def format_text(template: str, arguments: list[object]) -> str:
    """Return the template with its clauses (`%s %d %f %e %b %x %X %o %%`) replaced."""
    built: list[str] = []
    at, used = 0, 0
    while at < len(template):
        if template[at] != "%":
            built.append(template[at])
            at += 1
        elif template[at + 1 : at + 2] == "%":
            built.append("%")
            at += 2
        else:
            if used >= len(arguments):
                raise EvalError(f"index {used} out of range")
            if at + 1 >= len(template):
                raise EvalError("unexpected end of string")
            at, clause = _clause(template, at + 1)
            built.append(_apply(clause, arguments[used]))
            used += 1
    return "".join(built)


def _apply(clause: Clause, argument: object) -> str:
    try:
        return clause(argument)
    except EvalError as problem:
        raise EvalError(f"error during formatting: {problem}") from problem


def _clause(template: str, at: int) -> tuple[int, Clause]:
    """Return the position after the clause that begins at `at`, and its function."""
    try:
        at, precision = _precision(template, at)
    except EvalError as problem:
        raise EvalError(f"could not parse formatting clause: {problem}") from problem
    letter = template[at]
    if letter == "f":
        return at + 1, lambda value: _fixed(value, precision)
    if letter == "e":
        return at + 1, lambda value: _scientific(value, precision)
    if letter in _CLAUSES:
        return at + 1, _CLAUSES[letter]
    # Go compares bytes.
    shown = chr(letter.encode()[0])
    raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{shown}"')


def _precision(template: str, at: int) -> tuple[int, int]:
    if template[at] != ".":
        return at, _DEFAULT_PRECISION
    end = at + 1
    while end < len(template) and template[end] in "0123456789":
        end += 1
    if end >= len(template):
        raise EvalError("error while parsing precision: could not find end of precision specifier")
    digits = template[at + 1 : end]
    if not digits or int(digits) >= 2**63:
        problem = "value out of range" if digits else "invalid syntax"
        raise EvalError(
            "error while parsing precision: error while converting precision to integer: "
            f'strconv.Atoi: parsing "{digits}": {problem}'
        )
    return end, int(digits)


# Clauses


def _string(value: object) -> str:
    if isinstance(value, list | tuple):
        return _list(value)
    if isinstance(value, Mapping):
        return _map(value)
    simple = _SIMPLE.get(type(value))
    if simple is None:
        raise EvalError(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
            f"durations, and timestamps, was given {kind(value)}"
        )
    return simple(value)


def _bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        text = "invalid UTF-8 in bytes, cannot convert to string"
        raise EvalError(f"could not convert argument {go_quote(text)} to string") from problem


_SIMPLE: dict[type, Callable[..., str]] = {
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(int(value)),
    float: shortest,
    bytes: _bytes,
    type(None): lambda value: "null",
    Timestamp: write_timestamp,
    Duration: write_duration,
    TypeValue: lambda value: value.type.name,
}


def _decimal(value: object) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    raise EvalError(f"decimal clause can only be used on integers, was given {kind(value)}")


def _double(value: object, name: str) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return float(value)
    if isinstance(value, float):
        # Zero is printed without its sign.
        return value or 0.0
    raise EvalError(f"{name} clause can only be used on doubles, was given {kind(value)}")


def _fixed(value: object, precision: int) -> str:
    number = _double(value, "fixed-point")
    return _not_finite(number) or f"{number:,.{precision}f}"


def _scientific(value: object, width: int) -> str:
    number = _double(value, "scientific")
    shown = _not_finite(number)
    if not shown:
        mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
        shown = f"{mantissa}×10{exponent.lstrip('+').translate(_SUPERSCRIPT)}"
    return shown.rjust(width)


def _not_finite(number: float) -> str:
    if number != number:
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return ""


def _binary(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return f"{int(value):b}"
    raise EvalError(f"only integers and bools can be formatted as binary, was given {kind(value)}")


def _octal(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise EvalError(f"octal clause can only be used on integers, was given {kind(value)}")


def _hex(value: object) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):x}"
    raise EvalError(
        f"only integers, byte buffers, and strings can be formatted as hex, was given {kind(value)}"
    )


_CLAUSES: dict[str, Clause] = {
    "s": _string,
    "d": _decimal,
    "b": _binary,
    "x": _hex,
    "X": lambda value: _hex(value).upper(),
    "o": _octal,
}


# Inside lists and maps


def _list(values: list[object] | tuple[object, ...]) -> str:
    return f"[{', '.join(map(_member, values))}]"


def _map(values: Mapping[object, object]) -> str:
    pairs = []
    for key, value in values.items():
        if type(key) not in (str, bool, int, Uint):
            raise EvalError(f"no formatting function for map key of type {kind(key)}")
        pairs.append((_member(key), _member(value)))
    pairs.sort(key=lambda pair: pair[0].encode())
    return "{" + ", ".join(f"{key}:{value}" for key, value in pairs) + "}"


def _member(value: object) -> str:
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bytes):
        _bytes(value)
        return f"b{go_quote_bytes(value)}"
    if isinstance(value, float):
        if value != value or math.isinf(value):
            return go_quote(shortest(value))
        return f"{value:.{_DEFAULT_PRECISION}f}"
    if isinstance(value, Timestamp):
        return f"timestamp({go_quote(write_timestamp(value))})"
    if isinstance(value, Duration):
        return f"duration({go_quote(write_duration(value))})"
    if not isinstance(value, list | tuple | Mapping) and type(value) not in _SIMPLE:
        raise EvalError(f"no formatting function for {kind(value)}")
    return _string(value)


TABLE = (Implementation("string_format", "format", (S, types.list_of(types.DYN)), format_text),)
