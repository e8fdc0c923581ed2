"""Matching labels with label selectors, and with the required node affinity of a pod.

Sources, the same from k8s.io v0.34 to v0.36: apimachinery pkg/labels, component-helpers
scheduling/corev1/nodeaffinity. Selectors must fit their schema. What a missing selector means differs from
place to place, so callers decide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gangplan.objects import Body

LabelMap = Mapping[str, str]
# Effects that keep a pod off a node; PreferNoSchedule only lowers the node's score.
HARD_EFFECTS = ("NoSchedule", "NoExecute")


def has_all_labels(wanted: LabelMap, labels: LabelMap) -> bool:
    """Return whether labels include every wanted label."""
    return all(labels.get(key) == value for key, value in wanted.items())


def matches_labels(selector: Mapping[str, Any], labels: LabelMap) -> bool:
    """Return whether a label selector matches an object with these labels; an empty one always does."""
    return has_all_labels(selector.get("matchLabels") or {}, labels) and all(
        matches_label_requirement(entry, labels) for entry in selector.get("matchExpressions") or ()
    )


def matches_label_requirement(entry: Mapping[str, Any], labels: LabelMap) -> bool:
    """Return whether labels meet one requirement: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt.

    A missing label meets only NotIn and DoesNotExist. Gt and Lt compare whole numbers; anything else on
    either side matches nothing.
    """
    key, operator, values = entry["key"], entry["operator"], entry.get("values") or []
    there = key in labels
    if operator == "In":
        return there and labels[key] in values
    if operator == "NotIn":
        return not there or labels[key] not in values
    if operator in ("Exists", "DoesNotExist"):
        return there is (operator == "Exists")
    if not there or len(values) != 1:
        return False
    mine, bound = parse_integer_like_api_server(labels[key]), parse_integer_like_api_server(values[0])
    if mine is None or bound is None:
        return False
    return mine > bound if operator == "Gt" else operator == "Lt" and mine < bound


def parse_integer_like_api_server(text: str) -> int | None:
    """Parse a whole number as strconv.ParseInt does; return None for anything else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    digits = digits.lstrip("0") or "0"
    number = int(f"-{digits}" if text[0] == "-" else digits) if len(digits) < 20 else 2**63
    return number if -(2**63) <= number < 2**63 else None


def find_required_node_affinity_terms(spec: Body) -> list[Body] | None:
    """Return the terms of a pod's required node affinity; None if there is none.

    One of the terms must match.
    """
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else list(required.get("nodeSelectorTerms") or ())


def matches_any_node_selector_term(terms: Iterable[Body], labels: LabelMap, name: str | None) -> bool:
    """Return whether one of the terms matches a node with these labels and this name.

    A name of None is a node that has no name yet; "" ignores `matchFields`, which only test the name.
    """
    return any(_matches_node_selector_term(term, labels, name) for term in terms)


def _matches_node_selector_term(term: Body, labels: LabelMap, name: str | None) -> bool:
    """Return whether one term matches; a term without expressions and fields matches no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    known = {} if name is None else {"metadata.name": name}
    return all(matches_label_requirement(entry, labels) for entry in expressions) and (
        name == "" or all(matches_label_requirement(entry, known) for entry in fields)
    )
