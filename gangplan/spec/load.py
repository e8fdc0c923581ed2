"""A document in, a typed spec or findings out: pydantic's errors in the user's words, at line and column."""

from __future__ import annotations

import difflib
import types
from dataclasses import replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gangplan.findings import Finding, Fix, error
from gangplan.source import Document, Path
from gangplan.source.scalars import plain as plain_value
from gangplan.spec.phrases import dotted, kind_of, plain, show
from gangplan.spec.repair import repair
from gangplan.spec.words import KINDS, RESERVED, SYNONYMS

M = TypeVar("M", bound=BaseModel)

# Where a number may stand for its own text: `1e-4` must reach the program as written.
_TEXT_PARENTS: frozenset[Path] = frozenset(
    {("command",), ("env",), ("labels",), ("defaults", "env"), ("mpi", "flags")}
)


def parse(model: type[M], document: Document) -> tuple[M | None, list[Finding]]:
    """The typed value of `document`, or every finding about it. Never raises on bad input."""
    if not isinstance(document.value, dict):
        what = kind_of(document.value)
        return None, [
            error(
                "spec-type",
                document.where(()),
                f"the file holds {what}; fields were expected",
                "Start with 'apiVersion: gangplan.dev/v1'.",
            )
        ]
    try:
        return model.model_validate(_as_written(document.value, document, ())), []
    except ValidationError as raised:
        return None, [
            replace(_finding(model, document, item), fix=_repair(model, document, item))
            for item in _causes(raised)
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
    if path[:-1] in _TEXT_PARENTS and isinstance(value, (int, float)):
        return document.text(path)
    return value


def _finding(model: type[BaseModel], document: Document, item: Any) -> Finding:
    """One pydantic error as a finding."""
    kind, path = item["type"], _path(document, item["loc"])
    context = item.get("ctx", {})
    if item["loc"] and item["loc"][-1] == "[key]":
        return error("spec-value", document.where(path, key=True), _bad_key(path, item), "Rename it.")
    if kind == "extra_forbidden":
        return _unknown(model, document, path)
    if kind == "missing":
        return error(
            "spec-missing-field",
            document.where(path[:-1]),
            f"'{dotted(path)}' is missing",
            _example(model, path),
        )
    if "message" in context and "help" in context:
        where = _inside(document, path, context["message"])
        return error("spec-value", where, f"{dotted(path)}: {context['message']}", context["help"])
    if kind == "literal_error":
        return _choice(model, document, path, item)
    message, help = plain(kind, context, item["input"], path)
    if help.startswith("Quote it"):
        help = f'Quote it: "{document.text(path)}".'  # as written: 007, not 7
    rule = "spec-type" if kind.endswith("_type") else "spec-value"
    return error(rule, document.where(path), message, help or _example(model, path))


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
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and step < len(value)
        ):
            path.append(step)
            value = value[step]
        elif step == "[key]" or (step is not loc[-1] and not isinstance(value, dict)):
            continue
        else:
            path.append(step)
            break
    return tuple(path)


def _unknown(model: type[BaseModel], document: Document, path: Path) -> Finding:
    """An unknown field, with the nearest known name."""
    word = str(path[-1])
    known = sorted(_fields(model, path[:-1]))
    where = document.where(path, key=True)
    place = f" in {dotted(path[:-1])}" if len(path) > 1 else ""
    if len(path) == 1 and word in RESERVED:
        return error("spec-unknown-field", where, f"'{word}' cannot be used: {RESERVED[word]}", "Remove it.")
    synonym = SYNONYMS.get(word.lower(), "")
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    lower = {name.lower(): name for name in known}
    guess = (
        lower.get(word.lower().replace("_", "").replace("-", ""))
        or (synonym if synonym.split(",")[0] in known else "")
        or (near[0] if near else "")
    )
    message = f"unknown field '{word}'{place}"
    if guess:
        hint = f"{message}; did you mean '{guess}'?"
        return error("spec-unknown-field", where, hint, f"Write {guess}: instead.")
    help = f"Known fields: {', '.join(known)}." if known else ""
    return error("spec-unknown-field", where, message, help)


def _choice(model: type[BaseModel], document: Document, path: Path, item: Any) -> Finding:
    """A value outside a fixed set, with the nearest member."""
    allowed = [
        text
        for text in (
            part.strip().strip("'") for part in str(item["ctx"]["expected"]).replace(" or ", ", ").split(",")
        )
        if text
    ]
    given = item["input"]
    if path == ("kind",) and given in KINDS:
        return error(
            "spec-value",
            document.where(path),
            f"kind is '{given}': {KINDS[given]}",
            f"Write kind: {allowed[0]}.",
        )
    near = difflib.get_close_matches(str(given).lower(), [word.lower() for word in allowed], n=1, cutoff=0.5)
    guess = next((word for word in allowed if near and word.lower() == near[0]), "")
    hint = f"; did you mean '{guess}'?" if guess else ""
    one_of = allowed[0] if len(allowed) == 1 else f"one of {', '.join(allowed)}"
    return error(
        "spec-value",
        document.where(path),
        f"{dotted(path)} is {show(given)}, but must be {one_of}{hint}",
        f"Write {_written(guess or allowed[0])}."
        if isinstance(path[-1], int)
        else f"Write {path[-1]}: {_written(guess or allowed[0])}.",
    )


def _written(word: str) -> str:
    """A word as YAML reads it as a text: "off" needs quotes."""
    return word if isinstance(plain_value(word), str) else f'"{word}"'


def _bad_key(path: Path, item: Any) -> str:
    key = path[-1] if path else ""
    return f"{dotted(path[:-1])}: '{key}' is not a valid name here ({plain(item['type'], item.get('ctx', {}), key, path)[0].split(': ')[-1]})"


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
            annotation = rest[0] if len(rest) == 1 else Literal
            continue
        return annotation
