"""A run that looks for room, and what may be moved for it.

Written after pkg/scheduler/preemption/{preemption.go,common} of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.kueue.model import NEVER
from gangplan.kueue.state import Asking, Holding, State
from gangplan.records import dataclass


@dataclass(slots=True)
class Attempt:
    """A run that looks for room: what it would use, and where something must go."""

    state: State
    asking: Asking
    usage: dict[int, int]
    needs: set[int]

    @property
    def queue(self) -> int:
        """The queue of the run."""
        return self.asking.queue

    def fits(self, borrowing: bool) -> bool:
        """Whether it fits now, with or without borrowing (`workloadFits`)."""
        tree = self.state.tree
        if not borrowing and any(
            tree.nominal[self.queue][key] < tree.usage[self.queue][key] + amount
            for key, amount in self.usage.items()
        ):
            return False
        return tree.fits(self.queue, self.usage)

    def may_take(self, one: Holding, policy: str) -> bool:
        """Whether a policy lets the run take the place of another one that uses what is needed
        (`SatisfiesPreemptionPolicy`, `WorkloadUsesResources`).
        """
        if policy == NEVER or not any(key in self.needs for key in one.usage):
            return False
        mine, other = self.asking.run, one.run
        if policy == "Any" or mine.priority > other.priority:
            return True
        is_newer = mine.priority == other.priority and mine.arrival < other.arrival
        return policy == "LowerOrNewerEqualPriority" and is_newer

    def order(self, one: Holding) -> tuple[bool, int, float, int]:
        """Who goes first: other queues, lower priority, admitted last (`CandidatesOrdering`)."""
        return (one.queue == self.queue, one.run.priority, -one.since, -one.number)


def fill_back(attempt: Attempt, chosen: list[Holding], borrowing: bool) -> list[Holding]:
    """Put back, latest first, whoever need not go after all (`fillBackWorkloads`). The last one chosen always
    goes.
    """
    tree = attempt.state.tree
    for place in range(len(chosen) - 2, -1, -1):
        one = chosen[place]
        tree.add(one.queue, one.usage)
        if attempt.fits(borrowing):
            chosen[place] = chosen[-1]
            chosen.pop()
        else:
            tree.remove(one.queue, one.usage)
    return chosen


def restore(attempt: Attempt, chosen: Iterable[Holding]) -> None:
    """Count the chosen runs again, as they still hold their quota (`restoreSnapshot`)."""
    for one in chosen:
        attempt.state.tree.add(one.queue, one.usage)
