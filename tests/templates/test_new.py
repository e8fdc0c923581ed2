"""`gangplan new job --template`: values of parameters have the type that the template declares."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from gangplan.commands import complete
from gangplan.commands.new_flags import build_flag_parameters
from tests.templates.files import TEMPLATE, workspace
from tests.workspaces import gangplan

TYPED = TEMPLATE.replace(
    "  script:",
    "  fast: {type: boolean, default: false}\n  script:",
).replace("env: {", "env: {FAST: '${{ parameters.fast }}', ")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("size=8", "size: 8"),
        ("rate=1e-4", "rate: 1e-4"),
        ("rate=0.10", "rate: 0.10"),
        ("fast=true", "fast: true"),
        ("script=8", 'script: "8"'),
        ("script=yes", 'script: "yes"'),
        ("script=a b.py", 'script: "a b.py"'),
    ],
)
def test_a_value_is_written_with_the_type_that_the_template_declares(
    tmp_path: Path, given: str, line: str
) -> None:
    root = workspace(tmp_path, template=TYPED)
    more = () if given.startswith("rate") else ("--param", "rate=0.5")
    outcome = gangplan("new", "job", "fast", "--template", "wide", "--param", given, *more, "-n", "-C", root)
    assert outcome.code == 0, outcome.err
    assert line in outcome.out


def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    flags = ("--template", "wide", "--parameters", "size=many", "--parameters", "rate=1")
    outcome = gangplan("new", "job", "fast", *flags, "-C", workspace(tmp_path))
    assert outcome.code == 2
    assert "parameter 'size' is a whole number, not 'many'" in outcome.err


def test_inherited_parameters_have_their_types(tmp_path: Path) -> None:
    child = "apiVersion: gangplan.dev/v1\nkind: JobTemplate\nextends: wide\njob: {env: {A: b}}\n"
    root = workspace(tmp_path, **{"jobtemplates/wider.yaml": child})
    flags = ("--template", "wider", "--param", "size=8", "--param", "script=8", "--param", "rate=2")
    outcome = gangplan("new", "job", "fast", *flags, "-n", "-C", root)
    assert yaml.safe_load(outcome.out)["parameters"] == {"size": 8, "script": "8", "rate": 2}, outcome.err


def test_parameters_without_a_template_are_refused(tmp_path: Path) -> None:
    flags = ("--parameters", "size=8", "--parameters", "name=on", "--image", "openmpi", "--command", "a")
    outcome = gangplan("new", "job", "fast", *flags, "-C", workspace(tmp_path))
    assert outcome.code == 2
    assert "no template" in outcome.err


def test_tab_completes_templates_and_their_parameters(tmp_path: Path) -> None:
    child = TEMPLATE.replace("  size:", "  width:").replace("parameters.size", "parameters.width")
    extends = child.replace("parameters:\n", "extends: wide\nparameters:\n", 1)
    root = workspace(tmp_path, **{"jobtemplates/other.yaml": extends})
    given = {"workspace": str(root), "field_template": "wide@1"}
    assert complete.complete_parameters(SimpleNamespace(params=given), "") == ["size=", "rate=", "script="]
    given["field_template"] = "other"
    assert complete.complete_parameters(SimpleNamespace(params=given), "s") == ["script=", "size="]
    options = {name: one for one in build_flag_parameters("job") for name in one.opts}
    assert {"--template", "--parameters", "--param"} <= set(options)
    found = complete.build_column_completion("templates", "template")(SimpleNamespace(params=given), "")
    assert found == ["other", "wide"]
