"""Runs in their worlds as the proofs see them: valid ones, and ones with a random mistake."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from gangplan.pipeline import checks
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.validate.world import BuiltRun, World

Judged = tuple[World, BuiltRun]
Path_ = tuple[str | int, ...]
# Values that have a meaning somewhere.
ODD: tuple[Any, ...] = (
    *(
        None,
        0,
        1,
        3,
        64,
        True,
        False,
        "",
        "default",
        "team-001",
        "team-000",
        "h100",
        "cpu",
        "8",
        "900",
        "1Ti",
    ),
    *("Hold", "Never", "Any", "restricted", "Exists", {}, [], ["Ingress"]),
)


def judged(root: Path) -> list[Judged]:
    """Return every run of a workspace for which the proofs are called."""
    seen: list[Judged] = []

    def catch(world: World, run: BuiltRun) -> dict[str, list[Any]]:
        seen.append((world, run))
        return {}

    with mock.patch.object(checks, "run_all_proofs", catch):
        preview_render(Request(root, engine="serial"))
    return seen


def places(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every field and item."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in pairs:
        yield (*at, key)
        yield from places(inside, (*at, key))


@st.composite
def changed(draw: st.DrawFn, body: dict[str, Any]) -> dict[str, Any]:
    """Draw an object with one field changed or removed, but never its kind or name."""
    every = [
        at for at in places(body) if at[0] not in ("kind", "apiVersion") and at[:2] != ("metadata", "name")
    ]
    at = draw(st.sampled_from(every))
    out = copy.deepcopy(body)
    inner: Any = out
    for step in at[:-1]:
        inner = inner[step]
    if draw(st.integers(0, 3)) == 0:
        del inner[at[-1]]
    else:
        inner[at[-1]] = draw(st.sampled_from(ODD))
    return out


@st.composite
def mistaken(draw: st.DrawFn, run: BuiltRun) -> BuiltRun:
    """Draw a run with a mistake in one of its objects."""
    at = draw(st.sampled_from(range(len(run.bodies))))
    body = draw(changed(run.bodies[at]))
    return BuiltRun(run.unit, (*run.bodies[:at], body, *run.bodies[at + 1 :]), run.generated)


@st.composite
def shaken(draw: st.DrawFn, world: World) -> World:
    """Draw a world with a mistake in one of its objects."""
    at = draw(st.sampled_from(range(len(world.standing))))
    body = draw(changed(world.standing[at]))
    return replace(world, standing=(*world.standing[:at], body, *world.standing[at + 1 :]))


def outcome(ask: Callable[[], Any]) -> Any:
    """Return the answer, or the type of the exception: the gate would stop some objects with a mistake."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001
        return type(error)
