"""The run-time cost of one call, by the API server's arithmetic.

Sources: k8s.io/apiserver v0.34 `pkg/cel/library/cost.go`, cel-go v0.26 `interpreter/runtimecost.go`,
`ext/lists.go` and `ext/sets.go`. The unit is the API server's: about one simple step. A failed argument
counts as a value of size 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from gangplan.cel.values import Address, CidrValue, NamedFormat, Opaque, Optional

SELECT, NEW_LIST, NEW_MAP = 1, 10, 30
_PER_CHARACTER = 0.1
_PER_PATTERN_CHARACTER = 0.25


class CrashError(Exception):
    """The API server can't compute the cost of a failed argument here: all evaluation ends, `||` or not."""

    def __init__(self, message: str) -> None:
        super().__init__(f"internal error: {message}")


Values = Sequence[object]
Cost = Callable[[Values, object], int]


def size(value: object) -> int:
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
    return size(value)


def _once(times: float) -> Cost:
    """Return the cost of reading the first argument so many times."""
    return lambda values, result: ceil(float(size(values[0])) * times * _PER_CHARACTER)


def _traversal(value: object, known: dict[int, int] | None = None) -> int:
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
        known[id(value)] = sum(_traversal(part, known) for part in parts)
    return known[id(value)]


def _pattern(text: int, pattern: int) -> int:
    return ceil((1.0 + text) * _PER_CHARACTER) * ceil(pattern * _PER_PATTERN_CHARACTER)


def _validate(values: Values, result: object) -> int:
    form = values[0]
    if not isinstance(form, NamedFormat):
        return 1
    return _pattern(size(values[1]), form.size)


def _contains_ip(values: Values, result: object) -> int:
    return ceil(float(2 * size(values[0])) * _PER_CHARACTER)


def _contains_cidr(values: Values, result: object) -> int:
    return _contains_ip(values, result) + ceil(float(size(values[0])) * _PER_CHARACTER) + 1


# By function: the costs of k8s.io/apiserver, which come before cel-go's core.
_NOMINAL: Cost = lambda values, result: 1  # noqa: E731
_BY_FUNCTION: dict[str, Cost] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"),
        lambda values, result: _traversal(values[0]),
    ),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR"), _once(1)
    ),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _once(1)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _once(2)),
    "join": lambda values, result: ceil(float(size(result)) * 2 * _PER_CHARACTER),
    **dict.fromkeys(("find", "findAll"), lambda values, result: _pattern(size(values[0]), size(values[1]))),
    "validate": _validate,
}


def _smaller(values: Values, result: object) -> int:
    return ceil(min(_size_inside(values[0]), _size_inside(values[1])) * _PER_CHARACTER)


def _equality(values: Values, result: object) -> int:
    return 1 if isinstance(values[0], Opaque) else _smaller(values, result)


def _allocating(factor: float, count: int) -> int:
    return int(count * factor) + 1 + NEW_LIST


def _new_list(values: Values, result: object) -> int:
    return _allocating(1, size(result))


def _flatten(values: Values, result: object) -> int:
    depth = values[1] if len(values) > 1 else 1
    if not isinstance(depth, int):
        raise CrashError("interface conversion: ref.Val is *types.Err, not types.Int")
    return _allocating(depth, size(values[0]))


def _self_compare(index: int) -> Cost:
    def cost(values: Values, result: object) -> int:
        elements = values[index]
        if not isinstance(elements, list | tuple):
            raise CrashError("interface conversion: *types.Err is not traits.Lister: missing method Add")
        factor = 2.0
        if elements and isinstance(elements[0], str | bytes):
            factor += _PER_CHARACTER
        return _allocating(factor, len(elements) ** 2)

    return cost


def _sets(factor: int) -> Cost:
    return lambda values, result: 1 + size(values[0]) * size(values[1]) * factor


def _first(values: Values, result: object) -> int:
    return ceil(_size_inside(values[0]) * _PER_CHARACTER)


def _both(values: Values, result: object) -> int:
    return ceil((_size_inside(values[0]) + _size_inside(values[1])) * _PER_CHARACTER)


def _contains(values: Values, result: object) -> int:
    text, part = (ceil(_size_inside(value) * _PER_CHARACTER) for value in values)
    return text * part


_COMPARISONS = ("less", "less_equals", "greater", "greater_equals")
# By overload: cel-go's extensions come before the functions above ...
_TRACKED: dict[str, Cost] = {
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _new_list),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": _self_compare(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
# ... and its core after them.
_BY_OVERLOAD: dict[str, Cost] = {
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "string_format"),
        _first,
    ),
    "strings_quote": _first,
    "in_list": lambda values, result: _size_inside(values[1]),
    **dict.fromkeys((f"{name}_{kind}" for name in _COMPARISONS for kind in ("string", "bytes")), _smaller),
    "equals": _equality,
    "not_equals": _smaller,
    "add_string": _both,
    "add_bytes": _both,
    "matches_string": lambda values, result: _pattern(_size_inside(values[0]), _size_inside(values[1])),
    "contains_string": _contains,
}


def can_crash(overload: str) -> bool:
    """Return whether the server can't compute the cost of a call of this overload when an argument failed."""
    return overload in ("list_distinct", "list_flatten_int") or overload.endswith(
        ("_sort", "_sortByAssociatedKeys")
    )


def cost_of(function: str, overload: str) -> Cost:
    """Return the cost function of a call of this overload (empty: chosen by the values)."""
    if overload in _TRACKED:
        return _TRACKED[overload]
    if overload.endswith("_sort"):
        return _self_compare(0)
    if overload.endswith("_sortByAssociatedKeys"):
        return _self_compare(1)
    if function == "ip":
        return _NOMINAL if overload == "cidr_ip" else _once(1)
    if function in ("containsIP", "containsCIDR"):
        cost = _contains_ip if function == "containsIP" else _contains_cidr
        if overload.endswith("_string"):
            return lambda values, result: cost(values, result) + ceil(size(values[1]) * _PER_CHARACTER)
        return cost
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(overload, _NOMINAL)
