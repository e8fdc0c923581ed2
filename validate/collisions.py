"""Checks across all runs of a cluster: runs that block each other, and runs that others preempt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, combinations

from gangplan.kueue.model import FlavorResource
from gangplan.model.amounts import format_amount, format_with_unit
from gangplan.records import dataclass
from gangplan.validate.kueue.contention import RunDemand
from gangplan.validate.world import NodeGroup

# Only pairs of this many of the largest runs of a pool are tried; more would only name other victims.
MOST_RUNS = 40


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Runs that each hold some of their pods while none can place the next one.

    `placed` gives, by the run's name, the pods that it has and the pods that it needs.
    """

    pools: tuple[str, ...]
    placed: Mapping[str, tuple[int, int]]
    resource: str
    wanted: Fraction
    there: Fraction

    @property
    def message(self) -> str:
        """The finding's text, without the cluster."""
        parts = [f"{name} with {have} of {need} pods" for name, (have, need) in self.placed.items()]
        return (
            f"runs can block each other in {' and '.join(self.pools)}: together they want"
            f" {format_amount(self.resource, self.wanted)} of {format_with_unit(self.resource, self.there)},"
            f" and nothing starts all pods of a run together, so each could hold a part and wait"
            f" forever for the rest ({', '.join(parts)})"
        )


@dataclass(frozen=True, slots=True)
class Preempted:
    """A run that another run of its queue would preempt, because the queue cannot hold both."""

    run: str
    by: str
    resource: str
    wanted: Fraction
    most: Fraction


def find_deadlocks_between_runs(
    nodes: Sequence[NodeGroup], demands: Mapping[str, RunDemand]
) -> list[Deadlock]:
    """Return the smallest set of runs found for each pool that can block each other, as a real placement.

    Pairs are tried first, the largest runs before others, then all runs of the pool at once. Finding no set
    proves nothing.
    """
    by_pools: dict[tuple[str, ...], dict[str, RunDemand]] = {}
    for name, demand in demands.items():
        if not demand.is_gang and demand.count > 1 and demand.groups:
            by_pools.setdefault(demand.groups, {})[name] = demand
    found = []
    for pools, runs in sorted(by_pools.items()):
        groups = [group for group in nodes if group.name in pools]
        known: dict[tuple[int, frozenset[tuple[str, Fraction]]], bool] = {}
        alike = {name: (one.count, frozenset(one.each.items())) for name, one in runs.items()}
        for name, key in alike.items():
            if key not in known:
                known[key] = _fits_alone_on_empty_nodes(groups, runs[name])
        runs = {name: one for name, one in runs.items() if known[alike[name]]}
        names = sorted(runs, key=lambda name: (-runs[name].count, name))[:MOST_RUNS]
        sets = [*combinations(names, 2), *([tuple(names)] if len(names) > 2 else [])]
        for chosen in sets:
            placed = _find_deadlocking_pod_placement(groups, [runs[name] for name in chosen])
            if placed is not None:
                found.append(
                    _build_deadlock_finding(pools, groups, {name: runs[name] for name in chosen}, placed)
                )
                break
    return found


def _build_deadlock_finding(
    pools: tuple[str, ...], groups: Sequence[NodeGroup], runs: Mapping[str, RunDemand], placed: list[int]
) -> Deadlock:
    devices = [name for one in runs.values() for name in one.each if name not in ("cpu", "memory")]
    resource = devices[0] if devices else "cpu"
    wanted = sum((one.count * one.each.get(resource, Fraction(0)) for one in runs.values()), Fraction(0))
    there = sum((group.count * group.free.get(resource, Fraction(0)) for group in groups), Fraction(0))
    has = {name: (have, one.count) for (name, one), have in zip(runs.items(), placed, strict=True)}
    return Deadlock(pools, has, resource, wanted, there)


def _list_free_node_amounts(groups: Sequence[NodeGroup]) -> list[dict[str, Fraction]]:
    return [dict(group.free) for group in groups for _ in range(group.count)]


def _place_pod_on_node(nodes: list[dict[str, Fraction]], each: Mapping[str, Fraction], start: int = 0) -> int:
    """Put a pod on the first node that has room for it; return the node's number, or -1."""
    for number in range(start, len(nodes)):
        free = nodes[number]
        if all(free.get(name, Fraction(0)) >= amount for name, amount in each.items()):
            for name, amount in each.items():
                if amount:
                    free[name] -= amount
            return number
    return -1


def _fits_alone_on_empty_nodes(groups: Sequence[NodeGroup], one: RunDemand) -> bool:
    nodes, at = _list_free_node_amounts(groups), 0
    for _ in range(one.count):
        at = _place_pod_on_node(nodes, one.each, at)
        if at < 0:
            return False
    return True


def _find_deadlocking_pod_placement(
    groups: Sequence[NodeGroup], runs: Sequence[RunDemand]
) -> list[int] | None:
    """Place the pods of the runs in turns.

    Return how many pods of each run are placed if every run then lacks some and no further pod fits, else
    None.
    """
    nodes, placed, starts = _list_free_node_amounts(groups), [0] * len(runs), [0] * len(runs)
    has_moved = True
    while has_moved:
        has_moved = False
        for number, one in enumerate(runs):
            if placed[number] < one.count - 1 and starts[number] >= 0:
                starts[number] = _place_pod_on_node(nodes, one.each, starts[number])
                if starts[number] >= 0:
                    placed[number] += 1
                    has_moved = True
    if any(_place_pod_on_node(nodes, one.each) >= 0 for one in runs):
        return None
    return placed


def find_preempted_runs_without_checkpoints(demands: Mapping[str, RunDemand]) -> Iterator[Preempted]:
    """Yield runs without checkpoints that a committed run of higher priority preempts.

    Their queue cannot hold both. Of several such runs, the one with the highest priority is named, then the
    last by name.
    """
    queues: dict[str, dict[int, dict[str, RunDemand]]] = {}
    for name, one in demands.items():
        queues.setdefault(one.queue, {}).setdefault(one.priority, {})[name] = one
    rivals = {
        queue: [(priority, _Rivals(ranks[priority])) for priority in sorted(ranks, reverse=True)]
        for queue, ranks in queues.items()
        if len(ranks) > 1
    }
    for name, one in demands.items():
        if one.resumes or one.borrows or not one.gives_way:
            continue  # already reported as a borrower
        for priority, others in rivals.get(one.queue, ()):
            rival = others.in_the_way_of(one) if priority > one.priority else ""
            if rival:
                clash = _find_quota_clash(one, demands[rival])
                assert clash is not None
                yield Preempted(name, rival, *clash)
                break


class _Rivals:
    """Runs of one queue and priority, last names first, indexed by what they use.

    Most runs conflict with none of them. `most` maps a resource to running maxima: entry n is the largest
    usage among the first n + 1 runs.
    """

    def __init__(self, runs: Mapping[str, RunDemand]) -> None:
        self.names = sorted(runs, reverse=True)
        self.most: dict[FlavorResource, list[Fraction]] = {}
        for key in {key for one in runs.values() for key in one.usage or ()}:
            used = ((runs[name].usage or {}).get(key, Fraction(0)) for name in self.names)
            self.most[key] = list(accumulate(used, max))

    def in_the_way_of(self, one: RunDemand) -> str:
        """Return the first of these runs that does not fit next to `one` (as in `_find_quota_clash`).

        Returns "" if all do.
        """
        found = len(self.names)
        for key, amount in (one.usage or {}).items():
            if key in self.most:
                room = max((one.most or {})[key] - amount, Fraction(0))
                found = min(found, bisect_right(self.most[key], room))
        return self.names[found] if found < len(self.names) else ""


def _find_quota_clash(one: RunDemand, other: RunDemand) -> tuple[str, Fraction, Fraction] | None:
    for key, amount in (one.usage or {}).items():
        total = amount + (other.usage or {}).get(key, Fraction(0))
        most = (one.most or {})[key]
        if total > most and total > amount:
            return key[1], total, most
    return None
