"""Schemas for editors: readable, and limited to the names that a team may use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gangplan.contents.files import WorkspaceFiles
from gangplan.contents.team_schema import narrow_spec_schema_to_teams
from gangplan.reference.schemas import build_editor_schema, build_editor_schema_of_format, list_format_models
from tests import plain
from tests.test_examples import EXAMPLES
from tests.workspaces import REPOSITORY, gangplan, stock

WORKSPACES = [REPOSITORY, *(one / "input" for one in EXAMPLES)]
TEAMS = [
    pytest.param(root, team, id=f"{root.parent.name}-{team}")
    for root in WORKSPACES
    for team in WorkspaceFiles(root).team_names
]


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping in a schema."""
    if isinstance(value, dict):
        yield value
        for one in value.values():
            yield from nodes(one)
    elif isinstance(value, list):
        for one in value:
            yield from nodes(one)


@pytest.mark.parametrize("kind", list_format_models())
def test_schemas_never_allow_null(kind: str) -> None:
    """An editor would offer null as a value."""
    for node in nodes(build_editor_schema_of_format(kind)):
        assert node.get("type") != "null", node
        assert "null" not in (node.get("type") if isinstance(node.get("type"), list) else ()), node
        assert "default" not in node or node["default"] is not None, node


@pytest.mark.parametrize("kind", list_format_models())
def test_every_pattern_has_an_error_message(kind: str) -> None:
    for node in nodes(build_editor_schema_of_format(kind)):
        if isinstance(node.get("pattern"), str):
            assert node["patternErrorMessage"].startswith("Expected "), node
            assert node["patternErrorMessage"].endswith("."), node


def test_each_schema_has_its_own_id() -> None:
    found = {build_editor_schema_of_format(kind)["$id"] for kind in [*list_format_models(), "findings"]}
    assert len(found) == len(list_format_models()) + 1


@pytest.mark.parametrize(("root", "team"), TEAMS)
def test_valid_specs_stay_valid(root: Path, team: str) -> None:
    """The schema of a team accepts every spec that gangplan accepts in the sample workspace and the
    examples."""
    schema = narrow_spec_schema_to_teams(build_editor_schema("spec"), WorkspaceFiles(root, (team,)))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for file in sorted((root / "specs" / team).rglob("*.yaml")):
        is_spec = file.name != "team.yaml" and "files" not in file.parts
        # Other kinds: tests/sweeps/test_schema.py, tests/templates/test_schema.py.
        if is_spec and plain.load(file.read_text())["kind"] == "TrainingJob":
            wrong = [error.message for error in validator.iter_errors(plain.load(file.read_text()))]
            assert wrong == [], file


@pytest.mark.parametrize(
    "line",
    [
        "image: tensorflow",
        "clusters: [eu-west]",
        "team: vision",
        "gpu: {model: h200-141gb}",
        "placement: {nodePool: gpus}",
        "placement: {topology: {required: room}}",
        "priority: critical",
        "data: {camera-frames: /data}",
        "checkpoint: {to: somewhere}",
        "network: {egress: [mail]}",
        "secrets: {env: {TOKEN: wandb/token}}",
        "secrets: {files: {wandb: /etc/wandb}}",
        "workers:",
    ],
)
def test_names_that_a_team_lacks_are_marked(line: str) -> None:
    """Each of these lines is valid in some workspace."""
    schema = narrow_spec_schema_to_teams(build_editor_schema("spec"), WorkspaceFiles(REPOSITORY, ("nlp",)))
    spec = {"apiVersion": "gangplan.dev/v1", "kind": "TrainingJob", "command": ["python", "train.py"]}
    validator = jsonschema.Draft202012Validator(schema)
    assert list(validator.iter_errors(spec)) == []
    assert list(validator.iter_errors(spec | plain.load(line)))


def test_names_have_descriptions() -> None:
    """Editors show a description next to each name."""
    outcome = gangplan("schema", "print", "spec", "-C", REPOSITORY, "--team", "nlp")
    assert outcome.code == 0, outcome.err
    fields = json.loads(outcome.out)["properties"]
    image = dict(zip(fields["image"]["enum"], fields["image"]["enumDescriptions"], strict=True))
    assert image["deepspeed"].startswith("DeepSpeed on Open MPI 4.1, deepspeed, OpenMPI 4.1.8, CUDA 12.8")
    assert "pattern" not in fields["image"]
    assert fields["data"]["properties"]["checkpoints"]["description"] == "claim, ReadWriteMany, checkpoints"
    assert fields["team"]["const"] == "nlp"


def test_a_schema_without_a_team_has_all_names() -> None:
    outcome = gangplan("schema", "print", "spec", "-C", REPOSITORY)
    fields = json.loads(outcome.out)["properties"]
    of_team = narrow_spec_schema_to_teams(
        build_editor_schema_of_format("spec"), WorkspaceFiles(REPOSITORY, ("nlp",))
    )["properties"]["data"]["properties"]
    assert set(of_team) < set(fields["data"]["properties"])
    assert "const" not in fields["team"]


def test_the_plain_schema_needs_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(gangplan("schema", "print", "spec").out) == build_editor_schema("spec")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("team", "--team", "nlp"), "the schema of 'team' is the same in every workspace"),
        (("spec", "--team", "nlq"), "there is no team 'nlq'"),
        (("spek",), "there is no file format 'spek'"),
    ],
)
def test_wrong_arguments_of_schema_print_are_refused(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    root = stock(tmp_path)
    outcome = gangplan("schema", "print", *words, "-C", root)
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_a_broken_workspace_limits_only_names_that_can_be_read(tmp_path: Path) -> None:
    """People print the schema while they edit: unknown names are not refused."""
    root = stock(tmp_path)
    (root / "images/catalog.yaml").write_text("images: [")
    outcome = gangplan("schema", "print", "spec", "-C", root, "--team", "nlp")
    assert outcome.code == 0
    assert "enum" not in json.loads(outcome.out)["properties"]["image"]
