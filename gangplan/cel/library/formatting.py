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
from gangplan.cel.numbers import format_shortest_cel_double, quote_as_go, quote_bytes_as_go
from gangplan.cel.values import Duration, Timestamp, TypeValue, Uint, runtime_kind_of

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_DEFAULT_PRECISION = 6

Clause = Callable[[object], str]


def format_cel_string(template: str, arguments: list[object]) -> str:
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
            at, clause = _parse_format_clause(template, at + 1)
            built.append(_apply_format_clause(clause, arguments[used]))
            used += 1
    return "".join(built)


def _apply_format_clause(clause: Clause, argument: object) -> str:
    try:
        return clause(argument)
    except EvalError as problem:
        raise EvalError(f"error during formatting: {problem}") from problem


def _parse_format_clause(template: str, at: int) -> tuple[int, Clause]:
    """Return the position after the clause that begins at `at`, and its function."""
    try:
        at, precision = _parse_clause_precision(template, at)
    except EvalError as problem:
        raise EvalError(f"could not parse formatting clause: {problem}") from problem
    letter = template[at]
    if letter == "f":
        return at + 1, lambda value: _format_fixed_point(value, precision)
    if letter == "e":
        return at + 1, lambda value: _format_scientific_clause(value, precision)
    if letter in _CLAUSES:
        return at + 1, _CLAUSES[letter]
    # Go compares bytes.
    shown = chr(letter.encode()[0])
    raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{shown}"')


def _parse_clause_precision(template: str, at: int) -> tuple[int, int]:
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


def _format_string_clause(value: object) -> str:
    if isinstance(value, list | tuple):
        return _format_cel_list(value)
    if isinstance(value, Mapping):
        return _format_cel_map(value)
    simple = _SIMPLE.get(type(value))
    if simple is None:
        raise EvalError(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
            f"durations, and timestamps, was given {runtime_kind_of(value)}"
        )
    return simple(value)


def _convert_cel_bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        text = "invalid UTF-8 in bytes, cannot convert to string"
        raise EvalError(f"could not convert argument {quote_as_go(text)} to string") from problem


_SIMPLE: dict[type, Callable[..., str]] = {
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(int(value)),
    float: format_shortest_cel_double,
    bytes: _convert_cel_bytes_to_string,
    type(None): lambda value: "null",
    Timestamp: write_timestamp,
    Duration: write_duration,
    TypeValue: lambda value: value.type.name,
}


def _format_decimal_clause(value: object) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    raise EvalError(f"decimal clause can only be used on integers, was given {runtime_kind_of(value)}")


def _require_double_argument(value: object, name: str) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return float(value)
    if isinstance(value, float):
        # Zero is printed without its sign.
        return value or 0.0
    raise EvalError(f"{name} clause can only be used on doubles, was given {runtime_kind_of(value)}")


def _format_fixed_point(value: object, precision: int) -> str:
    number = _require_double_argument(value, "fixed-point")
    return _format_non_finite_number(number) or f"{number:,.{precision}f}"


def _format_scientific_clause(value: object, width: int) -> str:
    number = _require_double_argument(value, "scientific")
    shown = _format_non_finite_number(number)
    if not shown:
        mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
        shown = f"{mantissa}×10{exponent.lstrip('+').translate(_SUPERSCRIPT)}"
    return shown.rjust(width)


def _format_non_finite_number(number: float) -> str:
    if number != number:
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return ""


def _format_binary_clause(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return f"{int(value):b}"
    raise EvalError(f"only integers and bools can be formatted as binary, was given {runtime_kind_of(value)}")


def _format_octal_clause(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise EvalError(f"octal clause can only be used on integers, was given {runtime_kind_of(value)}")


def _format_hex_clause(value: object) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):x}"
    raise EvalError(
        "only integers, byte buffers, and strings can be formatted as hex,"
        f" was given {runtime_kind_of(value)}"
    )


_CLAUSES: dict[str, Clause] = {
    "s": _format_string_clause,
    "d": _format_decimal_clause,
    "b": _format_binary_clause,
    "x": _format_hex_clause,
    "X": lambda value: _format_hex_clause(value).upper(),
    "o": _format_octal_clause,
}


# Inside lists and maps


def _format_cel_list(values: list[object] | tuple[object, ...]) -> str:
    return f"[{', '.join(map(_format_container_member, values))}]"


def _format_cel_map(values: Mapping[object, object]) -> str:
    pairs = []
    for key, value in values.items():
        if type(key) not in (str, bool, int, Uint):
            raise EvalError(f"no formatting function for map key of type {runtime_kind_of(key)}")
        pairs.append((_format_container_member(key), _format_container_member(value)))
    pairs.sort(key=lambda pair: pair[0].encode())
    return "{" + ", ".join(f"{key}:{value}" for key, value in pairs) + "}"


def _format_container_member(value: object) -> str:
    if isinstance(value, str):
        return quote_as_go(value)
    if isinstance(value, bytes):
        _convert_cel_bytes_to_string(value)
        return f"b{quote_bytes_as_go(value)}"
    if isinstance(value, float):
        if value != value or math.isinf(value):
            return quote_as_go(format_shortest_cel_double(value))
        return f"{value:.{_DEFAULT_PRECISION}f}"
    if isinstance(value, Timestamp):
        return f"timestamp({quote_as_go(write_timestamp(value))})"
    if isinstance(value, Duration):
        return f"duration({quote_as_go(write_duration(value))})"
    if not isinstance(value, list | tuple | Mapping) and type(value) not in _SIMPLE:
        raise EvalError(f"no formatting function for {runtime_kind_of(value)}")
    return _format_string_clause(value)


TABLE = (Implementation("string_format", "format", (S, types.list_of(types.DYN)), format_cel_string),)
