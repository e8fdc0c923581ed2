"""`cel.@mapInsert`, which the macros `transformMap` and `transformMapEntry` expand to."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import MAP_OF_K_V, Implementation
from gangplan.cel.operators import find_cel_map_entry, format_cel_value
from gangplan.cel.types import Parameter

Map = Mapping[object, object]


def insert(container: Map, key: object, value: object) -> Map:
    """Return a map with one more entry. Raises `EvalError` if the key exists."""
    if find_cel_map_entry(container, key)[0]:
        raise EvalError(f"insert failed: key {format_cel_value(key)} already exists")
    return {**container, key: value}


def insert_all(container: Map, update: Map) -> Map:
    """Return a map with more entries. Raises `EvalError` if a key exists."""
    for key, value in update.items():
        container = insert(container, key, value)
    return container


TABLE = (
    Implementation("@mapInsert_map_map", "cel.@mapInsert", (MAP_OF_K_V, MAP_OF_K_V), insert_all),
    Implementation(
        "@mapInsert_map_key_value", "cel.@mapInsert", (MAP_OF_K_V, Parameter("K"), Parameter("V")), insert
    ),
)
