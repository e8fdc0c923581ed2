"""Flavor assignment: which flavors a run gets, and whether it fits now, after preemption, or never.

Ported from pkg/scheduler/flavorassigner/flavorassigner.go of Kueue v0.19.2, without topology.
"""

from __future__ import annotations

from dataclasses import field

from gangplan.kueue.flavors import (
    WORST_FIT,
    FlavorFit,
    FlavorMode,
    find_flavor_quota_mode,
    is_preferred_flavor,
    should_try_next_flavor,
)
from gangplan.kueue.model import Podset, ResourceGroup
from gangplan.kueue.preemption import find_preemption_targets
from gangplan.kueue.state import PendingWorkload, SchedulingState, TriedFlavors
from gangplan.kueue.units import KUEUE_PODS
from gangplan.records import dataclass


@dataclass(slots=True)
class Assignment:
    """The flavor assignment of a run. `needs` are the flavors and resources that require preemption."""

    usage: dict[int, int] = field(default_factory=dict)
    needs: set[int] = field(default_factory=set)
    borrowing: int = 0
    fits: bool = True
    is_possible: bool = True
    tried: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def has_pending_flavors(self) -> bool:
        """Whether the search stopped before the last flavor of some group (`PendingFlavors`)."""
        return any(index != -1 for row in self.tried for index in row)


@dataclass(slots=True)
class _Choice:
    """A flavor for the resources of one group; `parts` are (key, amount, mode, height of borrowing)."""

    flavor: str
    parts: list[tuple[int, int, FlavorMode, int]]
    tried: int = -1


def assign_flavors_to_podsets(state: SchedulingState, asking: PendingWorkload) -> Assignment:
    """Assign flavors to all pod sets in order, each after the usage of those before (`assignFlavors`)."""
    found, queue = Assignment(), state.queue(asking.queue)
    start = _find_flavor_search_start(state, asking)
    for place, podset in enumerate(asking.run.podsets):
        amounts = {name: amount for name, amount in podset.amounts.items() if amount}
        if any(KUEUE_PODS in group.resources for group in queue.groups):
            amounts[KUEUE_PODS] = podset.count
        choices, row = _choose_podset_flavors(
            state, asking, podset, amounts, found, start[place] if start and place < len(start) else None
        )
        for choice in choices or ():
            for key, amount, mode, height in choice.parts:
                found.usage[key] = found.usage.get(key, 0) + amount
                found.borrowing = max(found.borrowing, height)
                if mode is not FlavorMode.FIT:
                    found.fits = False
                    found.needs.add(key)
        found.tried.append(row)
        if choices is None:
            found.fits = found.is_possible = False
            break
    return found


def _find_flavor_search_start(state: SchedulingState, asking: PendingWorkload) -> TriedFlavors | None:
    """Return where an interrupted search continues, or None if quota has been released since."""
    if asking.tried is None:
        return None
    is_fresh = state.setup.kueue.keeps_progress and state.cycle - asking.tried_in <= 1
    if not is_fresh and state.generation[asking.queue] > asking.tried_at:
        asking.tried = None
    return asking.tried


def _choose_podset_flavors(
    state: SchedulingState,
    asking: PendingWorkload,
    podset: Podset,
    amounts: dict[str, int],
    so_far: Assignment,
    start: tuple[int, ...] | None,
) -> tuple[list[_Choice] | None, tuple[int, ...]]:
    """Choose a flavor for each group that the pod set needs; None if some group has no fitting flavor."""
    groups = state.queue(asking.queue).groups
    choices: list[_Choice] = []
    row = [-1] * len(groups)
    if any(all(name not in group.resources for group in groups) for name in amounts):
        return None, tuple(row)
    for place, group in enumerate(groups):
        wanted = {name: amounts[name] for name in group.resources if name in amounts}
        if not wanted:
            continue
        first = start[place] + 1 if start and place < len(start) else 0
        choice = _choose_flavor_for_resource_group(state, asking, podset, group, wanted, so_far, first)
        if choice is None:
            return None, tuple([-1] * len(groups))
        choices.append(choice)
        row[place] = choice.tried
    return choices, tuple(row)


def _choose_flavor_for_resource_group(
    state: SchedulingState,
    asking: PendingWorkload,
    podset: Podset,
    group: ResourceGroup,
    wanted: dict[str, int],
    so_far: Assignment,
    first: int,
) -> _Choice | None:
    """Return the first flavor that is good enough, else the best, else None."""
    rules = state.queue(asking.queue).fungibility
    best, best_suits, attempted = None, WORST_FIT, -1
    for place in range(first, len(group.flavors)):
        attempted = place
        flavor = group.flavors[place]
        if podset.flavors is not None and flavor not in podset.flavors:
            continue
        choice, suits = _compute_flavor_fit(state, asking, flavor, wanted, so_far)
        if not should_try_next_flavor(suits, rules):
            best, best_suits = choice, suits
            break
        if is_preferred_flavor(suits, best_suits, rules, state.setup.kueue):
            best, best_suits = choice, suits
    if best is None or best_suits[0] is FlavorMode.NO_FIT:
        return None
    best.tried = -1 if attempted == len(group.flavors) - 1 else attempted
    return best


def _compute_flavor_fit(
    state: SchedulingState,
    asking: PendingWorkload,
    flavor: str,
    wanted: dict[str, int],
    so_far: Assignment,
) -> tuple[_Choice, FlavorFit]:
    """Try one flavor for all resources of a group; its mode is that of its worst resource."""
    choice, worst = _Choice(flavor, []), (FlavorMode.FIT, 0.0)
    queue, is_fair = state.queue(asking.queue), state.setup.fair_sharing
    for resource, amount in wanted.items():
        key = state.tree.index[flavor, resource]
        mode, height = find_flavor_quota_mode(
            state.tree, queue, key, so_far.usage.get(key, 0) + amount, is_fair
        )
        if mode is FlavorMode.NO_CANDIDATES:
            mode, height = _compute_flavor_fit_after_preemption(
                state, asking, key, so_far.usage.get(key, 0) + amount
            )
        if is_preferred_flavor(worst, (mode, height), queue.fungibility, state.setup.kueue):
            worst = (mode, height)
        if worst[0] is FlavorMode.NO_FIT:
            break
        choice.parts.append((key, amount, mode, height))
    return choice, worst


def _compute_flavor_fit_after_preemption(
    state: SchedulingState, asking: PendingWorkload, key: int, amount: int
) -> tuple[FlavorMode, int]:
    """Return the mode and height of borrowing that preemption gives one flavor and resource alone."""
    tree, queue = state.tree, asking.queue
    found = find_preemption_targets(state, asking, {key: amount}, {key})
    if not found:
        return FlavorMode.NO_CANDIDATES, tree.reach(queue, key, amount)[0]
    for one in found:
        tree.remove(one.queue, one.usage)
    height = tree.reach(queue, key, amount)[0]
    for one in found:
        tree.add(one.queue, one.usage)
    is_own = any(one.queue == queue for one in found)
    return (FlavorMode.PREEMPT if is_own else FlavorMode.RECLAIM), height
