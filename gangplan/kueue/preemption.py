"""Preemption targets: the runs that would be preempted so that another one fits, by the cluster's rules.

Ported from `getTargets` in pkg/scheduler/preemption/preemption.go of Kueue v0.19.2.
"""

from __future__ import annotations

from gangplan.kueue.attempt import Attempt
from gangplan.kueue.classical import find_classical_preemption_targets
from gangplan.kueue.fair import find_fair_preemption_targets
from gangplan.kueue.state import AdmittedWorkload, PendingWorkload, SchedulingState


def find_preemption_targets(
    state: SchedulingState, asking: PendingWorkload, usage: dict[int, int], needs: set[int]
) -> list[AdmittedWorkload]:
    """Return the runs that would be preempted so that `usage` fits (`getTargets`); empty if nothing helps.

    `needs` are the flavors and resources that are short.
    """
    if not state.has_candidates(asking):
        return []
    attempt = Attempt(state, asking, usage, needs)
    return (
        find_fair_preemption_targets(attempt)
        if state.setup.fair_sharing
        else find_classical_preemption_targets(attempt)
    )
