"""An attempt to admit a run, and the preemption candidates that it may take.

Ported from pkg/scheduler/preemption/{preemption.go,common} of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.kueue.model import NEVER
from gangplan.kueue.state import AdmittedWorkload, PendingWorkload, SchedulingState
from gangplan.records import dataclass


@dataclass(slots=True)
class Attempt:
    """A pending workload, its usage, and the flavors and resources for which it needs preemption."""

    state: SchedulingState
    asking: PendingWorkload
    usage: dict[int, int]
    needs: set[int]

    @property
    def queue(self) -> int:
        """The number of the run's queue."""
        return self.asking.queue

    def fits(self, borrowing: bool) -> bool:
        """Return whether it fits now, with or without borrowing (`workloadFits`)."""
        tree = self.state.tree
        if not borrowing and any(
            tree.nominal[self.queue][key] < tree.usage[self.queue][key] + amount
            for key, amount in self.usage.items()
        ):
            return False
        return tree.fits(self.queue, self.usage)

    def may_take(self, one: AdmittedWorkload, policy: str) -> bool:
        """Return whether a policy lets the run preempt another run, which uses quota that it needs.

        See `SatisfiesPreemptionPolicy` and `WorkloadUsesResources`.
        """
        if policy == NEVER or not any(key in self.needs for key in one.usage):
            return False
        mine, other = self.asking.run, one.run
        if policy == "Any" or mine.priority > other.priority:
            return True
        is_newer = mine.priority == other.priority and mine.arrival < other.arrival
        return policy == "LowerOrNewerEqualPriority" and is_newer

    def order(self, one: AdmittedWorkload) -> tuple[bool, int, float, int]:
        """Return the sort key: other queues, lower priority, latest admission (`CandidatesOrdering`)."""
        return (one.queue == self.queue, one.run.priority, -one.since, -one.number)


def fill_back_workloads(
    attempt: Attempt, chosen: list[AdmittedWorkload], borrowing: bool
) -> list[AdmittedWorkload]:
    """Drop targets that need not be preempted after all, latest first (`fillBackWorkloads`).

    The last one chosen always stays a target.
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


def restore_usage(attempt: Attempt, chosen: Iterable[AdmittedWorkload]) -> None:
    """Add the usage of the chosen runs again, as they still hold their quota (`restoreSnapshot`)."""
    for one in chosen:
        attempt.state.tree.add(one.queue, one.usage)
