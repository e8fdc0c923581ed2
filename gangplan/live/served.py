"""How the API server serves a kind: its path, and whether it is namespaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.live.access import Access
from gangplan.live.rights import Right
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind's resource (`trainjobs`) and whether it is namespaced."""

    api_version: str
    resource: str
    is_namespaced: bool

    def path(self, body: Mapping[str, Any]) -> str:
        """Return the path of an object of the kind."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        metadata = body["metadata"]
        space = f"/namespaces/{metadata.get('namespace') or 'default'}" if self.is_namespaced else ""
        return f"{root}{space}/{self.resource}/{metadata['name']}"

    def rights(self, body: Mapping[str, Any]) -> tuple[Right, Right]:
        """Return the rights that applying an object needs; `create` if it does not exist yet."""
        space = str(body["metadata"].get("namespace") or "default") if self.is_namespaced else ""
        group = self.api_version.rpartition("/")[0]
        return Right(group, self.resource, "create", space), Right(group, self.resource, "patch", space)


class KindCatalog:
    """The kinds that one API server serves; each version is read once."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._known: dict[str, dict[str, ServedKind]] = {}

    def find(self, body: Mapping[str, Any]) -> ServedKind | None:
        """Return how the kind of an object is served; None if it is not. Raises ToolError."""
        version = str(body["apiVersion"])
        if version not in self._known:
            path = f"/apis/{version}" if "/" in version else f"/api/{version}"
            listed = self.access.find(path) or {}
            self._known[version] = {
                str(one["kind"]): ServedKind(version, str(one["name"]), bool(one.get("namespaced")))
                for one in listed.get("resources") or ()
                if "/" not in one["name"]
            }
        return self._known[version].get(str(body["kind"]))
