"""Labels against what selectors ask of them: label selectors, and the required node affinity of a pod.

Sources, the same from k8s.io v0.34 to v0.36: apimachinery pkg/labels, component-helpers
scheduling/corev1/nodeaffinity. Selectors are as their schema let them through. What a selector that is not
there means differs from place to place, and is up to who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gangplan.validate.apiserver.forms import Body

Labels = Mapping[str, str]
# Effects that keep a pod off a node; PreferNoSchedule only makes it less liked.
HARD = ("NoSchedule", "NoExecute")


def has_all(wanted: Labels, labels: Labels) -> bool:
    """Whether every wanted label is there."""
    return all(labels.get(key) == value for key, value in wanted.items())


def takes(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Whether a label selector takes an object with these labels; an empty one takes everything."""
    return has_all(selector.get("matchLabels") or {}, labels) and all(
        holds(entry, labels) for entry in selector.get("matchExpressions") or ()
    )


def holds(entry: Mapping[str, Any], labels: Labels) -> bool:
    """One requirement of a selector: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt.

    A missing label fulfils NotIn and DoesNotExist alone. Gt and Lt compare whole numbers; anything else
    on either side matches nothing.
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
    mine, bound = whole(labels[key]), whole(values[0])
    if mine is None or bound is None:
        return False
    return mine > bound if operator == "Gt" else operator == "Lt" and mine < bound


def whole(text: str) -> int | None:
    """A number as strconv.ParseInt reads it; None for everything else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    digits = digits.lstrip("0") or "0"
    number = int(f"-{digits}" if text[0] == "-" else digits) if len(digits) < 20 else 2**63
    return number if -(2**63) <= number < 2**63 else None


def required_terms(spec: Body) -> list[Body] | None:
    """The terms of the required node affinity of a pod, of which one must hold; None where there is none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else list(required.get("nodeSelectorTerms") or ())


def any_term(terms: Iterable[Body], labels: Labels, name: str | None) -> bool:
    """Whether one of the terms holds for a node with these labels and this name.

    A name of None is a node that has none yet; "" leaves `matchFields` aside, which know only the name.
    """
    return any(_term_holds(term, labels, name) for term in terms)


def _term_holds(term: Body, labels: Labels, name: str | None) -> bool:
    """One term; without expressions and fields it accepts no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    known = {} if name is None else {"metadata.name": name}
    return all(holds(entry, labels) for entry in expressions) and (
        name == "" or all(holds(entry, known) for entry in fields)
    )
