"""Random documents of the five formats: the small workspace's, with fields from the models' examples."""

from __future__ import annotations

import copy
import json
import random
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gangplan.reference.schemas import list_format_models
from tests import plain, workspaces
from tests.model.test_every_field import WAIVER

FILES = {
    "spec": ("specs/nlp/filings.yaml", workspaces.SPEC),
    "team": ("specs/nlp/team.yaml", workspaces.TEAM),
    "cluster": ("overlays/lab/cluster.yaml", workspaces.WIDE_CLUSTER),
    "catalog": ("images/catalog.yaml", workspaces.CATALOG),
    "waiver": ("policies/waivers/long.yaml", WAIVER),
}
# What people write by mistake where something else belongs.
WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**30, "", " ", "x", "é", "lab", "nlp", "filings", "1Gi", "24h", "10.0.0.0/8"),
    *([], {}, [[]], {"a": {}}, ["x", "x"], {"": ""}, "a" * 300, "\n", "---", "{{ x }}", "*", "~", "2027-01-31"),
)  # fmt: skip
Steps = tuple[str | int, ...]


def base_of(kind: str) -> dict[str, Any]:
    """Return this kind of document from the small workspace."""
    found: dict[str, Any] = plain.load(FILES[kind][1])
    return found


def grown(kind: str, chance: random.Random, most: int) -> dict[str, Any]:
    """Return that document with up to `most` more fields at any depth, as in the fields' examples."""
    document = base_of(kind)
    places = list(_models(list_format_models()[kind], document))
    for _ in range(chance.randint(0, most)):
        model, at = chance.choice(places)
        field = chance.choice(list(model.model_fields.values()))
        if field.examples and field.alias not in ("apiVersion", "kind"):
            at[field.alias or ""] = copy.deepcopy(chance.choice(field.examples))
    return document


def _models(model: type[BaseModel], value: Any) -> Iterator[tuple[type[BaseModel], dict[str, Any]]]:
    """Yield each mapping in a document that is a model, with its model."""
    if not isinstance(value, dict):
        return
    yield model, value
    for field in model.model_fields.values():
        inner = value.get(field.alias or "")
        for one in _inside(field.annotation):
            if isinstance(inner, dict) and inner.keys() <= {part.alias for part in one.model_fields.values()}:
                yield from _models(one, inner)
            entries = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
            for entry in entries:
                yield from _models(one, entry)


def _inside(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for part in typing.get_args(annotation):
        yield from _inside(part)


def leaves(value: Any, at: Steps = ()) -> Iterator[Steps]:
    """Yield the path of every value that is neither a mapping nor a list."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*at, index))
    else:
        yield at


def put(document: dict[str, Any], at: Steps, value: Any) -> dict[str, Any]:
    """Return a copy with another value at a path."""
    changed: Any = copy.deepcopy(document)
    inner = changed
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = value
    return typing.cast(dict[str, Any], changed)


def renamed(document: dict[str, Any], at: Steps, key: str) -> dict[str, Any]:
    """Return a copy in which the mapping entry at a path has another key."""
    changed: Any = copy.deepcopy(document)
    inner = changed
    for step in at[:-1]:
        inner = inner[step]
    inner[key] = inner.pop(at[-1])
    return typing.cast(dict[str, Any], changed)


def save(root: Path, documents: dict[str, dict[str, Any]]) -> Path:
    """Write documents as JSON, which is YAML."""
    texts = {
        FILES[kind][0]: json.dumps(one, indent=1, ensure_ascii=False) + "\n"
        for kind, one in documents.items()
    }
    return workspaces.write(root, texts)
