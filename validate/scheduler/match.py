"""What a pod says of nodes and of other pods, matched as kube-scheduler matches it.

Source: k8s.io/kubernetes v1.34.4 and its staging modules: component-helpers scheduling/corev1/nodeaffinity,
api core/v1 toleration.go, apimachinery pkg/labels, pkg/scheduler/framework/plugins/tainttoleration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.validate.apiserver.forms import Body
from gangplan.validate.apiserver.labels import HARD, Labels, any_term, has_all, required_terms, takes
from gangplan.validate.world import HOSTNAME, NodeGroupTaint


def untolerated(taints: Sequence[NodeGroupTaint], tolerations: Sequence[Body]) -> NodeGroupTaint | None:
    """The first taint that keeps the pod away."""
    for taint in taints:
        if taint.effect in HARD and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def tolerates(toleration: Body, taint: NodeGroupTaint) -> bool:
    """Whether one toleration covers one taint. An empty key or effect covers all of them.

    Not `admission.matching`: this is kube-scheduler 1.34, which has no Lt and Gt.
    """
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if toleration.get("key") and toleration["key"] != taint.key:
        return False
    operator = toleration.get("operator") or "Equal"
    return operator == "Exists" or (operator == "Equal" and (toleration.get("value") or "") == taint.value)


def node_matches(spec: Body, labels: Labels) -> bool:
    """Whether a pod's nodeSelector and required node affinity accept a node with these labels.

    Terms are alternatives; a term without expressions and fields accepts no node. `matchFields` knows only
    `metadata.name`, which no node of a pool is known by before it exists: In accepts none of them, NotIn all.
    """
    terms = required_terms(spec)
    return has_all(spec.get("nodeSelector") or {}, labels) and (
        terms is None or any_term(terms, labels, None)
    )


def pods_match(selector: Body | None, labels: Labels) -> bool:
    """Whether a label selector accepts a pod: none accepts no pod, an empty one every pod."""
    return selector is not None and takes(selector, labels)


def with_label_keys(constraint: Body, own: Labels) -> Body | None:
    """The selector of an affinity term or spread constraint, with what its label keys add.

    The API server merges `matchLabelKeys` and `mismatchLabelKeys` of affinity terms into the selector when
    it stores the pod (pkg/registry/core/pod/strategy.go); for spread constraints kube-scheduler does it.
    A selector that is not there stays so.
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


def in_namespaces(term: Body, own: str, namespaces: Mapping[str, Labels]) -> bool:
    """Whether an affinity term looks at the run's own namespace, the only one that has pods.

    Without `namespaces` and `namespaceSelector` it looks at the pod's own; a selector adds those it matches.
    """
    named, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if not named and selector is None:
        return True
    labels = {"kubernetes.io/metadata.name": own, **namespaces.get(own, {})}
    return own in named or pods_match(selector, labels)


def is_host(key: str) -> bool:
    """Whether a topology key is the one in which every node stands alone."""
    return key == HOSTNAME
