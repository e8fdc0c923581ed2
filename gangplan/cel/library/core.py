"""Operators and `size` as overloads: each is one function for all types (cel-go's singletons)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gangplan.cel import arithmetic, operators, types
from gangplan.cel.library.base import Implementation
from gangplan.cel.types import Type


def size(value: object) -> int:
    """Evaluate `size(value)`: characters, bytes, elements or entries."""
    if isinstance(value, str | bytes | list | tuple | Mapping):
        return len(value)
    raise operators.build_operator_error(value, "size")


def not_strictly_false(value: object) -> bool:
    """Return whether a loop of `all` continues: only false ends it."""
    return value is not False


Binary = Callable[[object, object], object]
_BINARY: dict[str, tuple[Binary, str]] = {
    "_+_": (arithmetic.add, "add"),
    "_-_": (arithmetic.subtract, "subtract"),
    "_*_": (arithmetic.multiply, "multiply"),
    "_/_": (arithmetic.divide, "divide"),
    "_%_": (arithmetic.compute_cel_remainder, "modulo"),
    "_<_": (operators.is_less, "less"),
    "_<=_": (operators.is_less_or_equal, "less_equals"),
    "_>_": (operators.is_greater, "greater"),
    "_>=_": (operators.is_greater_or_equal, "greater_equals"),
}
# The endings of these operators' overload ids.
_ARITHMETIC = ("double", "int64", "uint64")
_SUMS = {
    "add": ("bytes", "duration_duration", "duration_timestamp", "list", "string", "timestamp_duration"),
    "subtract": ("duration_duration", "timestamp_duration", "timestamp_timestamp"),
}
_ORDER = (
    "bool",
    "bytes",
    "double_int64",
    "double_uint64",
    "duration",
    "int64_double",
    "int64_uint64",
    "string",
    "timestamp",
    "uint64_double",
    "uint64_int64",
)
_DYN: tuple[Type, Type] = (types.DYN, types.DYN)


def _list_cel_operator_overloads() -> Iterator[Implementation]:
    for function, (call, name) in _BINARY.items():
        endings = (*_ARITHMETIC, *(_ORDER if name.startswith(("less", "greater")) else _SUMS.get(name, ())))
        for ending in endings:
            yield Implementation(f"{name}_{ending}", function, _DYN, call, guarded=False)
    for container in ("list", "map"):
        yield Implementation(f"in_{container}", "@in", _DYN, operators.is_in_cel_container, guarded=False)
    for kind in ("bytes", "list", "map", "string"):
        for id in (f"size_{kind}", f"{kind}_size"):
            yield Implementation(id, "size", (types.DYN,), size, guarded=False)
    for id in ("negate_double", "negate_int64"):
        yield Implementation(id, "-_", (types.DYN,), arithmetic.negate, guarded=False)


TABLE = (
    *_list_cel_operator_overloads(),
    Implementation("equals", "_==_", _DYN, operators.is_equal_cel_value, guarded=False),
    Implementation(
        "not_equals",
        "_!=_",
        _DYN,
        lambda one, other: not operators.is_equal_cel_value(one, other),
        guarded=False,
    ),
    Implementation("logical_not", "!_", (types.DYN,), arithmetic.negate_boolean, guarded=False),
    Implementation(
        "not_strictly_false", "@not_strictly_false", (types.DYN,), not_strictly_false, guarded=False
    ),
)
