"""CustomResourceDefinitions that users import: the first thing that the API server would refuse, or None.

Sources: apiextensions-apiserver v0.34, pkg/apis/apiextensions/validation/validation.go (names, versions) and
pkg/apiserver/schema (structural schemas); k8s.io/apimachinery pkg/util/validation (DNS names).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from gangplan.findings import Problem
from gangplan.source import Path
from gangplan.validate.apiserver.crdrules import definition, structure
from gangplan.validate.apiserver.crdrules.structural import RULES

_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_LONGEST_DOMAIN = 253
_COUNTED = ("Length", "Items", "Properties")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_WORDS: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "a mapping",
}
# Types of the keywords of a schema; `properties` and `items` are also walked.
_KEYWORDS: Mapping[str, type] = {
    **dict.fromkeys(("type", "pattern", "format"), str),
    **dict.fromkeys(("required", "enum", "allOf", "anyOf", "oneOf"), list),
    **dict.fromkeys(("uniqueItems", "nullable", "exclusiveMinimum", "exclusiveMaximum"), bool),
    **dict.fromkeys((f"{end}{of}" for end in ("min", "max") for of in _COUNTED), int),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), str),
    "x-kubernetes-list-map-keys": list,
    **dict.fromkeys(("properties", "items", "not"), dict),
    RULES: list,
}  # fmt: skip
_RULE: Mapping[str, type] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), str),
    "optionalOldSelf": bool,
}


_REFUSED = "An API server would refuse the CRD; get it as it is there: kubectl get crd NAME -o yaml."


def problem(crd: Mapping[str, Any]) -> Problem | None:
    """Return the first problem of a CustomResourceDefinition, or None if it can be imported."""
    return next(_problems(crd), None)


def _wrong(path: Path, message: str, help: str = _REFUSED) -> Problem:
    return Problem(path, message, help)


def _problems(crd: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems; each may hide later ones, so only the first counts."""
    if crd.get("apiVersion") != "apiextensions.k8s.io/v1":
        yield _wrong(("apiVersion",), "the apiVersion is not apiextensions.k8s.io/v1")
    spec = crd.get("spec")
    if not isinstance(spec, dict):
        yield _wrong(("spec",), "spec is not a mapping" if "spec" in crd else "spec is missing")
        return
    names = spec.get("names")
    group, plural, kind = (
        spec.get("group"),
        *((names.get(name) if isinstance(names, dict) else None) for name in ("plural", "kind")),
    )
    if not (isinstance(group, str) and len(group) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(group)):
        yield _wrong(("spec", "group"), "spec.group is not a DNS name such as example.com")
    if not (isinstance(plural, str) and _LABEL.fullmatch(plural)):
        yield _wrong(("spec", "names", "plural"), "spec.names.plural is not a DNS label such as widgets")
    if not (isinstance(kind, str) and _LABEL.fullmatch(kind.lower()) and kind.isascii()):
        yield _wrong(("spec", "names", "kind"), "spec.names.kind is not a name such as Widget")
    metadata = crd.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != f"{plural}.{group}":
        yield _wrong(("metadata", "name"), f"metadata.name is not plural.group ({plural}.{group})")
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        yield _wrong(("spec", "scope"), "spec.scope is not Namespaced or Cluster")
    yield from _versions(spec.get("versions"))
    yield from (_wrong(path, message) for path, message in definition.mistakes(crd))


def _versions(versions: Any) -> Iterator[Problem]:
    path: Path = ("spec", "versions")
    if not isinstance(versions, list) or not versions:
        yield _wrong(path, "spec.versions is not a list of versions")
        return
    seen: list[str] = []
    for index, one in enumerate(versions):
        if not isinstance(one, dict):
            yield _wrong((*path, index), "a version is not a mapping")
            return
        name, schema = one.get("name"), one.get("schema")
        if not (isinstance(name, str) and _LABEL.fullmatch(name)):
            yield _wrong((*path, index, "name"), "the name of a version is not a DNS label such as v1")
        if name in seen:
            yield _wrong((*path, index, "name"), f"version {name} is there twice")
        seen.append(str(name))
        if not isinstance(one.get("served"), bool):
            yield _wrong((*path, index, "served"), f"served of version {name} is not true or false")
        if not isinstance(schema, dict) or not isinstance(schema.get("openAPIV3Schema"), dict):
            message = f"version {name} has no schema (schema.openAPIV3Schema)"
            yield _wrong((*path, index, "schema", "openAPIV3Schema"), message)
            return
        root = (*path, index, "schema", "openAPIV3Schema")
        yield from _schema(schema["openAPIV3Schema"], root)
        for place, message in structure.mistakes(schema["openAPIV3Schema"]):
            yield _wrong((*root, *place), f"{message} ({_said((*root, *place))})")
    if not any(one["served"] for one in versions):
        help = "An API server takes it, but there are no objects of it, and nothing to check."
        yield _wrong(path, "no version is served", help)


def _schema(schema: Any, path: Path) -> Iterator[Problem]:
    """Yield the problems of a schema and of those below it."""
    if not isinstance(schema, dict):
        yield _wrong(path, f"the schema {_said(path)} is not a mapping")
        return
    yield from _typed(schema, _KEYWORDS, path)
    if schema.get("type") not in (None, "", *_TYPES):
        yield _wrong((*path, "type"), f"the type {_said(path)} is none of {', '.join(_TYPES)}")
    if any(not isinstance(name, str) for name in schema.get("required") or ()):
        yield _wrong((*path, "required"), f"required {_said(path)} is not a list of names")
    for index, rule in enumerate(schema.get(RULES) or ()):
        place = (*path, RULES, index)
        if not isinstance(rule, dict) or not rule.get("rule"):
            yield _wrong(place, f"a rule {_said(path)} has no expression (rule:)")
            return
        yield from _typed(rule, _RULE, place)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _schema(inner, (*path, "properties", name))
    for name in ("items", "not"):
        if schema.get(name) is not None:
            yield from _schema(schema[name], (*path, name))
    more = schema.get("additionalProperties")
    if more is not None and not isinstance(more, bool):
        yield from _schema(more, (*path, "additionalProperties"))
    for name in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(name) or ()):
            yield from _schema(inner, (*path, name, index))


def _typed(holder: Mapping[str, Any], kinds: Mapping[str, type], path: Path) -> Iterator[Problem]:
    for name, kind in kinds.items():
        value = holder.get(name)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            yield _wrong((*path, name), f"{name} {_said(path)} is not {_WORDS[kind]}")
            return


def _said(path: Path) -> str:
    """Describe a path in a schema by the names of fields."""
    steps = path[path.index("openAPIV3Schema") + 1 :]
    fields = [str(after) for before, after in pairwise(steps) if before == "properties"]
    return f"of {'.'.join(fields)}" if fields else "of the object"
