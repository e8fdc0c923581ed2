"""The files that a run or a cluster is made from, asked by field: every answer is a cause with its place."""

from __future__ import annotations

from typing import Any

from gangplan.findings import Location
from gangplan.records import dataclass
from gangplan.source import Document
from gangplan.trace.cause import Cause, Path
from gangplan.validate.problems import dotted

NAMES = {
    "spec": "the spec",
    "team": "the team's file",
    "cluster": "the cluster's file",
    "catalog": "the catalog",
}


@dataclass(frozen=True, slots=True)
class Files:
    """Documents by role: spec (none for what stands on a cluster), team, cluster, catalog."""

    spec: Document | None = None
    team: Document | None = None
    cluster: Document | None = None
    catalog: Document | None = None

    def value(self, role: str, *path: str | int) -> Any:
        """What is written at a path; None for nothing."""
        document = getattr(self, role)
        return at(document.value, path) if document else None

    def has(self, role: str, *path: str | int) -> bool:
        """Whether something is written there."""
        return self.value(role, *path) is not None

    def cause(self, role: str, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """The field as a cause: where it stands, or where it would. `key` points to its name."""
        document: Document | None = getattr(self, role)
        if document is None:
            return own(because or f"{dotted(path)} of {NAMES[role]}")
        written = at(document.value, path) is not None
        file, there = document.home(path)
        words = because or f"{dotted(path)} in {NAMES[role]}"
        if file != document.file:  # of a spec by template
            words = words.replace("in the spec", "in the template")
        if not written and not because:
            words = f"{dotted(path)} is not in {NAMES[role]}: a default holds"
        return Cause(document.where(path, key=key), words, file, there, written)

    def home(self, role: str) -> Location:
        """The place of a whole file."""
        document: Document | None = getattr(self, role)
        return Location(document.file, 1, 1) if document else Location("")


def own(because: str) -> Cause:
    """What gangplan decides itself."""
    return Cause(None, because)


def at(value: Any, path: Path) -> Any:
    """What stands at a path of nested mappings and lists; None for nothing."""
    for step in path:
        is_entry = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not is_entry and not (isinstance(value, dict) and step in value):
            return None
        value = value[step]
    return value
