"""Nodes for the pods of a run: as a sentence for people, as data for machines."""

from __future__ import annotations

from typing import Any

from gangplan.model.backend import role_of, title_of
from gangplan.validate.scheduler import Fit

TAILS = {"sure": "", "possible": " (if they are packed tightly)", "no": "", "unknown": " (not judged)"}


def describe_node_fit(fit: Fit | None) -> str:
    """Return `16 workers need 4 nodes of a100, launcher on cpu`, and why not if pods are left."""
    if fit is None:
        return "none: the run is not admitted"
    said = ", ".join(_format_nodes_of_pod_set(fit, name) for name in fit.wanted)
    missing = f": {fit.reasons[0]}" if fit.reasons else ""
    tail = " (found by search)" if fit.fits and fit.sure is None else TAILS[fit.verdict]
    return f"{said}{tail}{missing}"


def _format_nodes_of_pod_set(fit: Fit, name: str) -> str:
    """Return the text of one pod set: how many of its pods are on how many nodes of which pools."""
    wanted, placed = fit.wanted[name], fit.placements.get(name, {})
    found = sum(placed.values())
    called = title_of(name) if role_of(name) else f"pods of {name}"
    if not found:
        return f"{called}: no node" if wanted == 1 else f"none of {wanted} {called}"
    if wanted == 1:
        one = role_of(name) or f"pod of {name}"
        return f"{one} on {next(iter(placed))}"
    where = " and ".join(_format_pool_node_count(pool, fit.nodes[name][pool]) for pool in placed)
    share = f"{wanted} {called}" if found == wanted else f"only {found} of {wanted} {called}"
    return f"{share} {'need' if found == wanted else 'fit on'} {where}"


def _format_pool_node_count(pool: str, nodes: int) -> str:
    return f"{nodes} node{'' if nodes == 1 else 's'} of {pool}"


def build_node_fit_json(fit: Fit | None) -> dict[str, Any] | None:
    """Return a fit as data: verdict sure, possible, unknown or no; pods and nodes by pod set and pool.

    `sure` are the pods that run with any choice of kube-scheduler, null if that is not known.
    """
    if fit is None:
        return None
    return {
        "verdict": fit.verdict,
        "pods": fit.pods,
        "bound": fit.bound,
        "sure": fit.sure,
        "placements": {name: dict(pools) for name, pools in fit.placements.items()},
        "nodes": {name: dict(pools) for name, pools in fit.nodes.items()},
        "reasons": list(fit.reasons),
    }
