"""Parts: mappings and lists that many objects share, identified by their id.

Objects are never changed in place. So everything known about a part is true wherever it occurs, and a memo
can use its id instead of its content. A held part lives as long as its holder, so no other object can get
its id in the meantime (docs/decisions/0022-parts.md).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

# The most parts that one worker holds; any others are read each time.
MOST = 50_000


class SharedParts:
    """The parts that a worker expects to meet again. A held part is never released."""

    __slots__ = ("_held", "_most", "ids")

    def __init__(self, most: int = MOST) -> None:
        self._held: dict[int, Any] = {}
        self._most = most
        self.ids: Container[int] = self._held.keys()

    def hold(self, part: dict[str, Any] | list[Any]) -> None:
        """Hold a mapping or list that must not change from now on."""
        if len(self._held) < self._most:
            self._held[id(part)] = part

    def __len__(self) -> int:
        return len(self._held)
