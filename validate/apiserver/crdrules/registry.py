"""The CRDs that a workspace imported (`gangplan schema import`): their kinds, schemas and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from gangplan.cel.errors import CompileError
from gangplan.model.crds import CrdFiles, read_crd
from gangplan.records import dataclass
from gangplan.validate.apiserver.crdrules.imported import compile_crd_schema_rules
from gangplan.validate.apiserver.crdrules.rules import CompiledRule
from gangplan.validate.apiserver.crdrules.schema_gate import ImportedEngine

Key = tuple[str, str]  # apiVersion, kind


@dataclass(slots=True, eq=False)
class ImportedCrds:
    """The kinds of some CRDs: their schemas, plurals and scopes, with caches of engines and rules."""

    schemas: dict[Key, dict[str, Any]] = field(default_factory=dict)
    resources: dict[Key, tuple[str, bool]] = field(
        default_factory=dict
    )  # (group, kind) -> (plural, namespaced)
    without_status: set[Key] = field(default_factory=set)
    _engines: dict[tuple[str, str, int], ImportedEngine] = field(default_factory=dict)
    _rules: dict[tuple[str, str, int], Sequence[CompiledRule]] = field(default_factory=dict)

    def add(self, crd: dict[str, Any]) -> None:
        """Add a CRD in the form that `reduce_crd` returns."""
        group, kind = crd["group"], crd["kind"]
        self.resources[group, kind] = crd["plural"], crd["scope"] == "Namespaced"
        for version, schema in crd["versions"].items():
            self.schemas[f"{group}/{version}", kind] = schema
            if version not in crd.get("withStatus", crd["versions"]):
                self.without_status.add((f"{group}/{version}", kind))

    def has_status(self, api_version: str, kind: str) -> bool:
        """Return whether the status of a kind is a subresource; files of earlier versions count as yes."""
        return (api_version, kind) not in self.without_status

    def schema(self, api_version: str, kind: str) -> dict[str, Any] | None:
        """Return the structural schema of a kind, or None for a kind that was not imported."""
        return self.schemas.get((api_version, kind))

    def engine(self, api_version: str, kind: str, minor: int) -> ImportedEngine | None:
        """Return the engine for a kind on Kubernetes 1.`minor`, or None for a kind that was not imported."""
        schema = self.schemas.get((api_version, kind))
        if schema is None:
            return None
        key = api_version, kind, minor
        if key not in self._engines:
            self._engines[key] = ImportedEngine(schema, minor, self.has_status(api_version, kind))
        return self._engines[key]

    def rules(self, api_version: str, kind: str, minor: int) -> Sequence[CompiledRule] | None:
        """Return the rules of a kind, or None for a kind that was not imported.

        If a rule does not compile, there are none: the import reported it.
        """
        schema = self.schemas.get((api_version, kind))
        if schema is None:
            return None
        key = api_version, kind, minor
        if key not in self._rules:
            try:
                self._rules[key] = compile_crd_schema_rules(schema, minor)
            except CompileError:
                self._rules[key] = ()
        return self._rules[key]


@lru_cache(maxsize=64)
def read_imported_crds(files: CrdFiles) -> ImportedCrds | None:
    """Return the CRDs in the files of a cluster, or None if there are none; cached by the files."""
    found = ImportedCrds()
    for text in files.texts:
        found.add(read_crd(text))
    return found if found.schemas else None


def reduce_crd(crd: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a CustomResourceDefinition: names, scope, schemas of served versions.

    The schemas have no prose. Raises KeyError or TypeError if it is not a CustomResourceDefinition.
    """
    spec = crd["spec"]
    served = {one["name"]: one["schema"]["openAPIV3Schema"] for one in spec["versions"] if one["served"]}
    return {
        "group": spec["group"],
        "kind": spec["names"]["kind"],
        "plural": spec["names"]["plural"],
        "scope": spec["scope"],
        "versions": {name: _remove_crd_schema_prose(schema) for name, schema in sorted(served.items())},
        "withStatus": sorted(
            one["name"]
            for one in spec["versions"]
            if one["served"] and "status" in (one.get("subresources") or {})
        ),
    }


def _remove_crd_schema_prose(schema: Any, names: bool = False) -> Any:
    """Return the schema without prose; values are unchanged.

    `names` marks mappings whose keys are names of fields.
    """
    if isinstance(schema, list):
        return [_remove_crd_schema_prose(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value
        if key in ("default", "enum") and not names
        else _remove_crd_schema_prose(value, names=key == "properties" and not names)
        for key, value in sorted(schema.items())
        if names or key not in ("description", "example", "externalDocs")
    }
