"""What Git has for a cluster: the files of its rendered tree, and how each object is applied."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from pathlib import Path

from gangplan.gitops.record import STATE, STOPPED
from gangplan.model import syncing
from gangplan.model.backend import BY_KIND
from gangplan.objects import Body, Ref, ref_of
from gangplan.records import dataclass
from gangplan.source import load_objects
from gangplan.workspace import RENDERED

#: In this order: queues and policies, then what is in the namespaces of teams, then runs.
PARTS = ("platform", "tenants", "runs")


class Way(Enum):
    """How an object is applied."""

    APPLY = "each time"
    ONCE = "if it is not there, because its controllers go on with it"
    REPLACE = "in place of the run whose record it is"
    NEVER = "never, because it is archived"


@dataclass(frozen=True, slots=True)
class Item:
    """An object of the tree: its file below rendered/, its index there, and its sync wave."""

    path: str
    index: int
    body: Body
    wave: int
    way: Way

    @property
    def ref(self) -> Ref:
        """The reference to the object."""
        return ref_of(self.body)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Objects that stop at the first wave with a refused one: the platform, a team, or a run.

    `unit` is what is pruned together: `platform`, `tenants/TEAM` or `runs/TEAM`.
    """

    unit: str
    items: tuple[Item, ...]

    @property
    def part(self) -> str:
        """The part of the tree."""
        return self.unit.partition("/")[0]

    @property
    def team(self) -> str:
        """The team that it belongs to; empty for the platform."""
        return self.unit.partition("/")[2]


def groups_of(root: Path, cluster: str, without: Collection[str] = ()) -> list[Group]:
    """Return the groups of a cluster's tree in the order of its parts, without some files (paths below
    rendered/).

    Raises ManifestError for a file that is not a stream of objects, which `render --check` finds first.
    """
    top = root / RENDERED
    found: dict[tuple[str, str], list[Item]] = {}
    for part in PARTS:
        for file in sorted((top / cluster / part).rglob("*.yaml")):
            path = file.relative_to(top).as_posix()
            if path in without or file.is_symlink():
                continue
            key = unit_of(path), path if part == "runs" else ""
            found.setdefault(key, []).extend(_items(path, file))
    return [Group(unit, tuple(sorted(items, key=_place))) for (unit, _), items in found.items()]


def unit_of(path: str) -> str:
    """Return the unit of a file, by its path below rendered/."""
    _, part, *rest = path.split("/")
    return part if part == "platform" or not rest else f"{part}/{rest[0]}"


def _items(path: str, file: Path) -> Sequence[Item]:
    bodies = load_objects(file.read_text(encoding="utf-8"))
    return [Item(path, index, body, wave_of(body), way_of(body)) for index, body in enumerate(bodies)]


def _place(item: Item) -> tuple[int, str, int]:
    return item.wave, item.path, item.index


def wave_of(body: Body) -> int:
    """Return the sync wave of an object."""
    return int(_notes(body).get(syncing.WAVE) or 0)


def way_of(body: Body) -> Way:
    """Return how an object is applied, by its annotations for engines."""
    notes = _notes(body)
    if notes.get(syncing.HOOK) == syncing.SKIPPED:
        return Way.NEVER
    if set(syncing.REPLACED) <= set(syncing.options_of(notes)):
        return Way.REPLACE
    if body["kind"] in BY_KIND and not is_record(body):
        return Way.ONCE
    return Way.APPLY


def is_record(body: Body) -> bool:
    """Return whether an object belongs to a run that is over (gitops/record.py)."""
    return bool(_notes(body).get(STATE) == STOPPED)


def guards_of(body: Body) -> set[str]:
    """Return the options of an object in a cluster that limit pruning: `Prune=false`, `Prune=confirm`, or
    none."""
    return {syncing.NEVER_PRUNED, syncing.ASKED_FIRST} & set(syncing.options_of(_notes(body)))


def _notes(body: Body) -> Body:
    return body["metadata"].get("annotations") or {}
