"""Answers that are kept: by everything that they are made from, and never too many of them."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
# More than the different runs of a team; a memo that fills up starts again with nothing.
MOST = 2048


def key_of(*parts: Any) -> bytes | None:
    """A digest of plain data (dicts, lists, tuples, texts, numbers, None); None where something is not plain.

    Equal digests are equal data, types and the order of keys included; that is all that a memo needs. Version
    2 of the format has no references, which would tell equal data apart by who else holds it. The data of a
    run are a kilobyte, of which a worker would hold tens of thousands.
    """
    try:
        return blake2b(marshal.dumps(parts, 2), digest_size=20).digest()
    except ValueError:
        return None


class Memo(Generic[Value]):
    """Answers by key. What makes an answer must read nothing but what its key is made of."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[bytes, Value] = {}

    def answer(self, key: bytes | None, make: Callable[[], Value]) -> Value:
        """The answer to a key, made where it is not known; without a key it is always made."""
        if key is None:
            return make()
        if key not in self._known:
            made = make()
            if len(self._known) >= self._most:
                self._known.clear()
            self._known[key] = made
        return self._known[key]

    def __len__(self) -> int:
        return len(self._known)


class Seen:
    """Keys that were met."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._keys: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        """Note one; a set that is full starts again with nothing."""
        if len(self._keys) >= self._most:
            self._keys.clear()
        self._keys.add(key)

    def __len__(self) -> int:
        return len(self._keys)
