"""What kustomize makes of the shapes of a cluster's objects, kept from one command to the next.

An outcome follows only from the shape, the cluster's component, the program that builds it and gangplan
itself (`overlay/shape.py`), so kustomize seldom has to start again when a spec changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from gangplan.component import Component
from gangplan.incremental.program import digest_program
from gangplan.incremental.store import RecordStore
from gangplan.objects import Body
from gangplan.tools.kustomize import find_kustomize_engine

#: How many of a cluster's newest shapes are kept; a workspace has some dozens.
MOST = 500


class StoredShapes:
    """The outcomes of one cluster by the keys of their shapes; read when the first is requested."""

    __slots__ = ("_component", "_held", "_name", "_of", "_store")

    def __init__(self, store: RecordStore, cluster: str, component: Component) -> None:
        self._store, self._name, self._component = store, f"shapes/{cluster}", component
        self._held: dict[str, Body] | None = None
        self._of = ""

    def get(self, key: Any) -> Body | None:
        """Return what a shape becomes, if that is known."""
        return self._read().get(_hash_shape_key(key))

    def add(self, made: Mapping[Any, Body]) -> None:
        """Keep more outcomes. If several commands do so at once, the last one wins."""
        held = self._read()
        held |= {_hash_shape_key(key): outcome for key, outcome in made.items()}
        for key in list(held)[:-MOST]:
            del held[key]
        if self._of:
            self._store.put(self._name, {"of": self._of, "shapes": held})

    def _read(self) -> dict[str, Body]:
        if self._held is None:
            self._held = {}
            builder = find_kustomize_engine()
            if builder is not None:
                files = sorted(self._component.files.items())
                parts = [
                    builder.label,
                    digest_program(self._store),
                    *(f"{name}\0{data!r}" for name, data in files),
                ]
                self._of = sha256("\0".join(parts).encode()).hexdigest()
                record = self._store.get(self._name)
                if isinstance(record, dict) and record["of"] == self._of:
                    self._held = record["shapes"]
        return self._held


def _hash_shape_key(key: Any) -> str:
    """Return a short name of a key, which consists of texts, None and tuples of these."""
    return sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]
