"""What was applied to a cluster, and from which commit: a ConfigMap, written before and after each sync."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable

from gangplan.errors import ToolError
from gangplan.live.access import ApiRefusedError
from gangplan.objects import Ref
from gangplan.records import dataclass
from gangplan.sync.writer import ClusterWriter

_OBJECTS = "objects.json.gz"


@dataclass(frozen=True, slots=True, order=True)
class InventoryEntry:
    """An object, and the unit that it is pruned with (see `tree.SyncGroup`)."""

    unit: str
    ref: Ref


@dataclass(frozen=True, slots=True)
class Inventory:
    """The ConfigMap of a cluster as it was read; `version` is its resourceVersion, empty if there is none."""

    cluster: str
    namespace: str
    revision: str = ""
    entries: frozenset[InventoryEntry] = frozenset()
    version: str = ""

    @property
    def path(self) -> str:
        """The path of the ConfigMap in the API."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}"

    @property
    def name(self) -> str:
        """The name of the ConfigMap."""
        return f"gangplan-inventory-{self.cluster}"


def read_inventory(writer: ClusterWriter, cluster: str, namespace: str) -> Inventory:
    """Read the inventory of a cluster. Raises ToolError, also if the ConfigMap is damaged."""
    empty = Inventory(cluster, namespace)
    body = writer.find(empty.path)
    if body is None:
        return empty
    try:
        packed = base64.b64decode((body.get("binaryData") or {})[_OBJECTS], validate=True)
        rows = json.loads(gzip.decompress(packed))
        entries = frozenset(InventoryEntry(str(unit), Ref(*map(str, ref))) for unit, *ref in rows)
        revision = str((body.get("data") or {})["revision"])
    except (KeyError, ValueError, TypeError, OSError, EOFError):
        raise ToolError(
            f"ConfigMap {namespace}/{empty.name} is not as gangplan wrote it",
            "Delete it: the next sync makes another one, and prunes nothing that the old one had.",
        ) from None
    return Inventory(cluster, namespace, revision, entries, str(body["metadata"]["resourceVersion"]))


def write_inventory(
    writer: ClusterWriter, before: Inventory, revision: str, entries: Iterable[InventoryEntry]
) -> Inventory:
    """Write an inventory in place of the one that was read, and return it.

    Raises ToolError, also if another sync has written it since, or the namespace does not exist.
    """
    kept = frozenset(entries)
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": before.name,
            "namespace": before.namespace,
            "labels": {"app.kubernetes.io/managed-by": "gangplan"},
        },
        "data": {"revision": revision},
        "binaryData": {_OBJECTS: _pack_inventory_entries(kept)},
    }
    try:
        version = writer.put(before.path, body, before.version)
    except ApiRefusedError as error:
        if error.status == 409:
            raise ToolError(
                f"another sync of {before.cluster} has begun meanwhile",
                "Let it end, then run this again if its commit is not a later one.",
            ) from None
        if error.status == 404:
            raise ToolError(
                f"namespace {before.namespace} is not there, and the inventory is to be in it",
                f"Make it (kubectl create namespace {before.namespace}), or name another one: --namespace.",
            ) from None
        raise
    return Inventory(before.cluster, before.namespace, revision, kept, version)


def _pack_inventory_entries(entries: Iterable[InventoryEntry]) -> str:
    """Pack entries as compressed JSON.

    A ConfigMap holds at most 1 MiB, which is about 100 000 objects in this form.
    """
    rows = [
        [one.unit, one.ref.api_version, one.ref.kind, one.ref.namespace, one.ref.name]
        for one in sorted(entries)
    ]
    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
