"""The CRDs that a workspace took in (`gangplan schema import`), by cluster: read once, asked by every check.

They stand in schemas/<group>/<plural>.json for all clusters, in overlays/<cluster>/schemas/ for one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gangplan.validate.cel.errors import CompileError
from gangplan.validate.crdrules.imported import json_schema, schema_rules
from gangplan.validate.crdrules.rules import Compiled
from gangplan.validate.schema import ImportedEngine

FOLDER = "schemas"
Key = tuple[str, str]  # apiVersion, kind


@dataclass(slots=True, eq=False)
class Imported:
    """The kinds of some CRDs: their schemas, their plurals and scopes, and what was made of them so far."""

    schemas: dict[Key, dict[str, Any]] = field(default_factory=dict)
    resources: dict[Key, tuple[str, bool]] = field(
        default_factory=dict
    )  # (group, kind) -> (plural, namespaced)
    _engines: dict[Key, ImportedEngine] = field(default_factory=dict)
    _rules: dict[tuple[str, str, int], Sequence[Compiled]] = field(default_factory=dict)

    def add(self, crd: dict[str, Any]) -> None:
        """Take in a CRD as `stored` leaves it."""
        group, kind = crd["group"], crd["kind"]
        self.resources[group, kind] = crd["plural"], crd["scope"] == "Namespaced"
        for version, schema in crd["versions"].items():
            self.schemas[f"{group}/{version}", kind] = schema

    def engine(self, api_version: str, kind: str) -> ImportedEngine | None:
        """What checks objects of a kind by its schema; None for a kind that was not taken in."""
        key = api_version, kind
        if key not in self.schemas:
            return None
        if key not in self._engines:
            self._engines[key] = ImportedEngine(json_schema(self.schemas[key]))
        return self._engines[key]

    def rules(self, api_version: str, kind: str, minor: int) -> Sequence[Compiled] | None:
        """The rules of a kind; None for a kind that was not taken in. What does not compile was told then."""
        schema = self.schemas.get((api_version, kind))
        if schema is None:
            return None
        key = api_version, kind, minor
        if key not in self._rules:
            try:
                self._rules[key] = schema_rules(schema, minor)
            except CompileError:
                self._rules[key] = ()
        return self._rules[key]


_current: dict[str, Imported] = {}


def read(root: Path, clusters: Iterable[str]) -> list[tuple[str, str]]:
    """Read what a workspace took in; from now on `of` answers for its clusters. The files that are no such
    schema, with what is wrong."""
    wrong: list[tuple[str, str]] = []
    _current.clear()
    for cluster in clusters:
        imported = Imported()
        for path in files(root, cluster):
            try:
                imported.add(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as bad:
                wrong.append((path.relative_to(root).as_posix(), f"{type(bad).__name__}: {bad}"))
        if imported.schemas:
            _current[cluster] = imported
    return sorted(set(wrong))


def files(root: Path, cluster: str) -> Iterator[Path]:
    """The files for a cluster; those of its own come last and win."""
    for folder in (root / FOLDER, root / "overlays" / cluster / FOLDER):
        yield from sorted(folder.glob("*/*.json"))


def of(cluster: str) -> Imported | None:
    """What was taken in for a cluster."""
    return _current.get(cluster)


def stored(crd: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a CustomResourceDefinition: names, scope, the schemas of served versions without prose.

    Raises KeyError and TypeError for what is none.
    """
    spec = crd["spec"]
    served = {one["name"]: one["schema"]["openAPIV3Schema"] for one in spec["versions"] if one["served"]}
    return {
        "group": spec["group"],
        "kind": spec["names"]["kind"],
        "plural": spec["names"]["plural"],
        "scope": spec["scope"],
        "versions": {name: _bare(schema) for name, schema in sorted(served.items())},
    }


def _bare(schema: Any, names: bool = False) -> Any:
    """Without descriptions; `names` marks mappings whose keys are names of fields."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(value, names=key == "properties" and not names)
        for key, value in sorted(schema.items())
        if names or key not in ("description", "example", "externalDocs")
    }
