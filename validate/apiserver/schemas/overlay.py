"""Adding hand-written facts to definitions (constraints.yaml), or writing definitions (kueue.yaml).

Development only; never imported by gangplan itself.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from gangplan.model.support import parse_line_key
from gangplan.validate.apiserver.schemas.sources import Definitions, SchemaBody

TYPES = ("string", "integer", "boolean", "object")
STEP = re.compile(r"[^.\[{]+|\[\]|\{\}")


def ref(name: str) -> SchemaBody:
    """Return a reference to a definition, or to a shape if the name has no dot."""
    return {"$ref": f"#/$defs/{name if '.' in name else 'shape.' + name}"}


class Overlay:
    """Applies the blocks of constraints.yaml and records which facts never matched a field."""

    def __init__(self) -> None:
        self.hit: set[tuple[str, str]] = set()
        self.seen: set[tuple[str, str]] = set()

    def apply(self, own: Definitions, known: Definitions, facts: dict[str, dict[str, Any]]) -> None:
        """Constrain `own` in place. `known` resolves the references that a path crosses."""
        for name, fields in facts.items():
            for path, fact in fields.items():
                self.seen.add((name, path))
                node = self._node(own.get(name), path, known)
                if node is not None:
                    self.hit.add((name, path))
                    apply_fact_to_apiserver_schema(node, fact)

    def missed(self) -> list[tuple[str, str]]:
        """Return facts about fields that no version has: mistakes in constraints.yaml."""
        return sorted(self.seen - self.hit)

    def _node(self, start: SchemaBody | None, path: str, known: Definitions) -> SchemaBody | None:
        """Return the schema at `path`, created next to a reference if the path crosses one."""
        node, real = start, start
        for step in STEP.findall(path):
            while real is not None and "$ref" in real:
                real = known.get(real["$ref"].removeprefix("#/$defs/"))
            if node is None or real is None:
                return None
            if step == "[]":
                node, real = node["items"], real["items"]
            elif step == "{}":
                node, real = node["additionalProperties"], real["additionalProperties"]
            else:
                real = real.get("properties", {}).get(step)
                node = node.setdefault("properties", {}).setdefault(step, {}) if real is not None else None
        return node


def apply_fact_to_apiserver_schema(node: SchemaBody, fact: Any) -> None:
    """Change one schema by one fact: a shape, {replace: schema}, or keywords to add."""
    if isinstance(fact, str):
        node.clear()
        node.update(ref(fact))
        return
    if "replace" in fact:
        node.clear()
        node.update(deepcopy(fact["replace"]))
        return
    for keyword, value in deepcopy(fact).items():
        if keyword == "required":
            node["required"] = sorted({*node.get("required", ()), *value})
        elif keyword == "propertyNames":
            node[keyword] = ref(value)
        else:
            node[keyword] = value


def build_kueue_schema_definition(text: dict[str, Any], version: tuple[int, ...]) -> SchemaBody:
    """Return one definition of kueue.yaml for one Kueue minor."""
    out: SchemaBody = {"type": "object", "additionalProperties": False, "properties": {}}
    for field, value in text.items():
        if field == "":
            apply_fact_to_apiserver_schema(out, value)
            continue
        for option in value if isinstance(value, list) and "is" in value[0] and len(value) > 1 else [value]:
            if is_schema_option_served(option, version):
                out["properties"][field] = build_kueue_field_schema(option)
    return out


def is_schema_option_served(option: Any, version: tuple[int, ...]) -> bool:
    """Return whether `since` and `until` of an option, if given, include the version."""
    if not isinstance(option, dict):
        return True
    since, until = option.get("since"), option.get("until")
    return (since is None or parse_line_key(since) <= version) and (
        until is None or version <= parse_line_key(until)
    )


def build_kueue_field_schema(value: Any) -> SchemaBody:
    """Return the schema that a value of kueue.yaml means (explained at the top of that file)."""
    if isinstance(value, str):
        return {"type": value} if value in TYPES else ref(value)
    if isinstance(value, list):
        return {"type": "array", "items": build_kueue_field_schema(value[0])}
    if "*" in value:
        return {"type": "object", "additionalProperties": build_kueue_field_schema(value["*"])}
    out = build_kueue_field_schema(value["is"])
    for keyword, more in value.items():
        if keyword == "propertyNames":
            out[keyword] = ref(more)
        elif keyword not in ("is", "since", "until"):
            out[keyword] = more
    return out
