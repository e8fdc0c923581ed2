"""Compare built objects with generated ones to find the parts that a patch of the overlay wrote."""

from __future__ import annotations

from typing import Any

from gangplan.component import Component
from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.trace.cause import Cause

# Fields that identify entries of a list, in order of preference.
NAMES = ("name", "mountPath", "key", "nodeLabel", "group")


def trace_path_back_through_patch(before: Any, built: Any, path: FieldPath) -> FieldPath | None:
    """Return the path in the generated object of a part of the built one; None if a patch decided it.

    A part that is in neither keeps its path. List entries are matched by position, otherwise by content.
    """
    way: list[str | int] = []
    for step in path:
        if isinstance(built, list) and isinstance(step, int) and step < len(built):
            entry = built[step]
            place = _trace_index_back_through_patch(before if isinstance(before, list) else [], built, step)
            if place is None:
                return None
            way.append(place)
            before, built = before[place], entry
        else:
            way.append(step)
            built_has = isinstance(built, dict) and step in built
            before_has = isinstance(before, dict) and step in before
            if built_has != before_has:
                return None
            before = before[step] if before_has else None
            built = built[step] if built_has else None
    is_leaf = not isinstance(built, dict | list) or not built
    return None if (is_leaf and before != built) else tuple(way)


def _trace_index_back_through_patch(before: list[Any], built: list[Any], index: int) -> int | None:
    entry = built[index]
    same = before[index] if index < len(before) else None
    if len(before) == len(built) and _is_same(same, entry):
        return index
    for place, one in enumerate(before):
        if one == entry:
            return place
    for name in NAMES:
        for place, one in enumerate(before):
            if (
                isinstance(one, dict)
                and isinstance(entry, dict)
                and name in entry
                and one.get(name) == entry[name]
            ):
                return place
    return (
        index
        if len(before) == len(built) and isinstance(same, type(entry)) and isinstance(entry, dict)
        else None
    )


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two entries are the same one: equal, or mappings with the same name."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(one.get(name) == other.get(name) for name in NAMES)
    return bool(one == other)


def trace_patch_causes(component: Component, before: Body, built: Body, path: FieldPath) -> list[Cause]:
    """Return the patch that wrote a part of a built object."""
    where = component.place_of(path, before, built)
    pointer = "/".join(("", *map(str, path)))
    return [Cause(where, f"a patch of the overlay writes {pointer}", where.file, ())]


def is_touched(component: Component, body: Body) -> bool:
    """Return whether any patch targets the object."""
    return any(patch.target.matches(body) for patch in component.patches)
