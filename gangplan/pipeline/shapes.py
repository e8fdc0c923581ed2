"""What kustomize made of the shapes of a cluster's objects, kept from one command to the next.

An outcome follows from the shape, the cluster's component, the program that builds it and gangplan itself,
and from nothing else (`overlay/shape.py`), so a spec that changes seldom needs kustomize to start again.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from gangplan.component import Component
from gangplan.incremental.program import program
from gangplan.incremental.store import Store
from gangplan.objects import Body
from gangplan.tools.kustomize import engine

#: Shapes that are kept of a cluster, the newest; a workspace has some dozens.
MOST = 500


class KeptShapes:
    """The outcomes of one cluster by the keys of their shapes; read when the first is asked for."""

    __slots__ = ("_component", "_held", "_name", "_of", "_store")

    def __init__(self, store: Store, cluster: str, component: Component) -> None:
        self._store, self._name, self._component = store, f"shapes/{cluster}", component
        self._held: dict[str, Body] | None = None
        self._of = ""

    def get(self, key: Any) -> Body | None:
        """What a shape becomes, where that is known."""
        return self._read().get(_digest(key))

    def add(self, made: Mapping[Any, Body]) -> None:
        """Keep more. Of commands that do so at once, the last one wins."""
        held = self._read()
        held |= {_digest(key): outcome for key, outcome in made.items()}
        for key in list(held)[:-MOST]:
            del held[key]
        if self._of:
            self._store.put(self._name, {"of": self._of, "shapes": held})

    def _read(self) -> dict[str, Body]:
        if self._held is None:
            self._held = {}
            builder = engine()
            if builder is not None:
                files = sorted(self._component.files.items())
                parts = [builder.label, program(self._store), *(f"{name}\0{data!r}" for name, data in files)]
                self._of = sha256("\0".join(parts).encode()).hexdigest()
                record = self._store.get(self._name)
                if isinstance(record, dict) and record["of"] == self._of:
                    self._held = record["shapes"]
        return self._held


def _digest(key: Any) -> str:
    """A short name of a key, which is of texts, None and tuples of these."""
    return sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]
