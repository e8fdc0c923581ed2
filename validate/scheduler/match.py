"""Matching of a pod's constraints on nodes and other pods, as kube-scheduler does it.

Source: k8s.io/kubernetes v1.34.4 and its staging modules: component-helpers scheduling/corev1/nodeaffinity,
api core/v1 toleration.go, apimachinery pkg/labels, pkg/scheduler/framework/plugins/tainttoleration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.objects import Body
from gangplan.validate.apiserver.labels import (
    HARD_EFFECTS,
    LabelMap,
    find_required_node_affinity_terms,
    has_all_labels,
    matches_any_node_selector_term,
    matches_labels,
)
from gangplan.validate.world import HOSTNAME_LABEL, NodeGroupTaint


def find_repelling_taint(
    taints: Sequence[NodeGroupTaint], tolerations: Sequence[Body]
) -> NodeGroupTaint | None:
    """Return the first taint that keeps the pod away."""
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not any(
            matches_taint_toleration(one, taint) for one in tolerations
        ):
            return taint
    return None


def matches_taint_toleration(toleration: Body, taint: NodeGroupTaint) -> bool:
    """Return whether a toleration covers a taint. An empty key or effect covers all of them.

    `validate/kueue/matching.py` differs: kube-scheduler 1.34 has no Lt and Gt.
    """
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    operator = toleration.get("operator") or "Equal"
    return operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == taint.value)


def matches_node_selector_and_affinity(spec: Body, labels: LabelMap) -> bool:
    """Return whether a pod's nodeSelector and required node affinity accept a node with these labels.

    Terms are alternatives; a term without expressions and fields accepts no node. `matchFields` supports only
    `metadata.name`. The names of a pool's nodes are unknown, so In accepts none of them and NotIn all.
    """
    terms = find_required_node_affinity_terms(spec)
    return has_all_labels(spec.get("nodeSelector") or {}, labels) and (
        terms is None or matches_any_node_selector_term(terms, labels, None)
    )


def matches_pods(selector: Body | None, labels: LabelMap) -> bool:
    """Return whether a label selector accepts a pod: None accepts no pod, an empty one every pod."""
    return selector is not None and matches_labels(selector, labels)


def add_match_label_keys_to_selector(constraint: Body, own: LabelMap) -> Body | None:
    """Return the selector of an affinity term or spread constraint, with the additions of its label keys.

    The API server merges `matchLabelKeys` and `mismatchLabelKeys` of affinity terms into the selector when it
    stores the pod (pkg/registry/core/pod/strategy.go); for spread constraints kube-scheduler does it. Without
    a selector the result is None.
    """
    selector: Body | None = constraint.get("labelSelector")
    if selector is None:
        return None
    added = [
        {"key": key, "operator": operator, "values": [own[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in constraint.get(field) or ()
        if key in own
    ]
    if not added:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]}


def applies_affinity_term_to_namespace(term: Body, own: str, namespaces: Mapping[str, LabelMap]) -> bool:
    """Return whether an affinity term applies to the run's own namespace, the only one that has pods.

    Without `namespaces` and `namespaceSelector` it applies to the pod's own; a selector adds matching ones.
    """
    named, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if not named and selector is None:
        return True
    labels = {"kubernetes.io/metadata.name": own, **namespaces.get(own, {})}
    return own in named or matches_pods(selector, labels)


def is_host_key(key: str) -> bool:
    """Return whether a topology key makes every node its own domain."""
    return key == HOSTNAME_LABEL
