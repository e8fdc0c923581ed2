"""Schemas of sweeps and job templates for editors: each contains a job in which any value may be a
placeholder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.spec.sweep_checks import NOT_IN_SWEEP_TEMPLATE

Schema = dict[str, Any]
PLACEHOLDER: Schema = {
    "type": "string",
    "pattern": r"\$\{\{.*\}\}",
    "patternErrorMessage": "Expected ${{ parameters.NAME }} or ${{ trial.name }}.",
}
_ABOUT = ("description", "examples", "default")


def add_template_schema(sweep: Schema, job: Schema) -> Schema:
    """Return the schema of a sweep whose template has the schema of a job."""
    return _embed_job_schema(sweep, job, "template", NOT_IN_SWEEP_TEMPLATE)


def add_job_schema(template: Schema, job: Schema) -> Schema:
    """Return the schema of a job template whose fields have the schema of a job; none of them is required."""
    from gangplan.spec.job_template import NOT_IN_JOB_TEMPLATE as OF_SPECS

    return _embed_job_schema(template, {**job, "required": ()}, "job", OF_SPECS)


def _embed_job_schema(outer: Schema, job: Schema, name: str, without: Mapping[str, str]) -> Schema:
    """Return the schema of a file whose field `name` has the fields of a job, except those in `without`."""
    blocks = {
        f"Job{name}": _allow_block_placeholders(_rename_job_references(block))
        for name, block in job["$defs"].items()
    }
    fields = {
        field: _allow_field_placeholder(_rename_job_references(about))
        for field, about in job["properties"].items()
        if field not in without
    }
    needed = [field for field in job.get("required", ()) if field in fields]
    own = outer["properties"][name]
    inner = {**own, "properties": fields, "required": needed, "additionalProperties": False}
    if "template" in fields:  # a template may set the other required fields
        inner = {**inner, "required": [], "anyOf": [{"required": ["template"]}, {"required": needed}]}
    properties = {**outer["properties"], name: inner}
    return {**outer, "properties": properties, "$defs": {**outer["$defs"], **blocks}}


def _allow_block_placeholders(block: Schema) -> Schema:
    """Return a block of a job whose values may be placeholders."""
    if "properties" not in block:
        return block
    fields = {name: _allow_field_placeholder(field) for name, field in block["properties"].items()}
    return {**block, "properties": fields}


def _allow_field_placeholder(field: Schema) -> Schema:
    """Return a field that may also be a placeholder; blocks, lists and maps have placeholders inside
    instead."""
    if field.get("type") in ("object", "array") or "$ref" in field:
        return field
    about: Schema = {name: field[name] for name in _ABOUT if name in field}
    rest = {name: value for name, value in field.items() if name not in about}
    return {**about, "anyOf": [*(rest.get("anyOf") or [rest]), PLACEHOLDER]}


def _rename_job_references(value: Any) -> Any:
    """Return a schema with references renamed to this file's names for the blocks of a job."""
    if isinstance(value, dict):
        return {
            key: f"#/$defs/Job{item.rpartition('/')[2]}" if key == "$ref" else _rename_job_references(item)
            for key, item in value.items()
        }
    return [_rename_job_references(item) for item in value] if isinstance(value, list) else value
