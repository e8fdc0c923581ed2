"""Worlds and runs for tests of the admission solver: one base, changed by small edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

from gangplan.source import load_objects
from gangplan.validate.apiserver.forms import parse_accepted_amount
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.world import NodeGroup, NodeGroupTaint, World

Body = dict[str, Any]
HERE = Path(__file__).parent
VERSIONS = SchemaVersions(kubernetes="1.34", trainer="2.2", kueue="0.19", jobset="0.11")


def table() -> Body:
    """Return the base and the cases."""
    (found,) = load_objects((HERE / "cases.yaml").read_text(encoding="utf-8"))
    return found


def edited(scene: Body, edits: Sequence[Body]) -> Body:
    """Return a scene (standing, run, nodes, kueue) after some edits.

    `in: Kind/name` with `at: a.b[0].c` and `set: value` or `drop: true`; `in` alone with `drop: true` removes
    the object; `add: object` adds an object; `kueue: "0.15"` changes the version.
    """
    scene = deepcopy(scene)
    for edit in edits:
        if "kueue" in edit:
            scene["kueue"] = edit["kueue"]
        elif "add" in edit:
            scene["run" if edit.get("to") == "run" else "standing"].append(edit["add"])
        elif "nodes" in edit:
            scene["nodes"] = edit["nodes"]
        else:
            _edit(scene, edit)
    return scene


def _edit(scene: Body, edit: Body) -> None:
    kind, _, name = edit["in"].partition("/")
    for bodies in (scene["standing"], scene["run"]):
        for body in list(bodies):
            if body["kind"] == kind and (not name or body["metadata"]["name"] == name):
                if "at" not in edit:
                    bodies.remove(body)
                    return
                _set(body, edit)
                return
    raise AssertionError(f"there is no {edit['in']}")


def _set(body: Body, edit: Body) -> None:
    at: Any = body
    steps = edit["at"] if isinstance(edit["at"], list) else edit["at"].split(".")
    for step in steps[:-1]:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
    last = int(steps[-1]) if isinstance(at, list) else steps[-1]
    if edit.get("drop"):
        del at[last]
    else:
        at[last] = edit["set"]


def world_of(scene: Body) -> World:
    """Return the scene's world."""
    versions = SchemaVersions(
        VERSIONS.kubernetes, VERSIONS.trainer, scene.get("kueue", "0.19"), VERSIONS.jobset
    )
    groups = tuple(node_group(**group) for group in scene.get("nodes") or ())
    return World("lab", versions, tuple(scene["standing"]), groups)


def node_group(
    name: str,
    count: int,
    free: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    domains: Sequence[Sequence[Any]] = (),
) -> NodeGroup:
    """Return nodes of one shape."""
    return NodeGroup(
        name,
        count,
        labels or {},
        tuple(NodeGroupTaint(one["key"], one.get("value", ""), one["effect"]) for one in taints),
        {resource: Fraction(parse_accepted_amount(value).nano, 10**9) for resource, value in free.items()},
        tuple((str(label), int(size)) for label, size in domains),
    )
