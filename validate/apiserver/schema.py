"""Checking an object with the schema of its kind at a cluster's versions.

The schema files (schemas/*.json, docs/decisions/0004-schemas.md) contain each distinct definition once, by
the first minor that has it; a kind's schema is assembled from them on first use.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from gangplan.model.backend import MPIJOB, TRAINJOB
from gangplan.model.support import parse_line_key
from gangplan.records import dataclass
from gangplan.validate.apiserver import schema_messages as words
from gangplan.validate.apiserver.schema_lists import (
    find_keyed_lists_in_schema,
    find_repeated_keys_in_keyed_list,
    has_keyed_list_with_repeated_key,
)
from gangplan.validate.apiserver.schema_messages import JsonSchema
from gangplan.validate.apiserver.schema_parts import narrow_schema_to_object_keys
from gangplan.validate.problems import Problem, sort_problems

SCHEMA_FILES = Path(__file__).parent / "schemas"
# Groups that an add-on serves; every other group belongs to Kubernetes itself.
COMPONENT_OF_GROUP = {
    TRAINJOB.group: "trainer",
    "jobset.x-k8s.io": "jobset",
    MPIJOB.group: "mpi",
    "kueue.x-k8s.io": "kueue",
    "monitoring.coreos.com": "addons",
    "external-secrets.io": "addons",
}
# Built-in kinds whose schemas are written by hand; the part in schemas/addons.yaml is the same in every
# version.
BY_HAND = frozenset({("v1", "PersistentVolume")})
# The only version of schemas/addons.yaml: no cluster file states the versions of these add-ons.
ADDONS = "1"


class Crds(Protocol):
    """Kinds of CRDs that a workspace imported (crdrules/registry.py)."""

    @property
    def resources(self) -> Mapping[tuple[str, str], tuple[str, bool]]:
        """(group, kind) -> (plural, whether its objects have a namespace)."""

    def schema(self, api_version: str, kind: str) -> JsonSchema | None:
        """Return the structural schema of a kind, or None for a kind that was not imported."""

    def has_status(self, api_version: str, kind: str) -> bool:
        """Return whether the status of an imported kind is a subresource."""

    def engine(self, api_version: str, kind: str, minor: int) -> CompiledSchema | None:
        """Return the engine for a kind on Kubernetes 1.`minor`, or None for a kind that was not imported."""


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    """The minors of one cluster (`1.34`, `2.3`, `0.19`, `0.12`); None for a component that is not installed.

    Trainer brings its own JobSet types, so `jobset` matters only to objects of kind JobSet.
    """

    kubernetes: str
    trainer: str | None = None
    kueue: str | None = None
    jobset: str | None = None
    mpi: str | None = None  # of the MPI operator
    crds: Crds | None = None  # kinds that the workspace imported

    def minor(self, component: str) -> str | None:
        """Return the minor of a component by its name."""
        value: str | None = ADDONS if component == "addons" else getattr(self, component)
        return value


class CompiledSchema:
    """The compiled schema of one kind at one version."""

    def __init__(self, component: str, minor: str, gvk: str) -> None:
        import jsonschema_rs  # 20 ms: only a command that validates pays for it

        schema = assemble_api_schema_of_kind(component, minor, gvk)
        self.schema = schema
        self.component, self.minor = component, minor
        self._root: str = load_schema_file(component)["kinds"][gvk]
        self._validator = jsonschema_rs.Draft202012Validator(schema)
        self._keyed = find_keyed_lists_in_schema(schema, schema["$defs"], {})

    def accepts(self, body: dict[str, Any], is_shown: bool = False) -> bool:
        """Return whether nothing is wrong; the only call for a good object. `is_shown` as in `problems`."""
        return (is_shown or self._validator.is_valid(body)) and not has_keyed_list_with_repeated_key(
            body, self._keyed
        )

    def problems(self, body: dict[str, Any]) -> list[Problem]:
        """Return everything that is wrong, in the order of the path."""
        found = list(find_repeated_keys_in_keyed_list(body, self._keyed, ()))
        errors = list(self._validator.iter_errors(body))
        mistyped = {tuple(error.instance_path) for error in errors if error.schema_path[-1] == "type"}
        for error in errors:
            path = tuple(error.instance_path)
            if path in mistyped and error.schema_path[-1] in ("enum", "const"):
                continue  # one cause, one problem
            if error.schema_path[-1] != "additionalProperties":
                found += words.describe_api_schema_violation(
                    self.schema, path, list(error.schema_path), error.instance, error.kind
                )
                continue
            # For a mapping without any fields, the engine names a value and not the mapping.
            for problem in words.describe_api_schema_violation(
                self.schema, path, list(error.schema_path), at(body, path), None
            ):
                found.append(self._other_minor(problem, list(error.schema_path)))
        return sort_problems(found) or [Problem((), "the object breaks its schema")]

    def _other_minor(self, problem: Problem, schema_path: list[str | int]) -> Problem:
        """Return the problem of an unknown field, with other minors of the component that have it."""
        name = str(schema_path[1]) if schema_path[0] == "$defs" else self._root
        minors = _list_minors_with_api_schema_field(self.component, name, str(problem.path[-1]))
        if not minors:
            return problem
        help = f"{self.component} {', '.join(minors)} has this field, {self.minor} does not"
        return replace(problem, help=help)


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return the value at a path."""
    for step in path:
        value = value[step]
    return value


def check_object_against_api_schema(
    body: dict[str, Any], versions: SchemaVersions, is_shown: bool = False
) -> list[Problem]:
    """Return all problems of an object with the schema of its kind, for the given versions; never raises.

    `is_shown` says that its shape is known to fit the schema (schema_facts.py). An object whose kind or
    version has no schema here is one problem of rule `schema-missing`: what was not checked is not called
    good.
    """
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return words.describe_object_without_kind_or_version(body)
    found = compile_api_schema_for_kind(versions, api_version, kind)
    if isinstance(found, Problem):
        return [found]
    try:
        return [] if found.accepts(body, is_shown) else found.problems(body)
    except ValueError as error:  # a key that is not a text, or a date: JSON has neither
        return [Problem((), f"the object contains a value that JSON does not have: {error}")]


def build_kind_schema(versions: SchemaVersions, api_version: str, kind: str) -> JsonSchema | None:
    """Return the self-contained JSON Schema (draft 2020-12) of a kind, or None if the versions lack it."""
    engine = compile_api_schema_for_kind(versions, api_version, kind)
    return None if isinstance(engine, Problem) else engine.schema


def list_kinds_with_api_schema(versions: SchemaVersions) -> list[tuple[str, str]]:
    """Return every (apiVersion, kind) that has a schema for these versions, sorted."""
    out = []
    for component in ("kubernetes", "jobset", "trainer", "mpi", "kueue", "addons"):
        minor = versions.minor(component)
        content = load_schema_file(component)
        if minor in content["versions"]:
            for gvk in content["kinds"]:
                if minor in _list_minors_with_kind(component, gvk):
                    api_version, kind = gvk.rsplit("/", 1)
                    out.append((api_version, kind))
    return sorted(out)


def write_schemas(
    versions: SchemaVersions,
    directory: Path,
    only: Collection[str] | None = None,
    words: Collection[str] | None = None,
) -> Path:
    """Write one file per kind (for those in `only`, if given) for kubeconform, named as it expects.

    `words` are all words of the texts that it will check; parts of schemas that cannot apply to them are left
    out. Use as `-schema-location 'DIRECTORY/{{.ResourceKind}}{{.KindSuffix}}.json'`: kind in lower case,
    first label of the group if any, version. A file that is already right is not touched.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for api_version, kind in list_kinds_with_api_schema(versions):
        if only is not None and kind not in only:
            continue
        group, _, version = api_version.rpartition("/")
        name = "-".join(part for part in (kind.lower(), group.split(".")[0], version) if part) + ".json"
        schema = build_kind_schema(versions, api_version, kind)
        if words is not None and schema is not None:
            schema = narrow_schema_to_object_keys(schema, words)
        text = json.dumps(schema, separators=(",", ":"), sort_keys=True)
        file = directory / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            # Another process may be reading the same cache: it must see the old file or the new one.
            fresh = directory / f".{name}.{os.getpid()}"
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(file)
    return directory


@lru_cache(maxsize=1024)
def compile_api_schema_for_kind(
    versions: SchemaVersions, api_version: str, kind: str
) -> CompiledSchema | Problem:
    """Return the compiled schema, or the problem that there is none."""
    component = COMPONENT_OF_GROUP.get(api_version.rpartition("/")[0], "kubernetes")
    if (api_version, kind) in BY_HAND:
        component = "addons"
    minor = versions.minor(component)
    content = load_schema_file(component)
    if minor is None:
        return words.describe_missing_component(api_version, kind, component)
    if minor not in content["versions"]:
        return words.describe_minor_without_api_schema(
            api_version, kind, component, minor, content["versions"]
        )
    if f"{api_version}/{kind}" not in content["kinds"]:
        minor_number = parse_line_key(versions.kubernetes)[1]
        imported = versions.crds.engine(api_version, kind, minor_number) if versions.crds else None
        if imported is not None:
            return imported
        return words.describe_kind_without_api_schema(api_version, kind, component, minor, content["kinds"])
    minors = _list_minors_with_kind(component, f"{api_version}/{kind}")
    if minor not in minors:
        return words.describe_minor_without_api_schema(api_version, kind, component, minor, minors)
    return _build_compiled_schema(component, minor, f"{api_version}/{kind}")


@cache
def _list_minors_with_kind(component: str, gvk: str) -> list[str]:
    """Return the minors of a component that have a kind."""
    content = load_schema_file(component)
    name, known = content["kinds"][gvk], content["definitions"]
    return [minor for minor in content["versions"] if _find_definition_at_minor(name, known, minor)]


@cache
def _build_compiled_schema(component: str, minor: str, gvk: str) -> CompiledSchema:
    """Return a compiled schema, shared by all clusters of the same minor."""
    return CompiledSchema(component, minor, gvk)


@cache
def load_schema_file(component: str) -> dict[str, Any]:
    """Return the content of one schema file (its layout: schemas/build.py)."""
    content: dict[str, Any] = json.loads((SCHEMA_FILES / f"{component}.json").read_bytes())
    return content


def assemble_api_schema_of_kind(component: str, minor: str, gvk: str) -> JsonSchema:
    """Return one kind's schema with exactly the definitions that it reaches."""
    content = load_schema_file(component)
    sources = [(content["definitions"], minor)]
    sources += [
        (load_schema_file(name)["definitions"], base) for name, base in content["base"].get(minor, {}).items()
    ]
    root: str = content["kinds"][gvk]
    reached: dict[str, JsonSchema] = {}
    todo = [root]
    while todo:
        name = todo.pop()
        if name not in reached:
            variants = [_find_definition_at_minor(name, definitions, at) for definitions, at in sources]
            reached[name] = next(schema for schema in variants if schema is not None)
            todo += _list_schema_references(reached[name])
    out = dict(reached.pop(root))
    out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    out["$defs"] = dict(sorted(reached.items()))
    return out


def _find_definition_at_minor(name: str, definitions: dict[str, Any], minor: str) -> JsonSchema | None:
    """Return the definition of the newest minor that is not above `minor`, or None."""
    past = [since for since in definitions.get(name, ()) if parse_line_key(since) <= parse_line_key(minor)]
    found: JsonSchema | None = definitions[name][max(past, key=parse_line_key)] if past else None
    return found


def _list_minors_with_api_schema_field(component: str, name: str, field: str) -> list[str]:
    """Return the minors of a component whose definition `name` has a field."""
    content = load_schema_file(component)
    schemas = [
        (minor, _find_definition_at_minor(name, content["definitions"], minor))
        for minor in content["versions"]
    ]
    return [minor for minor, schema in schemas if schema and field in schema.get("properties", {})]


def _list_schema_references(schema: Any) -> list[str]:
    """Return the names of the definitions that a schema refers to."""
    if isinstance(schema, list):
        return [name for one in schema for name in _list_schema_references(one)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].removeprefix("#/$defs/")] if isinstance(schema.get("$ref"), str) else []
    return own + [
        name
        for one in schema.values()
        if isinstance(one, dict | list)
        for name in _list_schema_references(one)
    ]


def judge_object_by_reference_json_schema(body: dict[str, Any], versions: SchemaVersions) -> list[Problem]:
    """Return the verdict of the reference implementation of JSON Schema, for tests.

    It is slow and has its own messages.
    """
    from jsonschema import Draft202012Validator, ValidationError, validators

    def pattern(_: Any, value: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        # `$` matches before a final newline in Python and nowhere else.
        if isinstance(instance, str) and not re.search(value.replace("$", r"\Z"), instance):
            yield ValidationError(f"{instance!r} does not match {value!r}")

    engine = compile_api_schema_for_kind(versions, body["apiVersion"], body["kind"])
    if isinstance(engine, Problem):
        return [engine]
    extend: Any = validators.extend  # untyped
    validator = extend(Draft202012Validator, {"pattern": pattern})(engine.schema)
    found = [Problem(tuple(error.absolute_path), error.message) for error in validator.iter_errors(body)]
    return sort_problems(
        [
            *found,
            *find_repeated_keys_in_keyed_list(
                body, find_keyed_lists_in_schema(engine.schema, engine.schema["$defs"], {}), ()
            ),
        ]
    )
