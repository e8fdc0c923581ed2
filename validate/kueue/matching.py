"""Matching of taints, node selectors, required affinity and label selectors, as Kueue does it.

Sources: k8s.io/api v0.36.2 core/v1 toleration.go, component-helpers v0.36.2 scheduling/corev1/nodeaffinity,
apimachinery pkg/labels; Kueue v0.19.2 flavorassigner.go (`flavorSelector`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gangplan.validate.apiserver.forms import Body
from gangplan.validate.apiserver.labels import HARD, Labels, any_term, has_all, required_terms, takes, whole


def untolerated(taints: Iterable[Body], tolerations: Collection[Body]) -> Body | None:
    """Return the first taint that keeps pods away and is not tolerated."""
    for taint in taints:
        if taint.get("effect") in HARD and not any(_tolerates(one, taint) for one in tolerations):
            return taint
    return None


def _tolerates(one: Body, taint: Body) -> bool:
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
        least, most = (whole(other), whole(value)) if operator == "Lt" else (whole(value), whole(other))
        return least is not None and most is not None and least < most
    return False


def selects(selector: Body | None, labels: Labels) -> bool:
    """Return whether a label selector (matchLabels, matchExpressions) matches; None matches nothing."""
    return selector is not None and takes(selector, labels)


def fits_flavor(spec: Body, labels: Labels, keys: Collection[str]) -> bool:
    """Return whether a flavor's labels fit the pod's node selector and required affinity, for `keys` only."""
    selector = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key in keys}
    if not has_all(selector, labels):
        return False
    terms = []
    for term in required_terms(spec) or ():
        kept = [entry for entry in term.get("matchExpressions") or () if entry["key"] in keys]
        if not kept:  # terms are alternatives: with one that matches any flavor, only the selector counts
            return True
        terms.append({"matchExpressions": kept})
    return not terms or any_term(terms, labels, "")
