"""Taints and tolerations, node selectors and required affinity, label selectors.

Sources: k8s.io/api v0.36.2 core/v1 toleration.go, component-helpers v0.36.2 scheduling/corev1/nodeaffinity,
apimachinery pkg/labels; Kueue v0.19.2 flavorassigner.go (`flavorSelector`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gangplan.validate.forms import Body

HARD = ("NoSchedule", "NoExecute")
Labels = Mapping[str, str]


def untolerated(taints: Iterable[Body], tolerations: Collection[Body]) -> Body | None:
    """The first taint that keeps pods away and is not tolerated."""
    for taint in taints:
        if taint.get("effect") in HARD and not any(_tolerates(one, taint) for one in tolerations):
            return taint
    return None


def _tolerates(one: Body, taint: Body) -> bool:
    if one.get("effect") and one["effect"] != taint.get("effect"):
        return False
    if one.get("key") and one["key"] != taint["key"]:
        return False
    operator = one.get("operator") or "Equal"
    if operator == "Exists":
        return True
    value, other = one.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return bool(value == other)
    if operator in ("Lt", "Gt"):
        least, most = (_whole(other), _whole(value)) if operator == "Lt" else (_whole(value), _whole(other))
        return least is not None and most is not None and least < most
    return False


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def selects(selector: Body | None, labels: Labels) -> bool:
    """Whether a label selector (matchLabels, matchExpressions) takes the labels; None takes nothing."""
    if selector is None:
        return False
    return has_all(selector.get("matchLabels") or {}, labels) and all(
        _holds(entry, labels) for entry in selector.get("matchExpressions") or ()
    )


def has_all(wanted: Labels, labels: Labels) -> bool:
    """Whether every wanted label is there."""
    return all(labels.get(key) == value for key, value in wanted.items())


def _holds(entry: Body, labels: Labels) -> bool:
    """One requirement of a label or node selector."""
    key, operator, values = entry["key"], entry["operator"], entry.get("values") or ()
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values  # a missing label is not among them
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    have, bound = _whole(labels.get(key, "")), _whole(values[0]) if values else None
    if have is None or bound is None:
        return False
    return have > bound if operator == "Gt" else have < bound


def required_terms(spec: Body) -> list[Body] | None:
    """The terms of the required node affinity of a pod, of which one must hold; None where there is none."""
    affinity: Any = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else list(required["nodeSelectorTerms"])


def any_term(terms: Iterable[Body], labels: Labels, name: str = "") -> bool:
    """Whether one of the terms holds; an empty one never does."""
    return any(_term(term, labels, name) for term in terms)


def _term(term: Body, labels: Labels, name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    if not all(_holds(entry, labels) for entry in expressions):
        return False
    return not name or all(_holds(entry, {"metadata.name": name}) for entry in fields)


def fits_flavor(spec: Body, labels: Labels, keys: Collection[str]) -> bool:
    """Whether a flavor's labels fit the pod's node selector and required affinity, on some keys alone."""
    selector = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key in keys}
    if not has_all(selector, labels):
        return False
    terms = []
    for term in required_terms(spec) or ():
        kept = [entry for entry in term.get("matchExpressions") or () if entry["key"] in keys]
        if not kept:  # terms are alternatives: one that says nothing of this flavor leaves only the selector
            return True
        terms.append({"matchExpressions": kept})
    return not terms or any_term(terms, labels)
