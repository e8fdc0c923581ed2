"""A document in, a typed spec or findings out: pydantic's errors in the user's words, at line and column."""

from __future__ import annotations

import re
import types
from dataclasses import replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gangplan.findings import Finding, Fix
from gangplan.rules.core import SPEC_MISSING_FIELD, SPEC_TYPE, SPEC_UNKNOWN_FIELD, SPEC_VALUE
from gangplan.source import Document, Path
from gangplan.spec.base import ENV_NAME
from gangplan.spec.guess import paths_of, unknown_field, wrong_shape, wrong_word
from gangplan.spec.nodes import ONE, SEVERAL
from gangplan.spec.phrases import dotted, kind_of, plain
from gangplan.spec.repair import repair
from gangplan.spec.words import FORMS

M = TypeVar("M", bound=BaseModel)

# Where a number may stand for its own text: `1e-4` must reach the program as written.
TEXT_PARENTS: frozenset[Path] = frozenset(
    {("command",), ("env",), ("labels",), ("defaults", "env"), ("mpi", "flags"), ("model",)}
)


def parse(model: type[M], document: Document) -> tuple[M | None, list[Finding]]:
    """The typed value of `document`, or every finding about it. Never raises on bad input."""
    if not isinstance(document.value, dict):
        what = kind_of(document.value)
        return None, [
            Finding(
                SPEC_TYPE,
                document.where(()),
                f"the file contains {what}; expected fields (name: value)",
                "Start with 'apiVersion: gangplan.dev/v1'.",
            )
        ]
    try:
        return model.model_validate(_as_written(document.value, document, ())), []
    except ValidationError as raised:
        found = [
            replace(_finding(model, document, item), fix=_repair(model, document, item))
            for item in _causes(raised)
        ]
        return None, _without_followers(found)


def _without_followers(found: list[Finding]) -> list[Finding]:
    """Findings without those on a missing field that stands there under another name."""
    named = {one.message.rpartition("did you mean ")[2] for one in found if one.rule == SPEC_UNKNOWN_FIELD}
    return [
        one
        for one in found
        if one.rule != SPEC_MISSING_FIELD or f"{one.message.removesuffix(' is missing')}?" not in named
    ]


def _repair(model: type[BaseModel], document: Document, item: Any) -> Fix | None:
    path = _path(document, item["loc"])
    return repair(document, path, item, lambda: _fields(model, path[:-1]))


def _causes(raised: ValidationError) -> list[Any]:
    """pydantic's errors without those that only follow from another: a file of another kind has other fields,
    and a list whose entry is wrong is also called too short."""
    items = raised.errors(include_url=False)
    other = [item for item in items if item["loc"] == ("kind",) and item["type"] == "literal_error"]
    if other:
        return other
    places = [item["loc"] for item in items]
    return [
        item
        for item in items
        if item["type"] != "too_short"
        or not any(
            len(place) > len(item["loc"]) and place[: len(item["loc"])] == item["loc"] for place in places
        )
    ]


def _as_written(value: Any, document: Document, path: Path) -> Any:
    """Lists as tuples (the models are strict), and texts for numbers where a text is wanted."""
    if isinstance(value, dict):
        return {key: _as_written(item, document, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_as_written(item, document, (*path, index)) for index, item in enumerate(value))
    if isinstance(value, (int, float)) and (path[:-1] in TEXT_PARENTS or _is_text_inside(path)):
        return document.text(path)
    return value


def _is_text_inside(path: Path) -> bool:
    """Whether it is a variable, or an argument, of a fabric or a container: `fabrics.NAME.env.X`, `setup.0.env.X`."""
    return (
        path[0] in ("fabrics", "setup", "sidecars", "roles")
        and len(path) > 2
        and path[-2] in ("env", "command")
    )


def _finding(model: type[BaseModel], document: Document, item: Any) -> Finding:
    """One pydantic error as a finding."""
    kind, path = item["type"], _path(document, item["loc"])
    context = item.get("ctx", {})
    if item["loc"] and item["loc"][-1] == "[key]":
        return Finding(SPEC_VALUE, document.where(path, key=True), *_bad_key(path, item))
    if kind == "extra_forbidden":
        return _unknown(model, document, path)
    if kind == "missing":
        return Finding(
            SPEC_MISSING_FIELD,
            document.where(path[:-1]),
            f"'{dotted(path)}' is missing",
            _example(model, path),
        )
    if "message" in context and "help" in context:
        where = _inside(document, path, context["message"])
        is_whole = context["message"].startswith(("the command", "word "))  # it names the field itself
        message = context["message"] if is_whole else f"{dotted(path)}: {context['message']}"
        return Finding(SPEC_VALUE, where, message, context["help"])
    if kind == "literal_error":
        return _choice(model, document, path, item)
    message, help = plain(kind, context, item["input"], path)
    if help.startswith("Quote it"):
        help = f'Quote it: "{document.text(path)}".'  # as written: 007, not 7
    rule = SPEC_TYPE if kind.endswith("_type") else SPEC_VALUE
    help = help or wrong_shape(path, kind, item["input"], document.text(path)) or _example(model, path)
    return Finding(rule, document.where(path), message, help)


def _inside(document: Document, path: Path, message: str) -> Any:
    """The place of the value, or of the list entry that the message counts."""
    if message.startswith("word "):
        index = int(message.split()[1]) - 1
        return document.where((*path, index))
    return document.where(path)


def _path(document: Document, loc: tuple[Any, ...]) -> Path:
    """pydantic's location as a path into the document (its union and key marks removed)."""
    path: list[str | int] = []
    value = document.value
    for step in loc:
        if not isinstance(value, (dict, list)):
            break  # what follows a scalar says which form of it was tried
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and step < len(value)
        ):
            path.append(step)
            value = value[step]
        elif step in ("[key]", ONE, SEVERAL) or (step is not loc[-1] and not isinstance(value, dict)):
            continue
        else:
            path.append(step)
            break
    return tuple(path)


def _unknown(model: type[BaseModel], document: Document, path: Path) -> Finding:
    """An unknown field, with the one that was probably meant."""
    block = _model_at(model, path[:-1])
    fields = {field.alias or name: field for name, field in block.model_fields.items()} if block else {}
    nested = paths_of(block, block_of) if block else []
    value: Any = document.value
    for step in path[:-1]:
        value = value[step]
    problem = unknown_field(model.__name__, path, fields, nested, value)
    if model.__name__ == "Sweep" and path[:-1] == ("parameters",) and problem.help.startswith("Known"):
        from gangplan.spec.sweep_words import parameters_help  # few specs are sweeps

        problem = problem._replace(help=parameters_help(document))
    if len(path) > 1 and "did you mean" not in problem.message and path[-1] in _fields(model, ()):
        problem = problem._replace(
            help=f"Move {path[-1]}: out of {dotted(path[:-1])}, to the top level of the file."
        )
    return Finding(SPEC_UNKNOWN_FIELD, document.where(path, key=True), problem.message, problem.help)


def block_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a field that is a block of its own, neither a list nor a map of blocks."""
    found = _bare(annotation)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _choice(model: type[BaseModel], document: Document, path: Path, item: Any) -> Finding:
    """A value outside a fixed set, with the member that was probably meant."""
    allowed = re.findall(r"'([^']*)'", str(item["ctx"]["expected"]))
    problem = wrong_word(model.__name__, path, allowed, item["input"])
    return Finding(SPEC_VALUE, document.where(path), problem.message, problem.help)


def _bad_key(path: Path, item: Any) -> tuple[str, str]:
    """A key of a map that cannot be a name there, and a name like it."""
    key, context = str(path[-1]) if path else "", item.get("ctx", {})
    form = FORMS.get(context.get("pattern", ""), "")
    like = re.sub(r"[^A-Za-z0-9_]", "_", key) if context.get("pattern") == ENV_NAME else ""
    message = f"'{key}' cannot be a name in {dotted(path[:-1])}{f' ({form})' if form else ''}"
    if path[:1] == ("files",) and "/" in key and not key.startswith(("/", "../")) and key[-1:] != "/":
        return message, f"Write ./{key.removeprefix('./')}: for a file beside the spec."
    if path[:1] == ("files",) and "/" in key:
        return message, "Write ./NAME: for a file in the folder of the spec, one entry for each."
    return message, f"Write {like}:." if like and not like[0].isdigit() else "Rename it."


def _example(model: type[BaseModel], path: Path) -> str:
    """A help line from the field's own documented example."""
    if not path:
        return ""
    parent = _model_at(model, path[:-1])
    if parent is None:
        return _example(model, path[:-1])  # an entry of a map or a list: the whole field's example
    for name, field in parent.model_fields.items():
        if (field.alias or name) == path[-1] and field.examples:
            return f"For example {path[-1]}: {_flow(field.examples[0])}."
    return ""


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _fields(model: type[BaseModel], path: Path) -> set[str]:
    parent = _model_at(model, path)
    if parent is None:
        return set()
    return {field.alias or name for name, field in parent.model_fields.items()}


def _model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model that describes the value at `path`, or None for free-form maps and scalars."""
    annotation: Any = model
    for step in path:
        annotation = _step(_bare(annotation), step)
        if annotation is None:
            return None
    found = _bare(annotation)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _step(annotation: Any, step: str | int) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if isinstance(step, int):
            return annotation  # a block, or a list of such
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


def _bare(annotation: Any) -> Any:
    """Without Annotated and without None."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
            continue
        if get_origin(annotation) in (Union, types.UnionType):
            rest = [arg for arg in get_args(annotation) if arg is not type(None)]
            blocks = [arg for arg in rest if block_of(arg)]  # a block, or a list of such
            annotation = rest[0] if len(rest) == 1 else blocks[0] if blocks else Literal
            continue
        return annotation
