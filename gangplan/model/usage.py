"""What is in use on a cluster, read from the output of `kubectl get clusterqueues -o json`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gangplan.errors import UserError, build_unreadable_file_error
from gangplan.model.quantity import Quantity, QuantityError, parse_quantity
from gangplan.source import ManifestError, load_objects

# queue -> flavor -> resource -> amount
QueueUsage = dict[str, dict[str, dict[str, Quantity]]]

HELP = "Write it with: kubectl get clusterqueues -o json > usage.json"


def read_usage(path: Path) -> QueueUsage:
    """Read what each ClusterQueue of the file uses, by flavor and resource. Raises UserError.

    Kueue records it in `status.flavorsUsage` (v1beta1 and v1beta2 alike, v0.15 to v0.19).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise build_unreadable_file_error(path, error, HELP) from None
    usage: QueueUsage = {}
    try:
        for queue in _iterate_cluster_queues(_load_usage_documents(path, text)):
            name = queue["metadata"]["name"]
            if not isinstance(name, str):
                raise TypeError
            flavors = (queue.get("status") or {}).get("flavorsUsage") or []
            usage[name] = {
                str(flavor["name"]): _parse_usage_amounts(flavor.get("resources") or []) for flavor in flavors
            }
    except (KeyError, TypeError, AttributeError, QuantityError):
        raise UserError(f"{path} holds a ClusterQueue that cannot be read", HELP) from None
    if not usage:
        raise UserError(f"{path} holds no ClusterQueue", HELP)
    return usage


def _load_usage_documents(path: Path, text: str) -> list[Any]:
    is_json = text.lstrip()[:1] in ("{", "[")
    try:
        return [json.loads(text)] if is_json else list(load_objects(text))
    except ManifestError as error:
        raise UserError(f"{path} is neither JSON nor YAML: {str(error).splitlines()[0]}", HELP) from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", HELP) from None
    except RecursionError:
        raise UserError(f"{path} is nested too deeply to be a snapshot", HELP) from None


def _iterate_cluster_queues(documents: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else document
        for body in items if isinstance(items, list) else [document]:
            if isinstance(body, dict) and body.get("kind") == "ClusterQueue":
                yield body


def _parse_usage_amounts(resources: Iterable[dict[str, Any]]) -> dict[str, Quantity]:
    amounts = {str(item["name"]): parse_quantity(str(item.get("total") or "0")) for item in resources}
    if any(amount.nano < 0 for amount in amounts.values()):
        raise TypeError
    return amounts
