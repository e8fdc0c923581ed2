"""What `.field`, `[index]`, `.?field` and `has()` find in a value (cel-go v0.26 `attributes.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.cel.errors import EvalError
from gangplan.cel.operators import find, position, show
from gangplan.cel.values import Uint, go_name, kind

_KEYS = frozenset((str, int, Uint, bool, float))


def select(value: Any, key: Any) -> Any:
    """The entry of a map or list. Raises `EvalError` where there is none."""
    found, entry = select_if_present(value, key)
    if found:
        return entry
    if isinstance(value, list | tuple):
        raise EvalError(f"index out of bounds: {show(key)}")
    raise EvalError(f"no such key: {show(key)}")


def select_if_present(value: Any, key: Any) -> tuple[bool, Any]:
    """Whether there is such an entry, and the entry. Raises `EvalError` if a list's key is no number."""
    if isinstance(value, Mapping):
        return find(value, key)
    if isinstance(value, list | tuple):
        index = position(key)
        return (True, value[index]) if 0 <= index < len(value) else (False, None)
    return False, None


def checked_key(key: object) -> Any:
    """An index that was evaluated, if it is of a type that can be one."""
    if type(key) in _KEYS:
        return key
    # Natives of Go: what comes from JSON has other names there than what CEL made.
    names = {"null_type": "<nil>", "list": "[]interface {}", "map": "map[string]interface {}"}
    raise EvalError(f"invalid qualifier type: {names.get(kind(key)) or go_name(key)}")
