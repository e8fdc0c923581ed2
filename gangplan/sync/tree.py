"""What Git has for a cluster: the files of its rendered tree, and how each object is applied."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from pathlib import Path

from gangplan.gitops.record import STATE_ANNOTATION, STOPPED_STATE
from gangplan.model import syncing
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.objects import Body, Ref, ref_of
from gangplan.records import dataclass
from gangplan.source import load_objects
from gangplan.workspace import RENDERED

#: In this order: queues and policies, then what is in the namespaces of teams, then runs.
TREE_PARTS = ("platform", "tenants", "runs")


class ApplyMethod(Enum):
    """How an object is applied."""

    APPLY = "each time"
    ONCE = "if it is not there, because its controllers go on with it"
    REPLACE = "in place of the run whose record it is"
    NEVER = "never, because it is archived"


@dataclass(frozen=True, slots=True)
class SyncItem:
    """An object of the tree: its file below rendered/, its index there, and its sync wave."""

    path: str
    index: int
    body: Body
    wave: int
    way: ApplyMethod

    @property
    def ref(self) -> Ref:
        """The reference to the object."""
        return ref_of(self.body)


@dataclass(frozen=True, slots=True, eq=False)
class SyncGroup:
    """Objects that stop at the first wave with a refused one: the platform, a team, or a run.

    `unit` is what is pruned together: `platform`, `tenants/TEAM` or `runs/TEAM`.
    """

    unit: str
    items: tuple[SyncItem, ...]

    @property
    def part(self) -> str:
        """The part of the tree."""
        return self.unit.partition("/")[0]

    @property
    def team(self) -> str:
        """The team that it belongs to; empty for the platform."""
        return self.unit.partition("/")[2]


def read_sync_groups(root: Path, cluster: str, without: Collection[str] = ()) -> list[SyncGroup]:
    """Return the groups of a cluster's tree in the order of its parts, without some files (paths below
    rendered/).

    Raises ManifestError for a file that is not a stream of objects, which `render --check` finds first.
    """
    top = root / RENDERED
    found: dict[tuple[str, str], list[SyncItem]] = {}
    for part in TREE_PARTS:
        for file in sorted((top / cluster / part).rglob("*.yaml")):
            path = file.relative_to(top).as_posix()
            if path in without or file.is_symlink():
                continue
            key = find_prune_unit(path), path if part == "runs" else ""
            found.setdefault(key, []).extend(_load_sync_items(path, file))
    return [
        SyncGroup(unit, tuple(sorted(items, key=_build_sync_order_key))) for (unit, _), items in found.items()
    ]


def find_prune_unit(path: str) -> str:
    """Return the unit of a file, by its path below rendered/."""
    _, part, *rest = path.split("/")
    return part if part == "platform" or not rest else f"{part}/{rest[0]}"


def _load_sync_items(path: str, file: Path) -> Sequence[SyncItem]:
    bodies = load_objects(file.read_text(encoding="utf-8"))
    return [
        SyncItem(path, index, body, wave_of(body), determine_apply_method(body))
        for index, body in enumerate(bodies)
    ]


def _build_sync_order_key(item: SyncItem) -> tuple[int, str, int]:
    return item.wave, item.path, item.index


def wave_of(body: Body) -> int:
    """Return the sync wave of an object."""
    return int(_read_object_annotations(body).get(syncing.ARGO_SYNC_WAVE) or 0)


def determine_apply_method(body: Body) -> ApplyMethod:
    """Return how an object is applied, by its annotations for engines."""
    notes = _read_object_annotations(body)
    if notes.get(syncing.ARGO_HOOK) == syncing.SKIP_HOOK:
        return ApplyMethod.NEVER
    if set(syncing.REPLACE_OPTIONS) <= set(syncing.read_sync_options(notes)):
        return ApplyMethod.REPLACE
    if body["kind"] in BACKEND_BY_KIND and not is_record(body):
        return ApplyMethod.ONCE
    return ApplyMethod.APPLY


def is_record(body: Body) -> bool:
    """Return whether an object belongs to a run that is over (gitops/record.py)."""
    return bool(_read_object_annotations(body).get(STATE_ANNOTATION) == STOPPED_STATE)


def find_prune_guards(body: Body) -> set[str]:
    """Return the options of an object in a cluster that limit pruning: `Prune=false`, `Prune=confirm`, or
    none."""
    return {syncing.NEVER_PRUNED, syncing.PRUNE_CONFIRMED} & set(
        syncing.read_sync_options(_read_object_annotations(body))
    )


def _read_object_annotations(body: Body) -> Body:
    return body["metadata"].get("annotations") or {}
