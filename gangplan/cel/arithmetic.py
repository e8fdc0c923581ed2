"""`+ - * / % !` of CEL values, within 64 bits, with cel-go's messages.

Source: cel-go v0.26 (`common/types`), which Kubernetes 1.34 uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.cel.clock import add_to_timestamp, subtract_cel_timestamps
from gangplan.cel.errors import EvalError, UnknownError
from gangplan.cel.numbers import INT_MAX, INT_MIN, UINT_MAX
from gangplan.cel.operators import NO_OVERLOAD, NUMBER_TYPES, build_operator_error
from gangplan.cel.values import Duration, Timestamp, Uint

# No object of a cluster has that many elements: etcd holds 1.5 MiB per object.
MOST_ELEMENTS = 2_000_000


def integer(value: int) -> int:
    """Return an int that fits into 64 bits. Raises `EvalError` for any other."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvalError("integer overflow")


def unsigned(value: int) -> Uint:
    """Return a uint that fits into 64 bits. Raises `EvalError` for any other."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvalError("unsigned integer overflow")


def joined(left: Sequence[object], right: Sequence[object]) -> list[object]:
    """Return two lists as one, within `MOST_ELEMENTS`.

    cel-go copies neither list, so its cost limit lets lists double forever.
    """
    check_length(len(left) + len(right))
    return [*left, *right]


def check_length(count: int) -> None:
    """Raise `UnknownError` for a list that would fill the memory."""
    if count > MOST_ELEMENTS:
        raise UnknownError(f"a list of more than {MOST_ELEMENTS} elements is not followed offline")


def add(left: object, right: object) -> object:
    """Return the sum of numbers, strings, bytes, lists, durations or timestamps."""
    one, other = type(left), type(right)
    if one is other:
        if one is int:
            return integer(left + right)  # type: ignore[operator]
        if one is str or one is bytes or one is float:
            return left + right  # type: ignore[operator]
        if one is Uint:
            return unsigned(left + right)  # type: ignore[operator]
        if one is Duration:
            return Duration(integer(left.nanoseconds + right.nanoseconds))  # type: ignore[attr-defined]
    if isinstance(left, list | tuple):
        if isinstance(right, list | tuple):
            return joined(left, right)
        raise EvalError(NO_OVERLOAD)
    if one is Timestamp and other is Duration:
        return add_to_timestamp(left, right.nanoseconds)  # type: ignore[arg-type, attr-defined]
    if one is Duration and other is Timestamp:
        return add_to_timestamp(right, left.nanoseconds)  # type: ignore[arg-type, attr-defined]
    if one in NUMBER_TYPES or one is bytes:
        raise EvalError(NO_OVERLOAD)
    raise build_operator_error(left, "_+_")


def subtract(left: object, right: object) -> object:
    """Return the difference of numbers, durations or timestamps."""
    one, other = type(left), type(right)
    if one is other:
        if one is int:
            return integer(left - right)  # type: ignore[operator]
        if one is float:
            return left - right  # type: ignore[operator]
        if one is Uint:
            return unsigned(left - right)  # type: ignore[operator]
        if one is Duration:
            return Duration(integer(left.nanoseconds - right.nanoseconds))  # type: ignore[attr-defined]
        if one is Timestamp:
            return subtract_cel_timestamps(left, right)  # type: ignore[arg-type]
    if one is Timestamp and other is Duration:
        return add_to_timestamp(left, integer(-right.nanoseconds))  # type: ignore[arg-type, attr-defined]
    if one in NUMBER_TYPES:
        raise EvalError(NO_OVERLOAD)
    raise build_operator_error(left, "_-_")


def multiply(left: object, right: object) -> object:
    """Return the product of two numbers of one kind."""
    one = type(left)
    if one not in NUMBER_TYPES:
        raise build_operator_error(left, "_*_")
    if one is not type(right):
        raise EvalError(NO_OVERLOAD)
    product = left * right  # type: ignore[operator]
    if one is int:
        return integer(product)
    return unsigned(product) if one is Uint else product


def divide(left: object, right: object) -> object:
    """Return the quotient of two numbers of one kind: integers round towards zero, doubles follow
    IEEE 754."""
    one = type(left)
    if one not in NUMBER_TYPES:
        raise build_operator_error(left, "_/_")
    if one is not type(right):
        raise EvalError(NO_OVERLOAD)
    if one is float:
        return _divide_doubles(left, right)  # type: ignore[arg-type]
    if not right:
        raise EvalError("division by zero")
    if one is Uint:
        return Uint(left // right)  # type: ignore[operator]
    return integer(towards_zero(left, right))  # type: ignore[arg-type]


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if left != left or not left:
        return float("nan")
    negative = (left < 0) != (str(right)[0] == "-")
    return float("-inf") if negative else float("inf")


def towards_zero(left: int, right: int) -> int:
    """Divide as Go does, rounding towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def compute_cel_remainder(left: object, right: object) -> object:
    """Return the remainder of two integers of one kind, with the sign of the left one."""
    one = type(left)
    if one is not int and one is not Uint:
        raise build_operator_error(left, "_%_")
    if one is not type(right):
        raise EvalError(NO_OVERLOAD)
    if not right:
        raise EvalError("modulus by zero")
    if one is Uint:
        return Uint(left % right)  # type: ignore[operator]
    integer(towards_zero(left, right))  # type: ignore[arg-type]
    return left - right * towards_zero(left, right)  # type: ignore[operator, arg-type]


def negate(value: object) -> object:
    """Return the value with the opposite sign."""
    if type(value) is int:
        return integer(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return Duration(integer(-value.nanoseconds))
    if type(value) is bool:
        raise EvalError(NO_OVERLOAD)
    raise build_operator_error(value, "-_")


def negate_boolean(value: object) -> bool:
    """Return the opposite of a boolean."""
    if value is True:
        return False
    if value is False:
        return True
    raise EvalError(NO_OVERLOAD)
