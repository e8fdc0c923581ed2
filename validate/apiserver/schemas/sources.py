"""The published Kubernetes and Trainer schemas, read from packages and normalised.

Development only; never imported by gangplan itself. In the normal form every object refuses unknown fields,
nothing is nullable, nothing has a description, and definitions are named `group.version.Type`.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

SchemaBody = dict[str, Any]
Definitions = dict[str, SchemaBody]

KEPT = ("type", "enum", "required", "minProperties", "x-kubernetes-list-map-keys")
# The API server accepts an integer or a text for both; a pattern applies to the text only.
QUANTITY = "shape.quantity"
INT_OR_STRING = "shape.int-or-string"
PYDANTIC_NAME = re.compile(r"(?:IoK8sApi(?:machineryPkgApis)?)?([A-Z][a-z]+)(V\d+(?:alpha\d+|beta\d+)?)(.+)")


def shorten_openapi_definition_name(published: str) -> str:
    """Shorten a definition's name: `io.k8s.api.core.v1.Pod` and `IoK8sApiCoreV1Pod` -> `core.v1.Pod`."""
    last = published.rsplit("/", 1)[-1]
    if last.endswith("Quantity"):
        return QUANTITY
    if last.endswith("IntOrString"):
        return INT_OR_STRING
    if "." in last:
        return ".".join(last.split(".")[-3:])
    match = PYDANTIC_NAME.fullmatch(last)
    if not match:
        raise ValueError(f"no rule for the definition name {published!r}")
    return f"{match[1].lower()}.{match[2].lower()}.{match[3]}"


def normalise_source_schema(schema: SchemaBody) -> SchemaBody:
    """Normalise one schema (see the module docstring)."""
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{shorten_openapi_definition_name(schema['$ref'])}"}
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
        if len(branches) != 1:
            raise ValueError(f"a choice that is not only nullable: {schema}")
        return normalise_source_schema(branches[0])
    out: SchemaBody = {key: schema[key] for key in KEPT if key in schema}
    if isinstance(out.get("type"), list):
        (out["type"],) = [one for one in out["type"] if one != "null"]
    if out.get("type") == "integer" and schema.get("format") in ("int32", "int64"):
        out = {"$ref": f"#/$defs/shape.{schema['format']}"}
    if "items" in schema:
        out["items"] = normalise_source_schema(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        out["additionalProperties"] = normalise_source_schema(schema["additionalProperties"])
    if "properties" in schema:
        out["properties"] = {
            name: normalise_source_schema(value) for name, value in schema["properties"].items()
        }
        out["additionalProperties"] = False
    return out


def read_kubernetes_schemas(package: Path, minor: str) -> Definitions:
    """Return every definition of one Kubernetes minor, from the unpacked kubernetes-validate wheel."""
    folder = package / "kubernetes_validate" / "kubernetes-json-schema" / f"v{minor}.0-local-strict"
    published = json.loads((folder / "_definitions.json").read_text(encoding="utf-8"))["$defs"]
    out: Definitions = {}
    for name, schema in published.items():
        if "oneOf" in schema or "apiextensions" in name:
            continue  # the two wrappers that `shape.*` replaces, and the kinds of CRDs
        out[shorten_openapi_definition_name(name)] = normalise_source_schema(schema)
    return out


def read_openapi_schemas_of_trainer(package: Path, models: list[str]) -> Definitions:
    """Return the definitions of `models` in an unpacked kubeflow-trainer-api, Kubernetes' own included."""
    sys.path.insert(0, str(package))
    try:
        module = importlib.import_module("kubeflow_trainer_api.models")
        published: Definitions = {}
        for model in models:
            schema = getattr(module, model).model_json_schema(by_alias=True)
            published |= schema.pop("$defs")
            published[model] = schema
    finally:
        sys.path.pop(0)
        for name in [name for name in sys.modules if name.startswith("kubeflow_trainer_api")]:
            del sys.modules[name]
    # The generated models wrap these two in a field that no manifest has; `shape.*` replaces them.
    return {
        shorten_openapi_definition_name(name): normalise_source_schema(schema)
        for name, schema in published.items()
        if "actual_instance" not in schema.get("properties", {})
    }
