"""One change to an object: where, and what; small enough for a case file."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """Puts a value at a path (an index equal to a list's length appends), or drops the value there."""

    at: Place
    put: Any = None
    drop: bool = False

    def as_case(self) -> Object:
        """Return the edit for a case file."""
        return {"at": list(self.at), "drop": True} if self.drop else {"at": list(self.at), "put": self.put}

    @staticmethod
    def of(case: Object) -> Edit:
        """Return the edit in a case file."""
        return Edit(tuple(case["at"]), case.get("put"), bool(case.get("drop")))


def edited(body: Object, edits: tuple[Edit, ...]) -> Object:
    """Return a copy of an object with the edits made in order."""
    result = copy.deepcopy(body)
    for edit in edits:
        *way, last = edit.at
        node: Any = result
        for step in way:
            if isinstance(node, dict) and step not in node:
                node[step] = {}
            node = node[step]
        if edit.drop:
            del node[last]
        elif isinstance(node, list) and last == len(node):
            node.append(copy.deepcopy(edit.put))
        else:
            node[last] = copy.deepcopy(edit.put)
    return result


def at(value: Any, path: Place) -> Any:
    """Return the value at a path, or None."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def nodes(value: Any, path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every field and entry below a value, with its path."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in entries:
        yield (*path, key), item
        yield from nodes(item, (*path, key))
