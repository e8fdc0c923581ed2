"""Real CustomResourceDefinitions, read in place: a check of objects, and a comparison with our schemas.

The CRDs are upstream's files and stay outside this repository: `GANGPLAN_CRDS` names their folder, else
`../shared/upstream/crds` next to the checkout. Tests that need them are skipped, by name, without it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

Schema = dict[str, Any]
REPOSITORY = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("GANGPLAN_CRDS") or REPOSITORY.parent / "shared" / "upstream" / "crds")
needs_crds = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no upstream CRDs in {FOLDER.name}/")

GROUPS = {
    "trainer.kubeflow.org": "trainer",
    "jobset.x-k8s.io": "jobset",
    "kueue.x-k8s.io": "kueue",
    "kubeflow.org": "mpi-operator",
}
LIST_KEYS = "x-kubernetes-list-map-keys"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
TYPES: dict[str, Any] = {
    "string": lambda value: isinstance(value, str),
    # 1.0 as well: Kubernetes reads it as 1, and JSON Schema calls it an integer.
    "integer": lambda value: (
        not isinstance(value, bool) and isinstance(value, int | float) and value == int(value)
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


@cache
def crds(component: str, minor: str) -> dict[tuple[str, str], Schema]:
    """Return the schemas of a component at a minor version, by (apiVersion, kind); empty without its CRDs."""
    out: dict[tuple[str, str], Schema] = {}
    for folder in sorted(FOLDER.glob(f"{component}-v{minor}.*")):
        for file in sorted(folder.glob("*.yaml")):
            spec = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)["spec"]
            for version in spec["versions"]:
                if version["served"]:
                    key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                    out[key] = version["schema"]["openAPIV3Schema"]
    return out


@cache
def at_hand(component: str, minor: str) -> tuple[str, ...]:
    """Return the minor versions whose CRDs represent one: itself, else its neighbours below and above."""
    if crds(component, minor):
        return (minor,)
    number = _number(minor)
    found = {re.sub(r"^.*-v([0-9]+\.[0-9]+).*$", r"\1", path.name) for path in FOLDER.glob(f"{component}-v*")}
    below = sorted((one for one in found if _number(one) < number), key=_number)[-1:]
    above = sorted((one for one in found if _number(one) > number), key=_number)[:1]
    return (*below, *above)


def _number(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))


def crd_for(body: dict[str, Any], minors: dict[str, str]) -> Schema | None:
    """Return an object's schema, None for built-in kinds; `minors` names the version of each component."""
    component = GROUPS.get(body["apiVersion"].rpartition("/")[0])
    if component is None:
        return None
    return crds(component, minors[component])[body["apiVersion"], body["kind"]]


def violations(body: Any, schema: Schema, path: str = "") -> list[str]:
    """Return what the API server's structural check finds in an object (its CEL rules are not evaluated)."""
    return list(_walk(body, schema, path))


def _walk(value: Any, schema: Schema, path: str) -> Iterator[str]:
    where = path or "the object"
    if value is None:
        if not schema.get("nullable"):
            yield f"{where} is null"
        return
    if schema.get(INT_OR_STRING):
        if not TYPES["integer"](value) and not TYPES["string"](value):
            yield f"{where} is neither integer nor string"
            return
    elif "type" in schema and not TYPES[schema["type"]](value):
        yield f"{where} is no {schema['type']}"
        return
    yield from (f"{where} {fault}" for fault in _limits(value, schema))
    if isinstance(value, dict):
        yield from _walk_object(value, schema, path)
    if isinstance(value, list):
        keys = schema.get(LIST_KEYS)
        if keys:
            held = [tuple(repr(item.get(key)) for key in keys) for item in value if isinstance(item, dict)]
            if len(held) != len(set(held)):
                yield f"{where} holds a key twice"
        for index, item in enumerate(value):
            yield from _walk(item, schema["items"], f"{path}[{index}]")


def _walk_object(value: dict[str, Any], schema: Schema, path: str) -> Iterator[str]:
    where = path or "the object"
    yield from (f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value)
    properties, more = schema.get("properties", {}), schema.get("additionalProperties")
    for name, item in value.items():
        below = f"{path}.{name}" if path else name
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue  # the API server checks these, whatever the CRD says
        if name in properties:
            yield from _walk(item, properties[name], below)
        elif isinstance(more, dict):
            yield from _walk(item, more, below)
        elif not schema.get(PRESERVE) and more is not True:
            yield f"{below} is not a field"


def _limits(value: Any, schema: Schema) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"is not in {schema['enum']}"
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"].replace("^(?i)", "(?i)^"), value):
            yield f"does not match {schema['pattern']}"
        yield from _between(len(value), schema, "Length", "characters")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield f"is under {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield f"is over {schema['maximum']}"
    if isinstance(value, list):
        yield from _between(len(value), schema, "Items", "items")
        if schema.get("x-kubernetes-list-type") == "set" and len(value) != len({repr(one) for one in value}):
            yield "holds an item twice"
    if isinstance(value, dict):
        yield from _between(len(value), schema, "Properties", "properties")


def _between(size: int, schema: Schema, noun: str, word: str) -> Iterator[str]:
    if not schema.get(f"min{noun}", 0) <= size <= schema.get(f"max{noun}", size):
        yield f"has {size} {word}"


# The comparison: the demands of a CRD that our schema lacks.


def looser(ours: Schema, crd: Schema) -> list[str]:
    """Return every demand of a CRD, by path, that our schema of the same kind lacks.

    CEL rules do not count.
    """
    return sorted(_looser(ours, crd, ours["$defs"], ""))


def _merged(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return the schema with what it refers to; keywords next to a reference narrow it."""
    if "$ref" not in schema:
        return schema
    target = _merged(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    return _narrowed(target, {key: value for key, value in schema.items() if key != "$ref"}, definitions)


def _narrowed(target: Schema, more: Schema, definitions: dict[str, Schema]) -> Schema:
    out = {**target, **more}
    out["required"] = [*target.get("required", ()), *more.get("required", ())]
    if "properties" in target and "properties" in more:
        out["properties"] = dict(target["properties"])
        for name, field in more["properties"].items():
            both = _merged(target["properties"].get(name, {}), definitions)
            out["properties"][name] = _narrowed(both, _merged(field, definitions), definitions)
    return out


def _looser(ours: Schema, crd: Schema, definitions: dict[str, Schema], path: str) -> Iterator[str]:
    if path in ("metadata", "status", "apiVersion", "kind"):
        return
    mine = _merged(ours, definitions)
    yield from (f"{path}: {fault}" for fault in _weaker(mine, crd))
    fields = crd.get("properties", {})
    closed = crd.get("type") == "object" and not crd.get(PRESERVE) and "additionalProperties" not in crd
    if closed and mine.get("additionalProperties") is not False:
        yield f"{path}: unknown fields pass"
    for name, field in mine.get("properties", {}).items():
        below = f"{path}.{name}".lstrip(".")
        if name in fields:
            yield from _looser(field, fields[name], definitions, below)
        elif not crd.get(PRESERVE) and path:
            yield f"{below}: no field there"
    if "items" in crd:
        yield from _looser(mine.get("items", {}), crd["items"], definitions, f"{path}[]")
    if isinstance(crd.get("additionalProperties"), dict):
        more = mine.get("additionalProperties", {})
        yield from _looser(more, crd["additionalProperties"], definitions, f"{path}{{}}")


def _weaker(mine: Schema, crd: Schema) -> Iterator[str]:
    allowed = {"integer", "string"} if crd.get(INT_OR_STRING) else {crd.get("type")}
    own = mine.get("type")
    types = set(own) if isinstance(own, list) else {own}
    if "enum" not in mine and not types <= allowed:
        yield f"type {own} for {crd.get('type')}"
    if "enum" in crd and not set(mine.get("enum", [object()])) <= set(crd["enum"]):
        yield f"enum {mine.get('enum')} for {crd['enum']}"
    missing = set(crd.get("required", ())) - set(mine.get("required", ()))
    if missing:
        yield f"required {sorted(missing)}"
    if "pattern" in crd and "pattern" not in mine and "enum" not in mine:
        yield "pattern"
    if crd.get(LIST_KEYS) and mine.get(LIST_KEYS) != crd[LIST_KEYS]:
        yield f"list keys {mine.get(LIST_KEYS)} for {crd[LIST_KEYS]}"
    if crd.get("x-kubernetes-list-type") == "set" and not mine.get("uniqueItems"):
        yield "unique items"
    for low in ("minimum", "minLength", "minItems", "minProperties"):
        if (
            low in crd
            and crd[low] > mine.get(low, float("-inf"))
            and not ("pattern" in mine and low == "minLength")
        ):
            yield f"{low} {crd[low]}"
    for high in ("maximum", "maxLength", "maxItems", "maxProperties"):
        if high in crd and mine.get(high, float("inf")) > crd[high] and "enum" not in mine:
            yield f"{high} {crd[high]}"


def forgotten(ours: Schema, crd: Schema) -> list[str]:
    """Return every field of a CRD that is unknown to our schema."""
    return sorted(_forgotten(ours, crd, ours["$defs"], ""))


def _forgotten(ours: Schema, crd: Schema, definitions: dict[str, Schema], path: str) -> Iterator[str]:
    if path in ("metadata", "status"):
        return
    mine = _merged(ours, definitions)
    for name, field in crd.get("properties", {}).items():
        below = f"{path}.{name}".lstrip(".")
        if name not in mine.get("properties", {}):
            yield below
        else:
            yield from _forgotten(mine["properties"][name], field, definitions, below)
    if "items" in crd:
        yield from _forgotten(mine["items"], crd["items"], definitions, f"{path}[]")
