"""The table of cases: what patches do to the policies of a run, and what the proof reports."""

from __future__ import annotations

import copy
import fnmatch
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gangplan.validate.network import check_reachability
from gangplan.validate.world import BuiltRun, World
from tests import plain
from tests.network.base import SPECS, workspace, worlds

Body = dict[str, Any]
CASES: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[World, BuiltRun]]:
    """Return the world and run of every spec of the small workspace."""
    return worlds(workspace(tmp_path_factory.mktemp("network")))


@pytest.mark.parametrize("name", SPECS)
def test_rendered_policies_are_reachable_and_closed(
    name: str, known: dict[str, tuple[World, BuiltRun]]
) -> None:
    found = [problem.rule for _, problem in check_reachability(*known[name])]
    assert found == (["rdma-bypasses-policy"] if name == "fabric" else [])


@pytest.mark.parametrize("name", CASES)
def test_each_patched_policy_has_the_listed_findings(
    name: str, known: dict[str, tuple[World, BuiltRun]]
) -> None:
    case = CASES[name]
    world, run = known[case["run"]]
    edits = json.loads(json.dumps(case["edits"]).replace("RUN", run.unit.run_name))
    bodies, standing = list(copy.deepcopy(run.bodies)), list(copy.deepcopy(world.standing))
    for place, *path in edits:
        _edit(standing if "@" in place else bodies, place, path)

    found = list(
        check_reachability(replace(world, standing=tuple(standing)), BuiltRun(run.unit, tuple(bodies)))
    )

    wanted = [(rule, words.replace("RUN", run.unit.run_name)) for rule, words in case.get("finds", [])]
    said = "\n".join(f"{problem.rule}: {problem.message} | {problem.help}" for _, problem in found)
    assert sorted(problem.rule for _, problem in found) == sorted(rule for rule, _ in wanted), said
    for rule, words in wanted:
        assert any(problem.rule == rule and words in problem.message for _, problem in found), said
    assert case.get("help", "").replace("RUN", run.unit.run_name) in said
    assert case.get("says-not", "\0") not in said
    for index, problem in found:
        _lead(bodies[index], problem.path)


def _lead(body: Any, path: tuple[str | int, ...]) -> None:
    """Check that the path leads to a field of the object, or to where one belongs."""
    for step in path[:-1]:
        body = body[step]
    assert not path or isinstance(body, dict | list)


def _edit(bodies: list[Body], place: str, path: list[Any]) -> None:
    kind, _, name = place.partition("/")
    name, _, namespace = name.partition("@")
    found = [
        body
        for body in bodies
        if body["kind"] == kind
        and fnmatch.fnmatch(body["metadata"]["name"], name)
        and (not namespace or body["metadata"]["namespace"] == namespace)
    ]
    assert found, place
    for body in found:
        if path == [None]:
            bodies.remove(body)
        else:
            _set(body, path[:-1], path[-1])


def _set(body: Any, path: list[Any], value: Any) -> None:
    for step in path[:-1]:
        body = body[step]
    if isinstance(body, list) and path[-1] == len(body):
        body.append(value)
    elif value is None:
        del body[path[-1]]
    else:
        body[path[-1]] = value
