"""CustomResourceDefinitions that users import: the first thing that the API server would refuse, or None.

Sources: apiextensions-apiserver v0.34, pkg/apis/apiextensions/validation/validation.go (names, versions) and
pkg/apiserver/schema (structural schemas); k8s.io/apimachinery pkg/util/validation (DNS names).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from gangplan.findings import FieldPath, Problem
from gangplan.validate.apiserver.crdrules import definition, structure
from gangplan.validate.apiserver.crdrules.structural import VALIDATIONS_KEY

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
    VALIDATIONS_KEY: list,
}  # fmt: skip
_RULE: Mapping[str, type] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), str),
    "optionalOldSelf": bool,
}


_REFUSED = "An API server would refuse the CRD; get it as it is there: kubectl get crd NAME -o yaml."


def find_crd_problem(crd: Mapping[str, Any]) -> Problem | None:
    """Return the first problem of a CustomResourceDefinition, or None if it can be imported."""
    return next(_find_crd_problems(crd), None)


def _build_crd_problem(path: FieldPath, message: str, help: str = _REFUSED) -> Problem:
    return Problem(path, message, help)


def _find_crd_problems(crd: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems; each may hide later ones, so only the first counts."""
    if crd.get("apiVersion") != "apiextensions.k8s.io/v1":
        yield _build_crd_problem(("apiVersion",), "the apiVersion is not apiextensions.k8s.io/v1")
    spec = crd.get("spec")
    if not isinstance(spec, dict):
        yield _build_crd_problem(("spec",), "spec is not a mapping" if "spec" in crd else "spec is missing")
        return
    names = spec.get("names")
    group, plural, kind = (
        spec.get("group"),
        *((names.get(name) if isinstance(names, dict) else None) for name in ("plural", "kind")),
    )
    if not (isinstance(group, str) and len(group) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(group)):
        yield _build_crd_problem(("spec", "group"), "spec.group is not a DNS name such as example.com")
    if not (isinstance(plural, str) and _LABEL.fullmatch(plural)):
        yield _build_crd_problem(
            ("spec", "names", "plural"), "spec.names.plural is not a DNS label such as widgets"
        )
    if not (isinstance(kind, str) and _LABEL.fullmatch(kind.lower()) and kind.isascii()):
        yield _build_crd_problem(("spec", "names", "kind"), "spec.names.kind is not a name such as Widget")
    metadata = crd.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != f"{plural}.{group}":
        yield _build_crd_problem(
            ("metadata", "name"), f"metadata.name is not plural.group ({plural}.{group})"
        )
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        yield _build_crd_problem(("spec", "scope"), "spec.scope is not Namespaced or Cluster")
    yield from _find_crd_version_problems(spec.get("versions"))
    yield from (_build_crd_problem(path, message) for path, message in definition.check_crd_definition(crd))


def _find_crd_version_problems(versions: Any) -> Iterator[Problem]:
    path: FieldPath = ("spec", "versions")
    if not isinstance(versions, list) or not versions:
        yield _build_crd_problem(path, "spec.versions is not a list of versions")
        return
    seen: list[str] = []
    for index, one in enumerate(versions):
        if not isinstance(one, dict):
            yield _build_crd_problem((*path, index), "a version is not a mapping")
            return
        name, schema = one.get("name"), one.get("schema")
        if not (isinstance(name, str) and _LABEL.fullmatch(name)):
            yield _build_crd_problem(
                (*path, index, "name"), "the name of a version is not a DNS label such as v1"
            )
        if name in seen:
            yield _build_crd_problem((*path, index, "name"), f"version {name} is there twice")
        seen.append(str(name))
        if not isinstance(one.get("served"), bool):
            yield _build_crd_problem(
                (*path, index, "served"), f"served of version {name} is not true or false"
            )
        if not isinstance(schema, dict) or not isinstance(schema.get("openAPIV3Schema"), dict):
            message = f"version {name} has no schema (schema.openAPIV3Schema)"
            yield _build_crd_problem((*path, index, "schema", "openAPIV3Schema"), message)
            return
        root = (*path, index, "schema", "openAPIV3Schema")
        yield from _find_crd_schema_problems(schema["openAPIV3Schema"], root)
        for place, message in structure.check_structural_schema(schema["openAPIV3Schema"]):
            yield _build_crd_problem((*root, *place), f"{message} ({_describe_schema_path((*root, *place))})")
    if not any(one["served"] for one in versions):
        help = "An API server takes it, but there are no objects of it, and nothing to check."
        yield _build_crd_problem(path, "no version is served", help)


def _find_crd_schema_problems(schema: Any, path: FieldPath) -> Iterator[Problem]:
    """Yield the problems of a schema and of those below it."""
    if not isinstance(schema, dict):
        yield _build_crd_problem(path, f"the schema {_describe_schema_path(path)} is not a mapping")
        return
    yield from _find_crd_keyword_type_problems(schema, _KEYWORDS, path)
    if schema.get("type") not in (None, "", *_TYPES):
        yield _build_crd_problem(
            (*path, "type"), f"the type {_describe_schema_path(path)} is none of {', '.join(_TYPES)}"
        )
    if any(not isinstance(name, str) for name in schema.get("required") or ()):
        yield _build_crd_problem(
            (*path, "required"), f"required {_describe_schema_path(path)} is not a list of names"
        )
    for index, rule in enumerate(schema.get(VALIDATIONS_KEY) or ()):
        place = (*path, VALIDATIONS_KEY, index)
        if not isinstance(rule, dict) or not rule.get("rule"):
            yield _build_crd_problem(place, f"a rule {_describe_schema_path(path)} has no expression (rule:)")
            return
        yield from _find_crd_keyword_type_problems(rule, _RULE, place)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _find_crd_schema_problems(inner, (*path, "properties", name))
    for name in ("items", "not"):
        if schema.get(name) is not None:
            yield from _find_crd_schema_problems(schema[name], (*path, name))
    more = schema.get("additionalProperties")
    if more is not None and not isinstance(more, bool):
        yield from _find_crd_schema_problems(more, (*path, "additionalProperties"))
    for name in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(name) or ()):
            yield from _find_crd_schema_problems(inner, (*path, name, index))


def _find_crd_keyword_type_problems(
    holder: Mapping[str, Any], kinds: Mapping[str, type], path: FieldPath
) -> Iterator[Problem]:
    for name, kind in kinds.items():
        value = holder.get(name)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            yield _build_crd_problem(
                (*path, name), f"{name} {_describe_schema_path(path)} is not {_WORDS[kind]}"
            )
            return


def _describe_schema_path(path: FieldPath) -> str:
    """Describe a path in a schema by the names of fields."""
    steps = path[path.index("openAPIV3Schema") + 1 :]
    fields = [str(after) for before, after in pairwise(steps) if before == "properties"]
    return f"of {'.'.join(fields)}" if fields else "of the object"
