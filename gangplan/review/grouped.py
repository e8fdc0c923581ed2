"""Changes of objects by meaning: the same change of many objects is one row, with the objects that it
affects."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from gangplan.findings import FieldPath
from gangplan.records import dataclass
from gangplan.review.meaning import CHANGE_MEANINGS
from gangplan.review.objects import ABSENT_VALUE, ObjectChange

# Steps of a path that say nothing: Kubernetes objects nest their specs.
_SILENT = frozenset(("spec", "template", "replicatedJobs", "metadata"))


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change of a field in some objects: its meaning, the field, both values, and where.

    `objects` are named by kind, namespace and name; values are JSON, empty where there is none.
    """

    meaning: str
    field: str
    before: str
    after: str
    kinds: tuple[str, ...]
    objects: tuple[str, ...]
    runs: int
    teams: tuple[str, ...]
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KindRow:
    """Objects of a kind that were added or removed: how many, of which teams and clusters."""

    what: str
    kind: str
    objects: tuple[str, ...]
    teams: tuple[str, ...]
    clusters: tuple[str, ...]


def group_object_changes_by_meaning(changes: Iterable[ObjectChange]) -> list[ChangeRow]:
    """Return the rows of changed objects, by meaning, then those of most objects first."""
    found: dict[tuple[str, str, str, str], list[ObjectChange]] = {}
    for change in changes:
        for one in change.fields:
            key = (
                one.meaning,
                _format_short_field_path(one.path),
                _format_value_as_json(one.before),
                _format_value_as_json(one.after),
            )
            found.setdefault(key, []).append(change)
    rows = [
        ChangeRow(
            *key,
            kinds=tuple(sorted({one.kind for one in of})),
            objects=tuple(sorted({name_of(one) for one in of})),
            runs=len({(one.cluster, one.team, one.run) for one in of if one.run}),
            teams=tuple(sorted({one.team for one in of} - {""})),
            clusters=tuple(sorted({one.cluster for one in of})),
        )
        for key, of in found.items()
    ]
    order = {meaning: number for number, meaning in enumerate(CHANGE_MEANINGS)}
    return sorted(rows, key=lambda row: (order[row.meaning], -len(row.objects), row.field, row.before))


def group_object_changes_by_kind(changes: Iterable[ObjectChange]) -> list[KindRow]:
    """Return objects that were added or removed, by what happened and kind."""
    found: dict[tuple[str, str], list[ObjectChange]] = {}
    for one in changes:
        if one.what != "changed":
            found.setdefault((one.what, one.kind), []).append(one)
    return [
        KindRow(
            *key,
            objects=tuple(sorted(name_of(one) for one in of)),
            teams=tuple(sorted({one.team for one in of} - {""})),
            clusters=tuple(sorted({one.cluster for one in of})),
        )
        for key, of in sorted(found.items())
    ]


def name_of(change: ObjectChange) -> str:
    """Return `Kind/namespace/name`."""
    return "/".join(part for part in (change.kind, change.namespace, change.name) if part)


def _format_short_field_path(path: FieldPath) -> str:
    """Return `launcher.containers.node.image`: a path without the steps that say nothing."""
    steps = [str(step) for step in path]
    return ".".join([step for step in steps[:-1] if step not in _SILENT] + steps[-1:]) or "(all)"


def _format_value_as_json(value: Any) -> str:
    """Return a value as JSON; empty where there is none."""
    if value is ABSENT_VALUE:
        return ""
    return json.dumps(value, ensure_ascii=False, default=str)
