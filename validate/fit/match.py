"""What a pod says of nodes and of other pods, matched as kube-scheduler matches it.

Source: k8s.io/kubernetes v1.34.4 and its staging modules: component-helpers scheduling/corev1/nodeaffinity,
api core/v1 toleration.go, apimachinery pkg/labels, pkg/scheduler/framework/plugins/tainttoleration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.validate.forms import Body
from gangplan.validate.world import HOSTNAME, Taint

Labels = Mapping[str, str]
# Effects that keep a pod off a node; PreferNoSchedule only makes it less liked.
HARD = ("NoSchedule", "NoExecute")


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Body]) -> Taint | None:
    """The first taint that keeps the pod away."""
    for taint in taints:
        if taint.effect in HARD and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def tolerates(toleration: Body, taint: Taint) -> bool:
    """Whether one toleration covers one taint. An empty key or effect covers all of them."""
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
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term(term, labels) for term in required.get("nodeSelectorTerms") or ())


def _term(term: Body, labels: Labels) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(expression(one, labels) for one in expressions) and all(
        one.get("operator") == "NotIn" for one in fields
    )


def expression(one: Body, labels: Labels) -> bool:
    """One requirement of a selector: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt.

    A missing label fulfils NotIn and DoesNotExist alone. Gt and Lt compare whole numbers; anything else
    on either side matches nothing.
    """
    key, operator, values = one["key"], one["operator"], one.get("values") or []
    there = key in labels
    if operator == "In":
        return there and labels[key] in values
    if operator == "NotIn":
        return not there or labels[key] not in values
    if operator == "Exists":
        return there
    if operator == "DoesNotExist":
        return not there
    if not there or len(values) != 1:
        return False
    mine, bound = _whole(labels[key]), _whole(values[0])
    if mine is None or bound is None:
        return False
    return mine > bound if operator == "Gt" else operator == "Lt" and mine < bound


def _whole(text: Any) -> int | None:
    """A number as strconv.ParseInt reads it."""
    digits = str(text)
    bare = digits[1:] if digits[:1] in ("+", "-") else digits
    if not bare.isascii() or not bare.isdigit():
        return None
    return int(digits) if -(2**63) <= int(digits) < 2**63 else None


def pods_match(selector: Body | None, labels: Labels) -> bool:
    """Whether a label selector accepts a pod: none accepts no pod, an empty one every pod."""
    if selector is None:
        return False
    wanted = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        expression(one, labels) for one in selector.get("matchExpressions") or ()
    )


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
