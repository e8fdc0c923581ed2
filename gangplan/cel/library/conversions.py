"""Conversions between the types of the language (cel-go v0.26 `common/types`)."""

from __future__ import annotations

import math
from collections.abc import Callable

from gangplan.cel import types
from gangplan.cel.clock import (
    build_timestamp,
    parse_cel_timestamp,
    parse_go_duration,
    write_duration,
    write_timestamp,
)
from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import TYPE_T, B, D, I, Implementation, S, U
from gangplan.cel.numbers import (
    INT_MAX,
    format_shortest_cel_double,
    parse_bool,
    parse_cel_double,
    parse_cel_int,
    parse_cel_uint,
)
from gangplan.cel.types import Type
from gangplan.cel.values import Duration, Timestamp, TypeValue, Uint, cel_runtime_type_of


def _build_cel_string_conversion(parse: Callable[[str], object], target: Type) -> Callable[[str], object]:
    def convert(text: str) -> object:
        value = parse(text)
        if value is None:
            raise EvalError(f"type conversion error from 'string' to '{target}'")
        return Uint(value) if target is types.UINT else value  # type: ignore[call-overload]

    return convert


def _return_value_unchanged(value: object) -> object:
    return value


def double_to_int(value: float) -> int:
    """Evaluate `int(double)`, rounding towards zero."""
    if not -(2.0**63) < value < 2.0**63:
        raise EvalError("integer overflow")
    return int(value)


def double_to_uint(value: float) -> Uint:
    """Evaluate `uint(double)`, rounding towards zero."""
    if not 0 <= value < 2.0**64:
        raise EvalError("unsigned integer overflow")
    return Uint(math.floor(value))


def int_to_uint(value: int) -> Uint:
    """Evaluate `uint(int)`."""
    if value < 0:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def uint_to_int(value: Uint) -> int:
    """Evaluate `int(uint)`."""
    if value > INT_MAX:
        raise EvalError("integer overflow")
    return int(value)


def bytes_to_string(value: bytes) -> str:
    """Evaluate `string(bytes)`."""
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from problem


def timestamp_to_int(value: Timestamp) -> int:
    """Evaluate `int(timestamp)`: seconds since 1970."""
    return value.nanoseconds // 10**9


def type_of_value(value: object) -> TypeValue:
    """Evaluate `type(value)`."""
    return TypeValue(cel_runtime_type_of(value))


def bool_to_string(value: bool) -> str:
    """Evaluate `string(bool)`."""
    return "true" if value else "false"


def _refuse_int_to_duration(value: int) -> Duration:
    raise EvalError("type conversion error from 'int' to 'google.protobuf.Duration'")


_DURATION, _TIMESTAMP, _BYTES = types.DURATION, types.TIMESTAMP, types.BYTES
TABLE = (
    Implementation("to_dyn", "dyn", (TYPE_T,), _return_value_unchanged),
    Implementation("type", "type", (TYPE_T,), type_of_value),
    Implementation("bool_to_bool", "bool", (B,), _return_value_unchanged),
    Implementation("string_to_bool", "bool", (S,), _build_cel_string_conversion(parse_bool, B)),
    Implementation("bytes_to_bytes", "bytes", (_BYTES,), _return_value_unchanged),
    Implementation("string_to_bytes", "bytes", (S,), str.encode),
    Implementation("double_to_double", "double", (D,), _return_value_unchanged),
    Implementation("int64_to_double", "double", (I,), float),
    Implementation("string_to_double", "double", (S,), _build_cel_string_conversion(parse_cel_double, D)),
    Implementation("uint64_to_double", "double", (U,), float),
    Implementation("duration_to_duration", "duration", (_DURATION,), _return_value_unchanged),
    Implementation("int64_to_duration", "duration", (I,), _refuse_int_to_duration),
    Implementation(
        "string_to_duration", "duration", (S,), _build_cel_string_conversion(parse_go_duration, _DURATION)
    ),
    Implementation("int64_to_int64", "int", (I,), _return_value_unchanged),
    Implementation("double_to_int64", "int", (D,), double_to_int),
    Implementation("duration_to_int64", "int", (_DURATION,), lambda value: value.nanoseconds),
    Implementation("string_to_int64", "int", (S,), _build_cel_string_conversion(parse_cel_int, I)),
    Implementation("timestamp_to_int64", "int", (_TIMESTAMP,), timestamp_to_int),
    Implementation("uint64_to_int64", "int", (U,), uint_to_int),
    Implementation("string_to_string", "string", (S,), _return_value_unchanged),
    Implementation("bool_to_string", "string", (B,), bool_to_string),
    Implementation("bytes_to_string", "string", (_BYTES,), bytes_to_string),
    Implementation("double_to_string", "string", (D,), format_shortest_cel_double),
    Implementation("duration_to_string", "string", (_DURATION,), write_duration),
    Implementation("int64_to_string", "string", (I,), str),
    Implementation("timestamp_to_string", "string", (_TIMESTAMP,), write_timestamp),
    Implementation("uint64_to_string", "string", (U,), str),
    Implementation("timestamp_to_timestamp", "timestamp", (_TIMESTAMP,), _return_value_unchanged),
    Implementation("int64_to_timestamp", "timestamp", (I,), build_timestamp),
    Implementation(
        "string_to_timestamp",
        "timestamp",
        (S,),
        _build_cel_string_conversion(parse_cel_timestamp, _TIMESTAMP),
    ),
    Implementation("uint64_to_uint64", "uint", (U,), _return_value_unchanged),
    Implementation("double_to_uint64", "uint", (D,), double_to_uint),
    Implementation("int64_to_uint64", "uint", (I,), int_to_uint),
    Implementation("string_to_uint64", "uint", (S,), _build_cel_string_conversion(parse_cel_uint, U)),
)
