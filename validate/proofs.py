"""Proofs: what the objects of a run will meet on the cluster. Each is one line in the table.

A proof is a function of the world and a run; it yields problems, each with the index of the object that it
is about. Proofs run only on objects that passed the gate (schemas and rules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gangplan.validate import podsecurity
from gangplan.validate.kueue.contention import prove_resumable
from gangplan.validate.kueue.proof import admission
from gangplan.validate.network import reachability
from gangplan.validate.problems import Problem
from gangplan.validate.promise import kept
from gangplan.validate.scheduler.proof import find_nodes
from gangplan.validate.trainer import launching
from gangplan.validate.world import BuiltRun, World

Proof = Callable[[World, BuiltRun], Iterator[tuple[int, Problem]]]

PROOFS: dict[str, Proof] = {
    "admission": admission,
    "contention": prove_resumable,
    "fit": find_nodes,
    "launching": launching.hosts,
    "network": reachability,
    "plan": kept,
    "pod security": podsecurity.allowed,
}


def prove(world: World, run: BuiltRun) -> list[tuple[int, Problem]]:
    """Everything that the proofs find, in the order of the table."""
    return [found for proof in PROOFS.values() for found in proof(world, run)]
