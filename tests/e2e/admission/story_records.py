"""Stories as they were played to a Kueue, recorded as lines of JSON and replayed offline."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.e2e.admission.plots import Plot
from tests.e2e.admission.recording import plain_world, world_of
from tests.e2e.admission.story import State, Step, Told, simulated

Object = dict[str, Any]


def line(profile: str, seed: int, number: int, plot: Plot, versions: Any, told: Told) -> str:
    """Return one story as a line of JSON."""
    return json.dumps(
        {
            "profile": profile,
            "seed": seed,
            "number": number,
            "fair": plot.fair,
            "times": told.times,
            "world": plain_world(plot.scene.world(versions, plot.fair)),
            "runs": {one.name: one.judged for one in plot.questions},
            "steps": [asdict(step) for step in told.steps],
            "seen": [_plain(state) for state in told.seen],
            "trouble": told.trouble,
        },
        separators=(",", ":"),
    )


def lines_of(path: Path) -> list[Object]:
    """Return the lines of a file, compressed or plain; none if the file does not exist yet."""
    if not path.exists():
        return []
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(one) for one in text.decode().splitlines()]


def retold(path: Path) -> Iterator[Told]:
    """Yield the stories of a file, told by the current simulation."""
    for one in lines_of(path):
        world = world_of(one["world"])
        steps = [Step(**step) for step in one["steps"]]
        yield Told(
            f"{one['profile']} {one['seed']}/{one['number']}",
            one["fair"],
            steps,
            simulated(world, one["runs"], steps),
            [State(frozenset(state["in"]), frozenset(state["gone"])) for state in one["seen"]],
            sum(body["kind"] == "ResourceFlavor" for body in world.standing),
            one["trouble"],
            one["times"],
        )


def _plain(state: State) -> Object:
    return {"in": sorted(state.admitted), "gone": sorted(state.preempted)}
