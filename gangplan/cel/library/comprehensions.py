"""`cel.@mapInsert`, which the macros `transformMap` and `transformMapEntry` expand to."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import MAP, Implementation
from gangplan.cel.operators import find, show
from gangplan.cel.types import Parameter

Map = Mapping[object, object]


def insert(container: Map, key: object, value: object) -> Map:
    """Return a map with one more entry. Raises `EvalError` if the key exists."""
    if find(container, key)[0]:
        raise EvalError(f"insert failed: key {show(key)} already exists")
    return {**container, key: value}


def insert_all(container: Map, update: Map) -> Map:
    """Return a map with more entries. Raises `EvalError` if a key exists."""
    for key, value in update.items():
        container = insert(container, key, value)
    return container


TABLE = (
    Implementation("@mapInsert_map_map", "cel.@mapInsert", (MAP, MAP), insert_all),
    Implementation(
        "@mapInsert_map_key_value", "cel.@mapInsert", (MAP, Parameter("K"), Parameter("V")), insert
    ),
)
