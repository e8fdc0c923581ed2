"""The models of the blocks of a file: which fields a path may have, and whether a value is allowed there."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gangplan.findings import FieldPath
from gangplan.spec.base import NO_HINTS, Hints

# Paths where a number is allowed and read as its text: `1e-4` must reach the program as written.
TEXT_PARENTS: frozenset[FieldPath] = frozenset(
    {("command",), ("env",), ("labels",), ("defaults", "env"), ("mpi", "flags"), ("model",)}
)

# Errors that do not mean that a value was intended for another field.
_ONLY_SPELLING = frozenset({"quantity", "duration", "literal_error", "int_type", "bool_type", "missing"})


def list_spec_value_errors(
    block: type[BaseModel] | None, name: str, given: Any
) -> list[tuple[str, str, Hints]]:
    """Return what is wrong with a value of a field in a block: pydantic's error types, each with help and
    hints."""
    if block is None:
        return []
    try:
        block.model_validate({name: _convert_lists_to_tuples(given, (name,) in TEXT_PARENTS)})
    except ValidationError as raised:
        return [
            (item["type"], str(context.get("help", "")), context.get("hints", NO_HINTS))
            for item in raised.errors(include_url=False)
            if item["loc"] and item["loc"][0] == name
            for context in [item.get("ctx", {})]
        ]
    return []


def is_suitable_value(block: type[BaseModel] | None, name: str, given: Any) -> bool:
    """Return whether a value is suitable for a field of a block, apart from its spelling."""
    return all(kind in _ONLY_SPELLING for kind, *_ in list_spec_value_errors(block, name, given))


def _convert_lists_to_tuples(value: Any, in_text: bool) -> Any:
    """Return lists as tuples, and numbers as texts where a text is needed, as in a document."""
    if isinstance(value, dict):
        return {key: _convert_lists_to_tuples(item, in_text) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_convert_lists_to_tuples(item, in_text) for item in value)
    return str(value) if in_text and isinstance(value, (int, float)) else value


def find_block_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model of a field that is a single block, not a list or map of blocks."""
    found = _unwrap_annotation_of_spec_field(annotation)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def list_nested_spec_field_paths(block: type[BaseModel] | None) -> list[str]:
    """Return the paths of fields in nested blocks of a block, two levels down."""
    found = []
    for name, field in block.model_fields.items() if block else ():
        below = find_block_model(field.annotation)
        if below is None:
            continue
        for other, deep in below.model_fields.items():
            path = f"{field.alias or name}.{deep.alias or other}"
            found.append(path)
            if lower := find_block_model(deep.annotation):
                found += [f"{path}.{one.alias or last}" for last, one in lower.model_fields.items()]
    return found


def list_spec_fields_at(model: type[BaseModel], path: FieldPath) -> set[str]:
    """Return the fields that are allowed in the block at a path."""
    parent = find_spec_model_at(model, path)
    if parent is None:
        return set()
    return {field.alias or name for name, field in parent.model_fields.items()}


def find_spec_model_at(model: type[BaseModel], path: FieldPath) -> type[BaseModel] | None:
    """Return the model that describes the value at `path`, or None for free-form maps and scalars."""
    annotation: Any = model
    for step in path:
        annotation = _find_pydantic_field_annotation(_unwrap_annotation_of_spec_field(annotation), step)
        if annotation is None:
            return None
    found = _unwrap_annotation_of_spec_field(annotation)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _find_pydantic_field_annotation(annotation: Any, step: str | int) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if isinstance(step, int):
            return annotation  # a block, or a list of blocks
        for name, field in annotation.model_fields.items():
            if (field.alias or name) == step:
                return field.annotation
        return None
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return args[1]
    if origin in (tuple, list) and args:
        return args[0]
    return None


def _unwrap_annotation_of_spec_field(annotation: Any) -> Any:
    """Return the annotation without Annotated and without None."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
            continue
        if get_origin(annotation) in (Union, types.UnionType):
            rest = [arg for arg in get_args(annotation) if arg is not type(None)]
            blocks = [arg for arg in rest if find_block_model(arg)]  # a block, or a list of blocks
            annotation = rest[0] if len(rest) == 1 else blocks[0] if blocks else Literal
            continue
        return annotation
