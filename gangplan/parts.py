"""Mappings and lists that many objects have in common: one and the same part, which its id stands for.

Objects are never changed in place. So whatever was found out about a part holds wherever the part is met
again, and a memo need not look at it but ask who it is. A part that is held lives as long as who holds it,
and no other can have its id meanwhile (docs/decisions/0022-parts.md).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

# Parts of one worker; what is met beyond is a part like any other, and looked at each time.
MOST = 50_000


class Parts:
    """The parts that one worker knows to come again. Those held stay held."""

    __slots__ = ("_held", "_most", "ids")

    def __init__(self, most: int = MOST) -> None:
        self._held: dict[int, Any] = {}
        self._most = most
        self.ids: Container[int] = self._held.keys()

    def hold(self, part: dict[str, Any] | list[Any]) -> None:
        """Hold a mapping or list that is never changed from now on."""
        if len(self._held) < self._most:
            self._held[id(part)] = part

    def __len__(self) -> int:
        return len(self._held)
