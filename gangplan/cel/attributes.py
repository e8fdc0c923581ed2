"""Select entries of values for `.field`, `[index]`, `.?field` and `has()` (cel-go v0.26 `attributes.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.cel.errors import EvalError
from gangplan.cel.operators import convert_cel_list_index, find_cel_map_entry, format_cel_value
from gangplan.cel.values import Uint, go_type_of, runtime_kind_of

_KEYS = frozenset((str, int, Uint, bool, float))


def select_cel_entry(value: Any, key: Any) -> Any:
    """Return the entry of a map or list. Raises `EvalError` if it is missing."""
    found, entry = select_cel_entry_if_present(value, key)
    if found:
        return entry
    if isinstance(value, list | tuple):
        raise EvalError(f"index out of bounds: {format_cel_value(key)}")
    raise EvalError(f"no such key: {format_cel_value(key)}")


def select_cel_entry_if_present(value: Any, key: Any) -> tuple[bool, Any]:
    """Return whether an entry exists, and the entry. Raises `EvalError` if a list's key is not a number."""
    if isinstance(value, Mapping):
        return find_cel_map_entry(value, key)
    if isinstance(value, list | tuple):
        index = convert_cel_list_index(key)
        return (True, value[index]) if 0 <= index < len(value) else (False, None)
    return False, None


def check_cel_index_type(key: object) -> Any:
    """Return an evaluated index. Raises `EvalError` if its type cannot be an index."""
    if type(key) in _KEYS:
        return key
    # These are Go's native types: there, values from JSON have other names than values made by CEL.
    names = {"null_type": "<nil>", "list": "[]interface {}", "map": "map[string]interface {}"}
    raise EvalError(f"invalid qualifier type: {names.get(runtime_kind_of(key)) or go_type_of(key)}")
