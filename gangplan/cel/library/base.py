"""A library function: its signature at run time and its implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gangplan.cel import types
from gangplan.cel.errors import EvalError
from gangplan.cel.types import Type
from gangplan.cel.values import Duration, Optional, Timestamp, Uint, cel_runtime_type_of, runtime_kind_of
from gangplan.records import dataclass

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Implementation:
    """One overload. If `guarded`, its arguments' types are checked at run time before `call` sees them."""

    id: str
    function: str
    arguments: tuple[Type, ...]
    call: Function
    guarded: bool = True

    def takes(self, values: tuple[object, ...]) -> bool:
        """Return whether the values fit the signature; only the first entry of a list or map is checked."""
        if len(values) != len(self.arguments):
            return False
        return not self.guarded or all(map(fits_declared_cel_type, self.arguments, values))


# Types that correspond to one Python class.
CLASSES: dict[Type, type] = {
    types.STRING: str,
    types.INT: int,
    types.UINT: Uint,
    types.DOUBLE: float,
    types.BOOL: bool,
    types.BYTES: bytes,
    types.NULL: type(None),
    types.DURATION: Duration,
    types.TIMESTAMP: Timestamp,
}


def fits_declared_cel_type(declared: Type, value: object) -> bool:
    """Return whether a value may be passed as a declared type (cel-go's `IsAssignableRuntimeType`)."""
    expected = CLASSES.get(declared)
    if expected is not None:
        return type(value) is expected
    if declared.name == "dyn" or isinstance(declared, types.Parameter):
        return True
    if declared.name == "list":
        if not isinstance(value, list | tuple):
            return False
        return not value or fits_declared_cel_type(declared.parameters[0], value[0])
    if declared.name == "map":
        if not isinstance(value, Mapping):
            return False
        if not value:
            return True
        key = next(iter(value))
        return fits_declared_cel_type(declared.parameters[0], key) and fits_declared_cel_type(
            declared.parameters[1], value[key]
        )
    if declared.name == "optional_type":
        return type(value) is Optional
    return cel_runtime_type_of(value).name == declared.name


def build_overload_error(function: str, values: tuple[object, ...]) -> EvalError:
    """Return the error of a call whose arguments fit no overload."""
    return EvalError(f"no such overload: {function}({', '.join(map(runtime_kind_of, values))})")


# Short names for the tables.
TYPE_T = types.Parameter("T")
LIST_OF_T = types.list_of(TYPE_T)
MAP_OF_K_V = types.map_of(types.Parameter("K"), types.Parameter("V"))
OPTIONAL_OF_T = types.optional_of(TYPE_T)
LIST_OF_STRINGS = types.list_of(types.STRING)
S, I, U, D, B = types.STRING, types.INT, types.UINT, types.DOUBLE, types.BOOL  # noqa: E741


def member(id: str, function: str, arguments: tuple[Type, ...], call: Function) -> Implementation:
    """Return a guarded overload."""
    return Implementation(id, function, arguments, call)
