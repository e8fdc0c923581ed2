"""Look up fields in the files that a run or a cluster comes from; every answer is a cause with its place."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath, Location
from gangplan.records import dataclass
from gangplan.source import Document
from gangplan.trace.cause import Cause
from gangplan.validate.problems import format_path

NAMES = {
    "spec": "the spec",
    "team": "the team's file",
    "cluster": "the cluster's file",
    "catalog": "the catalog",
}


@dataclass(frozen=True, slots=True)
class TracedFiles:
    """Documents by role: spec (none for objects of a cluster), team, cluster, catalog."""

    spec: Document | None = None
    team: Document | None = None
    cluster: Document | None = None
    catalog: Document | None = None

    def value(self, role: str, *path: str | int) -> Any:
        """Return the value at a path, or None."""
        document = getattr(self, role)
        return find_value_at(document.value, path) if document else None

    def has(self, role: str, *path: str | int) -> bool:
        """Return whether the file has a value at a path."""
        return self.value(role, *path) is not None

    def cause(self, role: str, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """Return a field as a cause, at its place or where it could be written; `key` points to its name."""
        document: Document | None = getattr(self, role)
        if document is None:
            return build_own_cause(because or f"{format_path(path)} of {NAMES[role]}")
        written = find_value_at(document.value, path) is not None
        file, there = document.home(path)
        words = because or f"{format_path(path)} in {NAMES[role]}"
        if file != document.file:  # from a template of the spec
            words = words.replace("in the spec", "in the template")
        if not written and not because:
            words = f"{format_path(path)} is not in {NAMES[role]}: a default holds"
        return Cause(
            document.where(path, key=key), words, file, there, written, through=document.through(path)
        )

    def home(self, role: str) -> Location:
        """Return the start of the file as its place."""
        document: Document | None = getattr(self, role)
        return Location(document.file, 1, 1) if document else Location("")


def build_own_cause(because: str) -> Cause:
    """Return the cause of something that gangplan decides itself."""
    return Cause(None, because)


def find_value_at(value: Any, path: FieldPath) -> Any:
    """Return the value at a path of nested mappings and lists, or None."""
    for step in path:
        is_entry = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not is_entry and not (isinstance(value, dict) and step in value):
            return None
        value = value[step]
    return value
