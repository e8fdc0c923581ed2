"""A schema narrowed to the words of some texts gives the same errors for them as the whole schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gangplan.pipeline.second_opinion import _WORD
from gangplan.validate.apiserver.schema import SchemaVersions, build_kind_schema
from gangplan.validate.apiserver.schema_parts import narrow_schema_to_object_keys
from tests.validate.cases import CLUSTERS, broken, broken_object, valid

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind"],
    "properties": {
        "kind": {"enum": [{"properties": {"x": 1}}, "A"]},
        "properties": {"type": "object", "properties": {"deep": {"$ref": "#/$defs/used"}}},
        "other": {"$ref": "#/$defs/unused"},
    },
    "$defs": {"used": {"$ref": "#/$defs/further"}, "further": {"type": "string"}, "unused": {}},
}


def told(schema: dict[str, Any], body: Any) -> list[tuple[list[Any], str]]:
    """Return the errors of an object by a schema: paths and messages."""
    errors = jsonschema_rs.Draft202012Validator(schema).iter_errors(body)
    return sorted(((list(one.instance_path), one.message) for one in errors), key=repr)


def objects(at: SchemaVersions) -> list[dict[str, Any]]:
    """Return valid and broken objects of all kinds."""
    good = [one.body for one in valid().values() if at in one.clusters()]
    cases = [one for one in broken() if at in valid()[one["object"]].clusters(one.get("versions"))]
    return [*good, *map(broken_object, cases)]


@pytest.mark.parametrize("at", CLUSTERS, ids=str)
def test_a_narrowed_schema_gives_the_same_errors(at: SchemaVersions) -> None:
    count = 0
    for body in objects(at):
        schema = build_kind_schema(at, body.get("apiVersion", ""), body.get("kind", ""))
        if schema is None:
            continue
        part = narrow_schema_to_object_keys(schema, set(_WORD.findall(yaml.safe_dump(body))))
        assert told(part, body) == told(schema, body)
        assert len(json.dumps(part)) <= len(json.dumps(schema))
        count += 1
    assert count > 50


def test_fields_and_definitions_that_no_word_names_are_removed() -> None:
    assert narrow_schema_to_object_keys(SCHEMA, {"kind"}) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind"],
        "properties": {"kind": {"enum": [{"properties": {"x": 1}}, "A"]}},
    }
    deep = narrow_schema_to_object_keys(SCHEMA, {"kind", "properties", "deep"})
    assert set(deep["$defs"]) == {"used", "further"}
    assert narrow_schema_to_object_keys(SCHEMA, {"kind", "properties", "deep", "other"}) == SCHEMA
