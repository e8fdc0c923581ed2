"""Explain files without a source of the requested kind: what they contain, and which command imports that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gangplan.imports.kinds import SOURCE_KINDS, SourceKind
from gangplan.imports.sources import read_importable_objects_from_files

# Kinds of jobs that cannot be runs, and what to do instead.
_ELSEWHERE = {
    "RayJob": "A run has no Ray cluster; import what its entrypoint starts as a spec of your own.",
    "RayCluster": "A run has no Ray cluster; import what its programs start as a spec of your own.",
    "SparkApplication": "gangplan runs no Spark.",
    "CronJob": "Import the Job in its jobTemplate, and write schedule: in the spec.",
    "Pod": "Put it into a Job, and import that: gangplan import job.",
    "Deployment": "It serves, and never ends: a run trains.",
}


def describe_missing_source_kind(kind: SourceKind, files: Sequence[Path]) -> tuple[str, str]:
    """Return the message and help for files without a source of a kind; they name other jobs in the files."""
    message, help = f"there is no {kind.label} in it", "Name another kind, or other files."
    if kind.finder is not None:
        return message, help
    sources, _ = read_importable_objects_from_files(files, lambda value: "kind" in value, {})
    for source in sources:
        value: Any = source.value
        name, version = str(value.get("kind")), str(value.get("apiVersion"))
        told = f"{message}, but a {name} of {version}"
        readers = [
            other.name for other in SOURCE_KINDS.values() if other.finder is None and other.takes(value)
        ]
        if readers:
            return told, f"Write gangplan import {readers[0]}."
        if name in _ELSEWHERE:
            return told, _ELSEWHERE[name]
        same = next((other for other in SOURCE_KINDS.values() if other.label == name), None)
        if same is not None:
            return told, f"gangplan reads no {name} of that API; docs/import.md says which."
    return message, help
