"""Matching a LabelSelector with labels (apimachinery v0.34, pkg/apis/meta/v1/helpers.go and pkg/labels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.validate.apiserver.labels import matches_labels


def matches_admission_policy_selector(
    selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None
) -> bool:
    """Return whether a selector that fits its schema matches an object with these labels.

    None is an empty selector, which matches everything.
    """
    return matches_labels(selector or {}, labels or {})


def is_empty_selector(selector: Mapping[str, Any] | None) -> bool:
    """Return whether a selector has no requirements."""
    return not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions")
