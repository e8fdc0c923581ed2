"""List functions of the API server, and cel-go's extension version 3.

Source: k8s.io/apiserver v0.34 `pkg/cel/library/lists.go`, cel-go v0.26 `ext/lists.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import Any

from gangplan.cel import types
from gangplan.cel.arithmetic import add, check_length
from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import LIST_OF_T, TYPE_T, I, Implementation
from gangplan.cel.operators import (
    COMPARABLE_TYPES,
    NO_OVERLOAD,
    build_operator_error,
    compare_cel_values,
    is_same_cel_value,
)
from gangplan.cel.types import Type
from gangplan.cel.values import OPTIONAL_NONE, Duration, Optional, Uint, runtime_kind_of

List = list[object]

_COMPARABLE: dict[str, Type] = {
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "bool": types.BOOL,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    "string": types.STRING,
    "bytes": types.BYTES,
}
_ZEROS: dict[str, object] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def _iterate_comparable_cel_list_elements(elements: List) -> Iterator[object]:
    """Yield the elements. Raises `EvalError` at one without an order."""
    for element in elements:
        if type(element) not in COMPARABLE_TYPES:
            raise EvalError(NO_OVERLOAD)
        yield element


def _compare_cel_list_elements(left: object, right: object) -> int:
    """Return -1, 0 or 1; 2 for values that can't be compared, which the API server treats as none
    of these."""
    try:
        return compare_cel_values(left, right)
    except EvalError:
        return 2


def is_sorted(elements: List) -> bool:
    """Evaluate `list.isSorted()`."""
    previous: object = None
    for index, element in enumerate(_iterate_comparable_cel_list_elements(elements)):
        if index and _compare_cel_list_elements(previous, element) == 1:
            return False
        previous = element
    return True


def _build_cel_list_sum(zero: object) -> Callable[[List], object]:
    def total(elements: List) -> object:
        result = zero
        for element in elements:
            result = add(result, element)
        return result

    return total


def _build_cel_list_extreme(name: str, replaced: int) -> Callable[[List], object]:
    def extreme(elements: List) -> object:
        if not elements:
            raise EvalError(f"{name} called on empty list")
        found: object = None
        for index, element in enumerate(_iterate_comparable_cel_list_elements(elements)):
            if not index or _compare_cel_list_elements(found, element) == replaced:
                found = element
        return found

    return extreme


def _is_same_element(left: object, right: object) -> bool:
    try:
        return is_same_cel_value(left, right)
    except EvalError:
        return False


def index_of(elements: List, element: object) -> int:
    """Evaluate `list.indexOf(element)`: -1 if it is not found."""
    return next((index for index, other in enumerate(elements) if _is_same_element(other, element)), -1)


def last_index_of(elements: List, element: object) -> int:
    """Evaluate `list.lastIndexOf(element)`: -1 if it is not found."""
    return next(
        (index for index in reversed(range(len(elements))) if _is_same_element(elements[index], element)), -1
    )


def includes(target: object, element: object) -> bool:
    """Evaluate `target.includes(element)` of Kubernetes 1.37: whether a list has it, or another value equals
    it."""
    if isinstance(target, list | tuple):
        return any(_is_same_element(other, element) for other in target)
    return _is_same_element(target, element)


def slice_of(elements: List, start: int, end: int) -> List:
    """Evaluate `list.slice(start, end)`."""
    problem = ""
    if start < 0 or end < 0:
        problem = "negative indexes not supported"
    elif start > end:
        problem = "start index must be less than or equal to end index"
    elif len(elements) < end:
        problem = f"list is length {len(elements)}"
    if problem:
        raise EvalError(f"cannot slice({start}, {end}), {problem}")
    return list(elements[start:end])


def flatten(elements: List, depth: int = 1) -> List:
    """Evaluate `list.flatten(depth)`."""
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: List = []
    for element in elements:
        if depth and isinstance(element, list | tuple):
            flat.extend(flatten(list(element), depth - 1))
        else:
            flat.append(element)
        check_length(len(flat))
    return flat


def _flatten_checked_list(elements: object, *depth: object) -> List:
    """Check the types of the arguments, as cel-go does for `flatten` itself, and flatten the list."""
    if not isinstance(elements, list | tuple) or any(type(number) is not int for number in depth):
        raise EvalError(
            f"{NO_OVERLOAD}: {runtime_kind_of(elements)}.flatten({', '.join(map(runtime_kind_of, depth))})"
        )
    return flatten(list(elements), *depth)  # type: ignore[arg-type]


def sort(elements: List) -> List:
    """Evaluate `list.sort()`."""
    return sort_cel_list_by_keys(elements, elements)


def sort_cel_list_by_keys(elements: Any, keys: Any) -> List:
    """Sort the elements by their keys, for the expansion of `sortBy`."""
    if not isinstance(elements, list | tuple) or not isinstance(keys, list | tuple):
        raise build_operator_error(elements, "@sortByAssociatedKeys")
    if not elements:
        return list(elements)
    first = type(keys[0])
    if first not in COMPARABLE_TYPES:
        raise EvalError("list elements must be comparable")
    if any(type(key) is not first for key in keys):
        raise EvalError("list elements must have the same type")

    # Go sorts up to 12 elements by insertion, which keeps the order of equal ones, as this does.
    def ascending(one: int, other: int) -> int:
        order = _compare_cel_list_elements(keys[one], keys[other])
        return order if order != 2 else 0

    return [elements[index] for index in sorted(range(len(keys)), key=cmp_to_key(ascending))]


def _sort_checked_list(elements: object) -> List:
    if not isinstance(elements, list | tuple):
        raise build_operator_error(elements, "sort")
    return sort(list(elements))


def distinct(elements: List) -> List:
    """Evaluate `list.distinct()`: the first of equal elements stays."""
    unique: List = []
    for element in elements:
        if not any(_is_same_element(element, other) for other in unique):
            unique.append(element)
    return unique


def ascending(count: int) -> List:
    """Evaluate `lists.range(count)`."""
    check_length(count)
    return list(range(count))


def reverse(elements: List) -> List:
    """Evaluate `list.reverse()`."""
    return list(reversed(elements))


def first(elements: List) -> Optional:
    """Evaluate `list.first()`."""
    return Optional(True, elements[0]) if elements else OPTIONAL_NONE


def last(elements: List) -> Optional:
    """Evaluate `list.last()`."""
    return Optional(True, elements[-1]) if elements else OPTIONAL_NONE


def _list_cel_overloads_per_type() -> Iterator[Implementation]:
    for name, element in _COMPARABLE.items():
        listed = (types.list_of(element),)
        yield Implementation(f"list_{name}_is_sorted_bool", "isSorted", listed, is_sorted)
        yield Implementation(f"list_{name}_max_{name}", "max", listed, _build_cel_list_extreme("max", -1))
        yield Implementation(f"list_{name}_min_{name}", "min", listed, _build_cel_list_extreme("min", 1))
        yield Implementation(f"list_{element}_sort", "sort", listed, _sort_checked_list, guarded=False)
        yield Implementation(
            f"list_{element}_sortByAssociatedKeys",
            "@sortByAssociatedKeys",
            (LIST_OF_T, types.list_of(element)),
            sort_cel_list_by_keys,
            guarded=False,
        )
    for name, zero in _ZEROS.items():
        yield Implementation(
            f"list_{name}_sum_{name}", "sum", (types.list_of(_COMPARABLE[name]),), _build_cel_list_sum(zero)
        )


TABLE = (
    *_list_cel_overloads_per_type(),
    Implementation("list_a_index_of_int", "indexOf", (LIST_OF_T, TYPE_T), index_of),
    Implementation("list_a_last_index_of_int", "lastIndexOf", (LIST_OF_T, TYPE_T), last_index_of),
    Implementation("list_includes_dyn_dyn", "includes", (types.DYN, types.DYN), includes),
    Implementation("list_slice", "slice", (LIST_OF_T, I, I), slice_of),
    Implementation(
        "list_flatten", "flatten", (types.list_of(LIST_OF_T),), _flatten_checked_list, guarded=False
    ),
    Implementation(
        "list_flatten_int", "flatten", (types.list_of(types.DYN), I), _flatten_checked_list, guarded=False
    ),
    Implementation("list_distinct", "distinct", (LIST_OF_T,), distinct),
    Implementation("lists_range", "lists.range", (I,), ascending),
    Implementation("list_reverse", "reverse", (LIST_OF_T,), reverse),
    Implementation("list_first", "first", (LIST_OF_T,), first),
    Implementation("list_last", "last", (LIST_OF_T,), last),
)
