"""Matching of taints, node selectors, required affinity and label selectors, as Kueue does it.

Sources: k8s.io/api v0.36.2 core/v1 toleration.go, component-helpers v0.36.2 scheduling/corev1/nodeaffinity,
apimachinery pkg/labels; Kueue v0.19.2 flavorassigner.go (`flavorSelector`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gangplan.objects import Body
from gangplan.validate.apiserver.labels import (
    HARD_EFFECTS,
    LabelMap,
    find_required_node_affinity_terms,
    has_all_labels,
    matches_any_node_selector_term,
    matches_labels,
    parse_integer_like_api_server,
)


def find_untolerated_taint(taints: Iterable[Body], tolerations: Collection[Body]) -> Body | None:
    """Return the first taint that keeps pods away and is not tolerated."""
    for taint in taints:
        if taint.get("effect") in HARD_EFFECTS and not any(
            _can_tolerate_taint(one, taint) for one in tolerations
        ):
            return taint
    return None


def _can_tolerate_taint(one: Body, taint: Body) -> bool:
    """Return whether a toleration covers a taint.

    `validate/scheduler/match.py` differs: Kueue has the API of 0.36, with Lt and Gt.
    """
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
        least, most = (
            (parse_integer_like_api_server(other), parse_integer_like_api_server(value))
            if operator == "Lt"
            else (parse_integer_like_api_server(value), parse_integer_like_api_server(other))
        )
        return least is not None and most is not None and least < most
    return False


def matches_pod_selector(selector: Body | None, labels: LabelMap) -> bool:
    """Return whether a label selector (matchLabels, matchExpressions) matches; None matches nothing."""
    return selector is not None and matches_labels(selector, labels)


def fits_resource_flavor_labels(spec: Body, labels: LabelMap, keys: Collection[str]) -> bool:
    """Return whether a flavor's labels fit the pod's node selector and required affinity, for `keys` only."""
    selector = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key in keys}
    if not has_all_labels(selector, labels):
        return False
    terms = []
    for term in find_required_node_affinity_terms(spec) or ():
        kept = [entry for entry in term.get("matchExpressions") or () if entry["key"] in keys]
        if not kept:  # terms are alternatives: with one that matches any flavor, only the selector counts
            return True
        terms.append({"matchExpressions": kept})
    return not terms or matches_any_node_selector_term(terms, labels, "")
