"""A snapshot of a cluster, its text, and its reader; the same facts give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.errors import ToolError, UserError, build_unreadable_file_error
from gangplan.model.version import parse_version
from gangplan.records import dataclass

#: The folder of `cluster snapshot`: next to the workspace's inputs, since nothing is rendered from it.
SNAPSHOT_FOLDER = "observed"
KIND = "ClusterSnapshot"
_HELP = "Write it with: gangplan cluster snapshot NAME"
_API_VERSION = "gangplan.dev/v1"
# Field of the file -> field of the value.
_FIELDS = {
    "cluster": "cluster",
    "observed": "observed",
    "versions": "versions",
    "crds": "crds",
    "fields": "fields",
    "nodes": "nodes",
    "topology": "topology",
    "storageClasses": "storage_classes",
    "runtimeClasses": "runtime_classes",
    "trainJobs": "train_jobs",
    "unseen": "unseen",
    "items": "items",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at a time.

    `unseen` are rights that were missing; `refusal` is the first refusal. `items` are ClusterQueues,
    LocalQueues, ResourceFlavors, ResourceQuotas and gangplan's TrainJobs in the form of `kubectl get -o
    json`, so that `--usage` and `--finished` can read the file too.
    """

    cluster: str
    observed: str
    versions: Mapping[str, str]
    crds: Mapping[str, Sequence[str]]
    fields: Mapping[str, Sequence[str]]
    nodes: Sequence[Mapping[str, Any]]
    topology: Mapping[str, Mapping[str, int]]
    storage_classes: Mapping[str, Mapping[str, Any]]
    runtime_classes: Sequence[str]
    train_jobs: Mapping[str, Mapping[str, int]]
    unseen: Sequence[str]
    items: Sequence[Mapping[str, Any]]
    refusal: ToolError | None = None

    def saw(self, resource: str) -> bool:
        """Return whether a resource (`nodes`, `storageclasses.storage.k8s.io`) could be listed."""
        return not any(one.startswith(f"list {resource} ") for one in self.unseen)


def format_snapshot(snapshot: Snapshot) -> str:
    """Return the text of the snapshot's file."""
    body = {"apiVersion": _API_VERSION, "kind": KIND}
    body |= {name: getattr(snapshot, field) for name, field in _FIELDS.items()}
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_cluster_snapshot(path: Path) -> Snapshot:
    """Read a file that `format_snapshot` wrote. Raises UserError."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise build_unreadable_file_error(path, error, _HELP) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}", _HELP) from None
    if not isinstance(body, dict) or body.get("kind") != KIND:
        raise UserError(f"{path} is not a snapshot of a cluster", _HELP)
    shapes = {"cluster": str, "observed": str}
    lists = ("nodes", "runtimeClasses", "unseen", "items")
    for name in _FIELDS:
        shape = shapes.get(name, list if name in lists else dict)
        if not isinstance(body.get(name), shape):
            raise UserError(f"{path}: {name} is missing or has another form", _HELP)
    if not _is_whole_snapshot(body):
        raise UserError(f"{path} has parts of another form: somebody has changed it", _HELP)
    return Snapshot(**{field: body[name] for name, field in _FIELDS.items()})


def _is_whole_snapshot(body: Mapping[str, Any]) -> bool:
    """Return whether the parts that are compared have the form in which they are written."""
    try:
        for one in body["nodes"]:
            _ = one["pool"], one["count"] + one["ready"], dict(one["labels"])
            _ = [
                (str(taint["key"]), str(taint["effect"]), taint["value"], taint["nodes"])
                for taint in one["taints"]
            ]
            _ = [str(amount["least"]) for amount in one["allocatable"].values()]
        _ = [parse_version(text) for text in body["versions"].values()]
        _ = [one["nodes"] + one["largest"] for one in body["topology"].values()]
        _ = [", ".join(served) for served in (*body["crds"].values(), *body["fields"].values())]
        _ = [one.get("default") for one in body["storageClasses"].values()]
        return all(isinstance(one, str) for one in (*body["runtimeClasses"], *body["unseen"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
