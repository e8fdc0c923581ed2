"""Optional values; the engine itself evaluates `or` and `orValue`, and skips what they don't need."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.cel import types
from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import OPTIONAL_OF_T, TYPE_T, Implementation
from gangplan.cel.operators import format_cel_value
from gangplan.cel.values import OPTIONAL_NONE, Duration, Opaque, Optional, Timestamp, TypeValue

# Go's zero time.Time: year 1.
_ZERO_TIME = -62135596800 * 10**9


def none() -> Optional:
    """Evaluate `optional.none()`."""
    return OPTIONAL_NONE


def of(value: object) -> Optional:
    """Evaluate `optional.of(value)`."""
    return Optional(True, value)


def of_non_zero(value: object) -> Optional:
    """Evaluate `optional.ofNonZeroValue(value)`."""
    return OPTIONAL_NONE if _is_cel_zero_value(value) else Optional(True, value)


def _is_cel_zero_value(value: object) -> bool:
    if isinstance(value, Opaque | Optional | TypeValue):
        return False
    if isinstance(value, Duration):
        return not value.nanoseconds
    if isinstance(value, Timestamp):
        return value.nanoseconds == _ZERO_TIME
    if isinstance(value, Mapping):
        return not len(value)
    return not value


def has_value(optional: Optional) -> bool:
    """Evaluate `optional.hasValue()`."""
    return optional.present


def value_of(optional: Optional) -> object:
    """Evaluate `optional.value()`."""
    if not optional.present:
        raise EvalError("optional.none() dereference")
    return optional.value


def unwrap(optionals: list[object]) -> list[object]:
    """Evaluate `optional.unwrap(list)`: the values that are present."""
    for optional in optionals:
        if not isinstance(optional, Optional):
            raise EvalError(f"value {format_cel_value(optional)} is not optional")
    return [optional.value for optional in optionals if isinstance(optional, Optional) and optional.present]


_OPTIONALS = types.list_of(OPTIONAL_OF_T)
TABLE = (
    Implementation("optional_none", "optional.none", (), none),
    Implementation("optional_of", "optional.of", (TYPE_T,), of),
    Implementation("optional_ofNonZeroValue", "optional.ofNonZeroValue", (TYPE_T,), of_non_zero),
    Implementation("optional_hasValue", "hasValue", (OPTIONAL_OF_T,), has_value),
    Implementation("optional_value", "value", (OPTIONAL_OF_T,), value_of),
    Implementation("optional_unwrap", "optional.unwrap", (_OPTIONALS,), unwrap),
    Implementation("optional_unwrapOpt", "unwrapOpt", (_OPTIONALS,), unwrap),
)
