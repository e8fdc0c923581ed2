"""Checks for node labels that pods select but that no pool of the cluster file states."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from gangplan.objects import Body
from gangplan.validate.scheduler.fits import fit_pods
from gangplan.validate.scheduler.pods import PodShape
from gangplan.validate.scheduler.reduce import REQUIRED_AFFINITY, list_node_label_keys_selected_by_pod
from gangplan.validate.world import HOSTNAME_LABEL, World

_FIELDS = "metadata.name"


def find_undeclared_node_labels(world: World, pods: Sequence[PodShape]) -> list[str]:
    """Return the undeclared labels that keep pods from nodes; empty if they would not fit without them."""
    told = {key for group in world.nodes for key in (*group.labels, *(label for label, _ in group.domains))}
    asked = (
        {key for one in pods for key in list_node_label_keys_selected_by_pod(one.spec)}
        - told
        - {HOSTNAME_LABEL, _FIELDS}
    )
    if (
        not asked
        or fit_pods(world, [_remove_node_selectors_from_pods(one, asked) for one in pods]).verdict == "no"
    ):
        return []
    return sorted(asked)


def _remove_node_selectors_from_pods(one: PodShape, keys: Collection[str]) -> PodShape:
    """Return the pods without their selectors for these labels."""
    selector = {key: value for key, value in (one.spec.get("nodeSelector") or {}).items() if key not in keys}
    spec: Body = {**one.spec, "nodeSelector": selector}
    affinity = spec.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    terms = [
        _remove_term_expressions(term, keys)
        for term in (node.get(REQUIRED_AFFINITY) or {}).get("nodeSelectorTerms") or ()
    ]
    if terms:
        rest = {name: value for name, value in node.items() if name != REQUIRED_AFFINITY}
        kept = {} if not all(terms) else {REQUIRED_AFFINITY: {"nodeSelectorTerms": terms}}
        spec["affinity"] = {**affinity, "nodeAffinity": {**rest, **kept}}
    return replace(one, spec=spec)


def _remove_term_expressions(term: Body, keys: Collection[str]) -> Body:
    kept = [each for each in term.get("matchExpressions") or () if each["key"] not in keys]
    rest = {name: value for name, value in term.items() if name != "matchExpressions"}
    return {**rest, **({"matchExpressions": kept} if kept else {})}
