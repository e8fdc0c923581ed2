"""A LabelSelector against labels (apimachinery v0.34, pkg/apis/meta/v1/helpers.go and pkg/labels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """Whether a selector that its schema let through takes an object with these labels.

    An empty selector takes everything. NotIn and DoesNotExist also take an object without the label.
    """
    labels = labels or {}
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_holds(entry, labels) for entry in (selector or {}).get("matchExpressions") or ())


def is_empty(selector: Mapping[str, Any] | None) -> bool:
    """Whether it asks for nothing at all."""
    return not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions")


def _holds(entry: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = entry["key"], entry["operator"]
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    is_in = key in labels and labels[key] in (entry.get("values") or ())
    return is_in if operator == "In" else not is_in
