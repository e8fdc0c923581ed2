"""The run-time cost of one call, by the API server's arithmetic.

Sources: k8s.io/apiserver v0.34 `pkg/cel/library/cost.go`, cel-go v0.26 `interpreter/runtimecost.go`,
`ext/lists.go` and `ext/sets.go`. The unit is the API server's: about one simple step. A failed argument
counts as a value of size 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from gangplan.cel.values import Address, CidrValue, NamedFormat, Opaque, Optional

SELECT_COST, NEW_LIST_COST, NEW_MAP_COST = 1, 10, 30
_PER_CHARACTER = 0.1
_PER_PATTERN_CHARACTER = 0.25


class CrashError(Exception):
    """The API server can't compute the cost of a failed argument here: all evaluation ends, `||` or not."""

    def __init__(self, message: str) -> None:
        super().__init__(f"internal error: {message}")


Values = Sequence[object]
Cost = Callable[[Values, object], int]


def measure_cel_value_size(value: object) -> int:
    """Return the number of characters, bytes, elements or entries; 1 for anything without a size."""
    if isinstance(value, str | bytes | list | tuple | Mapping):
        return len(value)
    if isinstance(value, CidrValue):
        return ceil(value.prefix / 8)
    if isinstance(value, Address):
        return value.ip.max_prefixlen // 8
    return 1


def _size_inside(value: object) -> int:
    """Return the size of a value; for an optional with a value, that of the value."""
    while isinstance(value, Optional) and value.present:
        value = value.value
    return measure_cel_value_size(value)


def _build_reading_cost(times: float) -> Cost:
    """Return the cost of reading the first argument so many times."""
    return lambda values, result: ceil(float(measure_cel_value_size(values[0])) * times * _PER_CHARACTER)


def _compute_cel_traversal_cost(value: object, known: dict[int, int] | None = None) -> int:
    """Return the cost of visiting every scalar once, strings by their bytes.

    `known` are the costs of parts that may be shared, by their ids.
    """
    if isinstance(value, str):
        return int(len(value.encode()) * _PER_CHARACTER)
    if isinstance(value, bytes):
        return int(len(value) * _PER_CHARACTER)
    if not isinstance(value, list | tuple | Mapping):
        return 1
    known = {} if known is None else known
    if id(value) not in known:
        parts = [part for entry in value.items() for part in entry] if isinstance(value, Mapping) else value
        known[id(value)] = sum(_compute_cel_traversal_cost(part, known) for part in parts)
    return known[id(value)]


def _compute_regex_cost(text: int, pattern: int) -> int:
    return ceil((1.0 + text) * _PER_CHARACTER) * ceil(pattern * _PER_PATTERN_CHARACTER)


def _compute_format_check_cost(values: Values, result: object) -> int:
    form = values[0]
    if not isinstance(form, NamedFormat):
        return 1
    return _compute_regex_cost(measure_cel_value_size(values[1]), form.size)


def _compute_contains_ip_cost(values: Values, result: object) -> int:
    return ceil(float(2 * measure_cel_value_size(values[0])) * _PER_CHARACTER)


def _compute_contains_cidr_cost(values: Values, result: object) -> int:
    return (
        _compute_contains_ip_cost(values, result)
        + ceil(float(measure_cel_value_size(values[0])) * _PER_CHARACTER)
        + 1
    )


# By function: the costs of k8s.io/apiserver, which come before cel-go's core.
_NOMINAL: Cost = lambda values, result: 1  # noqa: E731
_BY_FUNCTION: dict[str, Cost] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"),
        lambda values, result: _compute_cel_traversal_cost(values[0]),
    ),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR"),
        _build_reading_cost(1),
    ),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _build_reading_cost(1)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _build_reading_cost(2)),
    "join": lambda values, result: ceil(float(measure_cel_value_size(result)) * 2 * _PER_CHARACTER),
    **dict.fromkeys(
        ("find", "findAll"),
        lambda values, result: _compute_regex_cost(
            measure_cel_value_size(values[0]), measure_cel_value_size(values[1])
        ),
    ),
    "validate": _compute_format_check_cost,
}


def _compute_smaller_size_cost(values: Values, result: object) -> int:
    return ceil(min(_size_inside(values[0]), _size_inside(values[1])) * _PER_CHARACTER)


def _compute_equality_cost(values: Values, result: object) -> int:
    return 1 if isinstance(values[0], Opaque) else _compute_smaller_size_cost(values, result)


def _compute_allocation_cost(factor: float, count: int) -> int:
    return int(count * factor) + 1 + NEW_LIST_COST


def _compute_new_list_cost(values: Values, result: object) -> int:
    return _compute_allocation_cost(1, measure_cel_value_size(result))


def _compute_flatten_cost(values: Values, result: object) -> int:
    depth = values[1] if len(values) > 1 else 1
    if not isinstance(depth, int):
        raise CrashError("interface conversion: ref.Val is *types.Err, not types.Int")
    return _compute_allocation_cost(depth, measure_cel_value_size(values[0]))


def _build_self_comparison_cost(index: int) -> Cost:
    def cost(values: Values, result: object) -> int:
        elements = values[index]
        if not isinstance(elements, list | tuple):
            raise CrashError("interface conversion: *types.Err is not traits.Lister: missing method Add")
        factor = 2.0
        if elements and isinstance(elements[0], str | bytes):
            factor += _PER_CHARACTER
        return _compute_allocation_cost(factor, len(elements) ** 2)

    return cost


def _build_set_comparison_cost(factor: int) -> Cost:
    return lambda values, result: (
        1 + measure_cel_value_size(values[0]) * measure_cel_value_size(values[1]) * factor
    )


def _compute_first_argument_cost(values: Values, result: object) -> int:
    return ceil(_size_inside(values[0]) * _PER_CHARACTER)


def _compute_both_arguments_cost(values: Values, result: object) -> int:
    return ceil((_size_inside(values[0]) + _size_inside(values[1])) * _PER_CHARACTER)


def _compute_substring_cost(values: Values, result: object) -> int:
    text, part = (ceil(_size_inside(value) * _PER_CHARACTER) for value in values)
    return text * part


_COMPARISONS = ("less", "less_equals", "greater", "greater_equals")
# By overload: cel-go's extensions come before the functions above ...
_TRACKED: dict[str, Cost] = {
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _compute_new_list_cost),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _compute_flatten_cost),
    "list_distinct": _build_self_comparison_cost(0),
    "list_sets_contains_list": _build_set_comparison_cost(1),
    "list_sets_intersects_list": _build_set_comparison_cost(1),
    "list_sets_equivalent_list": _build_set_comparison_cost(2),
}
# ... and its core after them.
_BY_OVERLOAD: dict[str, Cost] = {
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "string_format"),
        _compute_first_argument_cost,
    ),
    "strings_quote": _compute_first_argument_cost,
    "in_list": lambda values, result: _size_inside(values[1]),
    **dict.fromkeys(
        (f"{name}_{kind}" for name in _COMPARISONS for kind in ("string", "bytes")),
        _compute_smaller_size_cost,
    ),
    "equals": _compute_equality_cost,
    "not_equals": _compute_smaller_size_cost,
    "add_string": _compute_both_arguments_cost,
    "add_bytes": _compute_both_arguments_cost,
    "matches_string": lambda values, result: _compute_regex_cost(
        _size_inside(values[0]), _size_inside(values[1])
    ),
    "contains_string": _compute_substring_cost,
}


def can_crash(overload: str) -> bool:
    """Return whether the server can't compute the cost of a call of this overload when an argument failed."""
    return overload in ("list_distinct", "list_flatten_int") or overload.endswith(
        ("_sort", "_sortByAssociatedKeys")
    )


def find_cel_cost_function(function: str, overload: str) -> Cost:
    """Return the cost function of a call of this overload (empty: chosen by the values)."""
    if overload in _TRACKED:
        return _TRACKED[overload]
    if overload.endswith("_sort"):
        return _build_self_comparison_cost(0)
    if overload.endswith("_sortByAssociatedKeys"):
        return _build_self_comparison_cost(1)
    if function == "ip":
        return _NOMINAL if overload == "cidr_ip" else _build_reading_cost(1)
    if function in ("containsIP", "containsCIDR"):
        cost = _compute_contains_ip_cost if function == "containsIP" else _compute_contains_cidr_cost
        if overload.endswith("_string"):
            return lambda values, result: (
                cost(values, result) + ceil(measure_cel_value_size(values[1]) * _PER_CHARACTER)
            )
        return cost
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(overload, _NOMINAL)
