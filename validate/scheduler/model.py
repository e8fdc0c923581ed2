"""The types of node fit: the result for the caller, and the question as plain numbers for the solvers.

A question has no names or texts that differ between runs, so equal questions are answered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from gangplan.records import dataclass

# The domains of a pool's nodes for a topology key: None if they lack its label, the value if they are all in
# one domain, else the number of nodes in each domain (0 if unknown).
PoolDomains = str | int | None
HOST_KEY: Final = -1  # the key kubernetes.io/hostname, in which every node is its own domain
Verdict = Literal["sure", "possible", "unknown", "no"]


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Equal nodes: their number, the room on each (thousandths of a core, bytes, devices), its pod limit."""

    count: int
    room: tuple[int, ...]
    pods: int
    places: tuple[PoolDomains, ...]
    cells: tuple[int, ...] = ()  # NUMA nodes over which each resource is divided; () if none is


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A constraint of `topologySpreadConstraints`: domains of `key` may differ by `skew` pods of `matched`.

    `counted` marks the pools whose domains are counted.
    """

    key: int
    skew: int
    domains: int
    matched: frozenset[int]
    counts_itself: bool
    counted: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class PodKind:
    """Equal pods. Kinds, pools and resources are numbered by their position in the question.

    `homes` marks the pools whose labels and taints accept them; `clashes` are the kinds that need the same
    host port. `near` are the keys of the affinity terms; `friends` are the kinds that match all of them.
    `apart` are pairs of a key and the kinds that must not be in the same domain. Pods of a stage are created
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
    spreads: tuple[SpreadConstraint, ...] = ()
    is_pinned: tuple[bool, ...] = ()  # by resource: whether a pod gets it from one NUMA node


@dataclass(frozen=True, slots=True)
class FitQuestion:
    """The pools and the kinds of pods of one question: how many of these pods find a node?"""

    pools: tuple[NodeShape, ...]
    kinds: tuple[PodKind, ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """The answer of a solver: `placed` are the pods by kind and pool that it could place.

    `is_most`: no placement has more. `sure` is the number of pods that run, whichever acceptable nodes
    kube-scheduler chooses, or None if unknown.
    """

    placed: tuple[tuple[int, ...], ...]
    is_most: bool
    sure: int | None

    @property
    def bound(self) -> int:
        """The number of pods with a node."""
        return sum(map(sum, self.placed))


@dataclass(frozen=True, slots=True)
class Fit:
    """The result of node fit for the pods of a run on an otherwise empty cluster.

    `bound` of `pods` pods find a node in the best case, `sure` of them in any case (None if unknown);
    `is_exact`: no choice gives more than `bound`. `placements` is pod set -> node group -> pods, `wanted` pod
    set -> pods, `nodes` pod set -> node group -> nodes that these pods need if packed. `reasons` are
    kube-scheduler's messages for the remaining pods, one per pod set.
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
        """Whether all pods can be placed."""
        return self.bound == self.pods

    @property
    def verdict(self) -> Verdict:
        """Whether all pods fit: `sure` in any case, `possible` in the best case, `no`, or `unknown`."""
        if self.fits:
            return "sure" if self.sure == self.pods else "possible"
        return "no" if self.is_exact else "unknown"
