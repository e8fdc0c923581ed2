"""Caches of limited size, keyed by everything that an answer depends on."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
# More than the different runs of a team; a full memo is emptied.
MOST = 2048


def digest_memo_key(*parts: Any) -> bytes | None:
    """Return a digest of plain data, or None if something in it is not plain.

    Plain are dicts, lists, tuples, texts, numbers and None. Equal digests mean equal data, types and the
    order of keys included; a memo needs no more. Version 2 of the format has no references, which would
    distinguish equal data by who else holds them. The data of a run are a kilobyte; a worker would hold tens
    of thousands of them.
    """
    try:
        return blake2b(marshal.dumps(parts, 2), digest_size=20).digest()
    except ValueError:
        return None


class Memo(Generic[Value]):
    """Answers by key. The function that makes an answer must depend only on what its key covers."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[bytes, Value] = {}

    def answer(self, key: bytes | None, make: Callable[[], Value]) -> Value:
        """Return the answer for a key, made if it is not known; without a key it is always made."""
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


class SeenKeys:
    """A set of keys of limited size."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._keys: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        """Add a key; a full set is emptied first."""
        if len(self._keys) >= self._most:
            self._keys.clear()
        self._keys.add(key)

    def __len__(self) -> int:
        return len(self._keys)
