"""Defaults as a table: paths in, missing fields filled.

A path such as `spec.ports[].protocol` walks fields, and every entry of a list at `[]`. The last step is set
where the mapping around it is there and lacks it (or holds null): the rule of structural schemas
(apiextensions v0.34, pkg/apiserver/schema/defaulting). A mapping that is a default stands before its fields.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

Table = Iterable[tuple[str, Any]]


def fill(body: Any, table: Table) -> None:
    """Set what is missing, in place."""
    for path, value in table:
        *way, last = path.split(".")
        for place in _places(body, way):
            if place.get(last) is None:
                place[last] = copy.deepcopy(value)


def _places(value: Any, way: list[str]) -> Iterator[dict[str, Any]]:
    """The mappings that a path leads to."""
    if not way:
        if isinstance(value, dict):
            yield value
        return
    name, is_list = way[0].removesuffix("[]"), way[0].endswith("[]")
    inner = value.get(name) if isinstance(value, dict) else None
    if not is_list:
        yield from _places(inner, way[1:])
    elif isinstance(inner, list):
        for entry in inner:
            yield from _places(entry, way[1:])


def places(value: Any, path: str) -> Iterator[dict[str, Any]]:
    """The mappings at a path; `[]` at its end gives every entry of the list."""
    return _places(value, path.split(".") if path else [])


def mapping(body: dict[str, Any], name: str) -> dict[str, Any]:
    """The mapping at a field, made when it is not there; another value stays, and what is set is lost."""
    inner = body.setdefault(name, {})
    return inner if isinstance(inner, dict) else {}
