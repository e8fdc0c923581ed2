"""How the API server serves a kind, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class Resource:
    """A kind as the server serves it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of a collection, or of one object in it."""
        parts = ["api" if "/" not in self.api_version else "apis", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace)]
        parts += [self.plural, quote(name)] if name else [self.plural]
        return "/" + "/".join(parts)


def served_kinds(group: dict[str, Any]) -> Iterable[Resource]:
    """Yield the kinds of one group of an aggregated discovery answer."""
    name = group["metadata"].get("name", "")
    for version in group["versions"]:
        api_version = f"{name}/{version['version']}" if name else version["version"]
        for item in version.get("resources", ()):
            kind = (item.get("responseKind") or {}).get("kind")
            if kind:
                yield Resource(api_version, kind, item["resource"], item["scope"] == "Namespaced")
