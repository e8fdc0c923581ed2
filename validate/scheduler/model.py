"""The nouns of node fit: what came out for the caller, and the question as plain numbers for the solvers.

A question holds no names and no texts that differ from run to run, so equal questions are answered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from gangplan.records import dataclass

# Where the nodes of a pool stand with respect to a topology key: without its label (None), all in the domain
# of one value (a text), or so many nodes in each domain (a number; 0: nobody said how many).
Place = str | int | None
HOST: Final = -1  # the key kubernetes.io/hostname, in which every node is its own domain
Verdict = Literal["sure", "possible", "unknown", "no"]


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Nodes of one shape: how many, what each has (thousandths of a core, bytes, devices), pods at most."""

    count: int
    room: tuple[int, ...]
    pods: int
    places: tuple[Place, ...]
    cells: tuple[int, ...] = ()  # NUMA nodes among which each resource is divided; (): none is


@dataclass(frozen=True, slots=True)
class Spread:
    """A constraint of `topologySpreadConstraints`: domains of `key` may differ by `skew` pods of `matched`.

    `counted` are the pools whose domains are looked at.
    """

    key: int
    skew: int
    domains: int
    matched: frozenset[int]
    counts_itself: bool
    counted: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """Pods of one shape. Kinds are numbered; pools and resources by their place in the question.

    `homes` are the pools whose labels and taints accept them, `clashes` the kinds that want a host port that
    these want too. `near` are the keys of the affinity terms; `friends` the kinds that match all of them.
    `apart` are pairs of a key and the kinds that must not be in the same domain. Pods of a stage are made
    when all pods of earlier stages run.
    """

    count: int
    stage: int
    needs: tuple[int, ...]
    homes: tuple[bool, ...]
    clashes: frozenset[int] = frozenset()
    near: tuple[int, ...] = ()
    friends: frozenset[int] = frozenset()
    apart: tuple[tuple[int, frozenset[int]], ...] = ()
    spreads: tuple[Spread, ...] = ()
    is_pinned: tuple[bool, ...] = ()  # by resource: whether these pods have it from one NUMA node


@dataclass(frozen=True, slots=True)
class Question:
    """Which of these pods find a node among these?"""

    pools: tuple[NodeShape, ...]
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """`placed` are pods by kind and pool: as many as a solver could place.

    `is_most`: no placement has more. `sure` are the pods that run whatever kube-scheduler chooses among nodes
    that it finds acceptable; None: not known.
    """

    placed: tuple[tuple[int, ...], ...]
    is_most: bool
    sure: int | None

    @property
    def bound(self) -> int:
        """Pods with a node."""
        return sum(map(sum, self.placed))


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether the pods of a run find nodes on an otherwise empty cluster.

    `bound` of `pods` pods have a node at best, `sure` of them however kube-scheduler chooses (None: not
    known); `is_exact`: `bound` is the most that any choice gives. `placements` is pod set -> node group ->
    pods, `wanted` pod set -> pods, `nodes` pod set -> node group -> nodes that these pods need when packed.
    `reasons` are kube-scheduler's words for the pods that are left, one per pod set.
    """

    pods: int
    bound: int
    sure: int | None
    is_exact: bool
    wanted: Mapping[str, int] = field(default_factory=dict)
    placements: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    nodes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether there is a placement of all pods."""
        return self.bound == self.pods

    @property
    def verdict(self) -> Verdict:
        """sure: however the scheduler chooses; possible: if well; no: never; unknown: none found."""
        if self.fits:
            return "sure" if self.sure == self.pods else "possible"
        return "no" if self.is_exact else "unknown"
