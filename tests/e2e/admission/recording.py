"""Questions with the answers of a real Kueue, kept in a file to compare with gangplan without a lab."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.world import NodeGroup, NodeGroupTaint, World

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What happened to a run: `outcome` is admitted, pending, refused (at once) or silent (no Workload)."""

    outcome: str
    reason: str = ""
    message: str = ""
    assignment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    requests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of the whole pod set
    bound: int = 0
    pods: int = 0
    unbound: str = ""
    turns: tuple[tuple[str, str], ...] = ()  # reasons and messages that alternate forever

    @property
    def said(self) -> tuple[tuple[str, str], ...]:
        """Its reasons and messages: one, or those that alternate forever."""
        return self.turns or ((self.reason, self.message),)

    @property
    def fits(self) -> bool:
        """Whether every pod got a node."""
        return self.outcome == "admitted" and self.bound == self.pods


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, by name, and what the control plane of some versions did."""

    name: str
    profile: str
    world: World
    bodies: tuple[Object, ...]
    seen: Seen
    edits: tuple[str, ...] = ()
    mistake: str = ""
    asked: int = 1  # how often, until both sides agreed or patience ended

    @property
    def place(self) -> tuple[str, str, str]:
        """The world in which it was asked: profile, seed, world."""
        return self.profile, self.name.partition("/")[0], self.world.cluster


def write(path: Path, answers: Iterable[Answer]) -> None:
    """Write one line per world, then one per question in it; the same answers give the same bytes."""
    lines: list[Object] = []
    place = ("", "", "")
    for one in answers:
        if one.place != place:
            place = one.place
            lines.append({"profile": one.profile, "mistake": one.mistake, "world": plain_world(one.world)})
        lines.append(
            {
                "name": one.name,
                "profile": one.profile,
                "world": one.world.cluster,
                "edits": list(one.edits),
                "asked": one.asked,
                "bodies": list(one.bodies),
                "seen": asdict(one.seen),
            }
        )
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> Iterator[Answer]:
    """Yield the answers in a file, in order."""
    lines = map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
    for line in lines:
        if "seen" not in line:
            world, mistake = world_of(line["world"]), line["mistake"]
            continue
        yield Answer(
            line["name"],
            line["profile"],
            world,
            tuple(line["bodies"]),
            Seen(**{**line["seen"], "turns": tuple(map(tuple, line["seen"].get("turns", ())))}),
            tuple(line["edits"]),
            mistake,
            line.get("asked", 1),
        )


def plain_world(world: World) -> Object:
    """Return a world as plain JSON data."""
    return {
        "cluster": world.cluster,
        "versions": asdict(world.versions),
        "standing": list(world.standing),
        "fair_sharing": world.fair_sharing,
        "nodes": [
            {
                "name": group.name,
                "count": group.count,
                "labels": dict(group.labels),
                "taints": [asdict(taint) for taint in group.taints],
                "free": {name: str(value) for name, value in group.free.items()},
                "domains": [list(domain) for domain in group.domains],
            }
            for group in world.nodes
        ],
    }


def world_of(plain: Object) -> World:
    """Return the world that a file describes."""
    groups = tuple(
        NodeGroup(
            group["name"],
            group["count"],
            group["labels"],
            tuple(NodeGroupTaint(**taint) for taint in group["taints"]),
            {name: Fraction(value) for name, value in group["free"].items()},
            tuple((level, nodes) for level, nodes in group["domains"]),
        )
        for group in plain["nodes"]
    )
    versions = SchemaVersions(**plain["versions"])
    return World(plain["cluster"], versions, tuple(plain["standing"]), groups, plain["fair_sharing"])
