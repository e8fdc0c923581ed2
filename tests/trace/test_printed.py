"""The source map of rendered objects is complete: a field leads to what printed it, or is part of a
template."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import cast

import pytest

from gangplan.generators import run_objects
from gangplan.model.job import Egress, EnvVar, Job
from gangplan.objects import walk
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request
from gangplan.plan import Unit
from gangplan.spec.job import TrainingJob
from gangplan.template import FOLDER, printed
from gangplan.trace.attributes import causes_of_attribute
from gangplan.trace.context import RunContext
from gangplan.trace.printed import Way, printed_in
from gangplan.trace.tracing import files_of
from gangplan.workspace import load_workspace
from tests.trace import worlds
from tests.workspaces import REPOSITORY

EXAMPLES = sorted(path.parent for path in (REPOSITORY / "tests/examples").glob("*/input"))
# Kinds that gangplan/generators/files.py writes without a template.
WITHOUT_TEMPLATE = frozenset({"ConfigMap"})
# Steps to values that a function of a generator turns into another number (`restarts`).
COUNTED = ("layout", "node_pods")


def _units(root: FilePath) -> Iterator[Unit]:
    result = preview(Request(root, engine="serial", jobs=1), load_workspace(root))
    return (run.unit for run in result.runs)


def _constants() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.rglob("*.j2"))).lower()


def _is_shown(value: object, way: Way) -> bool:
    """Return whether the field shows the value at the end of a way, alone or among other printed text."""
    text, whole = printed(way.values[-1]).strip('"'), printed(value).strip('"')
    return text in whole or text.replace("$", "$$") in whole


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_field_of_a_run_has_a_source(example: FilePath) -> None:
    constants = _constants()
    for unit in _units(example / "input"):
        for body, ways in zip(run_objects(unit), printed_in(unit), strict=True):
            if body["kind"] in WITHOUT_TEMPLATE:
                assert not ways
                continue
            for path, value in walk(body):
                # A name that a template goes over is printed as it is; the value next to it has the way.
                is_told = path in ways or (path[-1] == "name" and (*path[:-1], "value") in ways)
                assert is_told or not value or str(value).lower() in constants, (path, value)
            assert ways.keys() <= {path for path, _ in walk(body)}


def test_a_way_ends_at_the_value_that_is_shown(tmp_path: FilePath) -> None:
    unit = next(one for one in _units(worlds.everything(tmp_path)) if one.job.name == "full")
    shown = [
        _is_shown(value, way)
        for body, ways in zip(run_objects(unit), printed_in(unit), strict=True)
        for path, value in walk(body)
        for way in ways.get(path, ())
        if isinstance(way.values[-1], str | int) and way.steps != COUNTED
    ]
    assert len(shown) > 400
    assert all(shown)


def test_a_way_lists_the_steps_to_its_value(tmp_path: FilePath) -> None:
    units = {one.job.name: one for one in _units(worlds.everything(tmp_path))}
    found = {
        (path, way.steps, value)
        for body, ways in zip(run_objects(units["full"]), printed_in(units["full"]), strict=True)
        for path, value in walk(body)
        for way in ways.get(path, ())
    }
    steps = {steps: (path, value) for path, steps, value in found}
    path, value = steps["unit", "job", "image", "uid"]
    assert path[-2:] == ("securityContext", "runAsUser")
    assert value == units["full"].job.image.uid
    path, value = steps["launch", "worker_env", 0, "name"]
    assert path[-3:] == ("env", 0, "name")
    assert value == units["full"].launch.worker_env[0].name


def test_every_variable_knows_its_origins(tmp_path: FilePath) -> None:
    variables = {
        value
        for unit in _units(worlds.everything(tmp_path))
        for ways in printed_in(unit)
        for found in ways.values()
        for way in found
        for value in way.values
        if isinstance(value, EnvVar)
    }
    assert len(variables) > 40
    assert not [one.name for one in variables if not one.origins]


def test_an_attribute_is_caused_by_the_field_of_the_same_name(tmp_path: FilePath) -> None:
    unit = next(one for one in _units(worlds.everything(tmp_path)) if one.job.name == "full")
    context = RunContext(unit, files_of(unit), {})
    fields = {name: field.alias or name for name, field in TrainingJob.model_fields.items()}
    named = [name for name in Job.__dataclass_fields__ if name in fields]
    assert len(named) > 25
    for name in named:
        found = causes_of_attribute(context, unit.job, name)
        assert any(cause.field[:1] == (fields[name],) for cause in found), (name, found)


def test_an_attribute_without_a_row_has_no_cause() -> None:
    assert not causes_of_attribute(cast(RunContext, None), Egress("s3", "10.0.0.0/8", (), ()), "cidr")
