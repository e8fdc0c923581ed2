"""The source map of rendered objects is complete: a field leads to what printed it, or is part of a
template."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import cast

import pytest

from gangplan.generators import generate_run_objects
from gangplan.model.job import Egress, EnvVar, Job
from gangplan.objects import walk_leaves
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.plan import RunPlan
from gangplan.spec.job import TrainingJob
from gangplan.template import TEMPLATES_FOLDER, format_template_expression
from gangplan.trace.attributes import trace_attribute_causes
from gangplan.trace.context import RunContext
from gangplan.trace.printed import Way, build_source_maps
from gangplan.trace.tracing import collect_traced_files_of_run
from gangplan.workspace import load_workspace
from tests.trace import worlds
from tests.workspaces import REPOSITORY

EXAMPLES = sorted(path.parent for path in (REPOSITORY / "tests/examples").glob("*/input"))
# Kinds that gangplan/generators/files.py writes without a template.
WITHOUT_TEMPLATE = frozenset({"ConfigMap"})
# Steps to values that a function of a generator turns into another number (`restarts`).
COUNTED = ("layout", "node_pods")


def _units(root: FilePath) -> Iterator[RunPlan]:
    result = preview_render(Request(root, engine="serial", jobs=1), load_workspace(root))
    return (run.unit for run in result.runs)


def _constants() -> str:
    return "".join(
        path.read_text(encoding="utf-8") for path in sorted(TEMPLATES_FOLDER.rglob("*.j2"))
    ).lower()


def _is_shown(value: object, way: Way) -> bool:
    """Return whether the field shows the value at the end of a way, alone or among other printed text."""
    text, whole = (
        format_template_expression(way.values[-1]).strip('"'),
        format_template_expression(value).strip('"'),
    )
    return text in whole or text.replace("$", "$$") in whole


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_field_of_a_run_has_a_source(example: FilePath) -> None:
    constants = _constants()
    for unit in _units(example / "input"):
        for body, ways in zip(generate_run_objects(unit), build_source_maps(unit), strict=True):
            if body["kind"] in WITHOUT_TEMPLATE:
                assert not ways
                continue
            for path, value in walk_leaves(body):
                # A name that a template goes over is printed as it is; the value next to it has the way.
                is_told = path in ways or (path[-1] == "name" and (*path[:-1], "value") in ways)
                assert is_told or not value or str(value).lower() in constants, (path, value)
            assert ways.keys() <= {path for path, _ in walk_leaves(body)}


def test_a_way_ends_at_the_value_that_is_shown(tmp_path: FilePath) -> None:
    unit = next(one for one in _units(worlds.everything(tmp_path)) if one.job.name == "full")
    shown = [
        _is_shown(value, way)
        for body, ways in zip(generate_run_objects(unit), build_source_maps(unit), strict=True)
        for path, value in walk_leaves(body)
        for way in ways.get(path, ())
        if isinstance(way.values[-1], str | int) and way.steps != COUNTED
    ]
    assert len(shown) > 400
    assert all(shown)


def test_a_way_lists_the_steps_to_its_value(tmp_path: FilePath) -> None:
    units = {one.job.name: one for one in _units(worlds.everything(tmp_path))}
    found = {
        (path, way.steps, value)
        for body, ways in zip(
            generate_run_objects(units["full"]), build_source_maps(units["full"]), strict=True
        )
        for path, value in walk_leaves(body)
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
        for ways in build_source_maps(unit)
        for found in ways.values()
        for way in found
        for value in way.values
        if isinstance(value, EnvVar)
    }
    assert len(variables) > 40
    assert not [one.name for one in variables if not one.origins]


def test_an_attribute_is_caused_by_the_field_of_the_same_name(tmp_path: FilePath) -> None:
    unit = next(one for one in _units(worlds.everything(tmp_path)) if one.job.name == "full")
    context = RunContext(unit, collect_traced_files_of_run(unit), {})
    fields = {name: field.alias or name for name, field in TrainingJob.model_fields.items()}
    named = [name for name in Job.__dataclass_fields__ if name in fields]
    assert len(named) > 25
    for name in named:
        found = trace_attribute_causes(context, unit.job, name)
        assert any(cause.field[:1] == (fields[name],) for cause in found), (name, found)


def test_an_attribute_without_a_row_has_no_cause() -> None:
    assert not trace_attribute_causes(cast(RunContext, None), Egress("s3", "10.0.0.0/8", (), ()), "cidr")
