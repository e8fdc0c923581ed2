"""Equality, order, membership and lookup of CEL values, with cel-go's messages (arithmetic.py has the rest).

Source: cel-go v0.26 (`common/types`), which Kubernetes 1.34 uses. Every function takes values and returns a
value or raises `EvalError`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.cel.errors import EvalError
from gangplan.cel.numbers import INT_MAX, format_shortest_cel_double
from gangplan.cel.values import Duration, Opaque, Optional, Timestamp, TypeValue, Uint, runtime_kind_of

NO_OVERLOAD = "no such overload"

NUMBER_TYPES = frozenset((int, Uint, float))
# Types for which Python's equality is CEL's, if both sides have the same type.
_PLAIN = frozenset((str, int, Uint, bool, bytes, type(None), float))
_NONE = type(None)


# Types on which cel-go calls methods by name: their errors don't name the function.
_RECEIVERS = (str, Duration, Timestamp)


def build_operator_error(value: object, function: str) -> EvalError:
    """Return the error of an operator that a value's type does not have."""
    return EvalError(NO_OVERLOAD if type(value) in _RECEIVERS else f"{NO_OVERLOAD}: {function}")


# Equality


def is_equal_cel_value(left: object, right: object, known: _Known | None = None) -> bool:
    """Return whether `==` holds, also with null, which equals only null."""
    one, other = type(left), type(right)
    if one is other and one in _PLAIN:
        return left == right
    if one is _NONE or other is _NONE:
        return one is other
    return is_same_cel_value(left, right, known)


# Known results for pairs of lists and maps inside a comparison, by their ids: values that share parts (`[v,
# v]` of `[w, w]`...) are compared in time linear in what they hold, not in what they spell out.
_Known = dict[tuple[int, int], bool]


def is_same_cel_value(left: object, right: object, known: _Known | None = None) -> bool:
    """Return whether values are equal by the left value's type. Raises `EvalError` for opaque values of two
    kinds."""
    one, other = type(left), type(right)
    if one in NUMBER_TYPES:
        return other in NUMBER_TYPES and _is_equal_number(left, right)  # type: ignore[arg-type]
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and _is_equal_cel_list(
            left, right, {} if known is None else known
        )
    if isinstance(left, Mapping):
        return isinstance(right, Mapping) and _is_equal_cel_map(left, right, {} if known is None else known)
    if isinstance(left, Opaque):
        if one is not other:
            raise EvalError(NO_OVERLOAD)
        return left.same(right)  # type: ignore[arg-type]
    if one is Optional:
        return other is Optional and _is_equal_optional(left, right)  # type: ignore[arg-type]
    if one is TypeValue:
        return other is TypeValue and left.type.name == right.type.name  # type: ignore[attr-defined]
    return one is other and left == right


def _is_equal_number(left: int | float, right: int | float) -> bool:
    if left != left or right != right:
        return False
    return compare_cel_numbers(left, right) == 0


def _is_equal_cel_element_cached(left: object, right: object, known: _Known) -> bool:
    """Return whether elements are equal; inside lists and maps, cel-go treats those that can't be compared as
    equal."""
    if type(left) in _PLAIN:
        return _is_equal_or_incomparable(left, right, known)
    key = id(left), id(right)
    if key not in known:
        known[key] = _is_equal_or_incomparable(left, right, known)
    return known[key]


def _is_equal_or_incomparable(left: object, right: object, known: _Known) -> bool:
    try:
        return is_equal_cel_value(left, right, known)
    except EvalError:
        return True


def _is_equal_cel_list(
    left: list[object] | tuple[object, ...], right: list[object] | tuple[object, ...], known: _Known
) -> bool:
    return len(left) == len(right) and all(
        _is_equal_cel_element_cached(one, other, known) for one, other in zip(left, right, strict=True)
    )


def _is_equal_cel_map(left: Mapping[object, object], right: Mapping[object, object], known: _Known) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        found, other = find_cel_map_entry(right, key)
        if not found or not _is_equal_cel_element_cached(value, other, known):
            return False
    return True


def _is_equal_optional(left: Optional, right: Optional) -> bool:
    if not left.present or not right.present:
        return left.present == right.present
    return is_same_cel_value(left.value, right.value)


# Order


def compare_cel_numbers(left: int | float, right: int | float) -> int:
    """Return -1, 0 or 1. An int is compared with a double as a double, as in Go, unless the double is out of
    range."""
    if isinstance(left, float):
        if not isinstance(right, float):
            low, high = (0.0, 2.0**64) if type(right) is Uint else (-(2.0**63), 2.0**63)
            if left < low:
                return -1
            if left > high:
                return 1
            right = float(right)
    elif isinstance(right, float):
        return -compare_cel_numbers(right, left)
    return (left > right) - (left < right)


def compare_cel_values(left: object, right: object) -> int:
    """Return -1, 0 or 1 for values that are ordered. Raises `EvalError` for others."""
    one, other = type(left), type(right)
    if one in NUMBER_TYPES:
        if left != left or (other is float and right != right):
            raise EvalError("NaN values cannot be ordered")
        if other not in NUMBER_TYPES:
            raise EvalError(NO_OVERLOAD)
        return compare_cel_numbers(left, right)  # type: ignore[arg-type]
    if one is not other:
        raise EvalError(NO_OVERLOAD)
    if one is str or one is bytes or one is bool or one is Duration or one is Timestamp:
        return int(left > right) - int(left < right)  # type: ignore[operator]
    raise EvalError(NO_OVERLOAD)


COMPARABLE_TYPES = frozenset((str, bytes, bool, int, Uint, float, Duration, Timestamp))


def _compare_ordered_values(left: object, right: object, operator: str) -> int:
    if type(left) not in COMPARABLE_TYPES:
        raise build_operator_error(left, operator)
    return compare_cel_values(left, right)


def is_less(left: object, right: object) -> bool:
    """Evaluate `<`."""
    return _compare_ordered_values(left, right, "_<_") < 0


def is_less_or_equal(left: object, right: object) -> bool:
    """Evaluate `<=`."""
    return _compare_ordered_values(left, right, "_<=_") <= 0


def is_greater(left: object, right: object) -> bool:
    """Evaluate `>`."""
    return _compare_ordered_values(left, right, "_>_") > 0


def is_greater_or_equal(left: object, right: object) -> bool:
    """Evaluate `>=`."""
    return _compare_ordered_values(left, right, "_>=_") >= 0


# Lookup


def find_cel_map_entry(container: Mapping[object, object], key: object) -> tuple[bool, object]:
    """Return whether a map has a key, and its value. Equal numbers of any kind are the same key."""
    if type(key) is str:
        try:
            # One lookup only, because a policy's variables are evaluated when they are read.
            return True, container[key]
        except KeyError:
            return False, None
    if type(key) is float and not key.is_integer():
        return False, None
    if type(key) not in NUMBER_TYPES and type(key) is not bool:
        return False, None
    for written, value in container.items():
        if (type(written) is bool) == (type(key) is bool) and not isinstance(written, str) and written == key:
            return True, value
    return False, None


def convert_cel_list_index(index: object) -> int:
    """Return a list index from any kind of number without a fraction."""
    if type(index) is int:
        return index
    if type(index) is float or type(index) is Uint:
        if index == index and abs(index) < INT_MAX and int(index) == index:
            return int(index)
        raise EvalError(f"unsupported index value {format_cel_value(index)} in list")
    raise EvalError(f"unsupported index type '{runtime_kind_of(index)}' in list")


def is_in_cel_container(element: object, container: object) -> bool:
    """Evaluate `in`: whether a list has an equal element, or a map the key."""
    if isinstance(container, Mapping):
        return find_cel_map_entry(container, element)[0]
    if isinstance(container, list | tuple):
        return has_equal_cel_element(container, element)
    raise EvalError(NO_OVERLOAD)


def has_equal_cel_element(container: list[object] | tuple[object, ...], element: object) -> bool:
    """Return whether a list has an equal element; values that can't be compared are not equal."""
    if type(element) is str:
        return element in container
    for other in container:
        try:
            if is_same_cel_value(element, other):
                return True
        except EvalError:
            continue
    return False


def format_cel_value(value: object) -> str:
    """Format a value for an error message, as Go's `%v` does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_shortest_cel_double(value) if isinstance(value, float) else str(value)
