"""CRDs with one change each, and the answers of API servers to them (crds.yaml)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import plain

Body = dict[str, Any]
CASES: list[Body] = plain.load(Path(__file__).with_name("crds.yaml").read_text(encoding="utf-8"))


def definition(case: Body) -> Body:
    """Return the CRD of a case."""
    fields: Body = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    schema: Body = {"type": "object", "properties": fields}
    if "field" in case:
        fields["spec"] = case["field"]
    for name, value in (case.get("root") or {}).items():
        if name == "properties" and value is not None:
            fields.update(value)
        else:
            schema[name] = value
    schema = {name: value for name, value in schema.items() if value is not None}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Widget", "plural": "widgets", **(case.get("names") or {})}
    spec = {
        "group": "example.com",
        "names": names,
        "scope": "Namespaced",
        "versions": [{**version, **(case.get("version") or {})}],
        **(case.get("spec") or {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", **(case.get("meta") or {})},
        "spec": spec,
    }
