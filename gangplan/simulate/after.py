"""Arrival times of runs that come after others, computed before a simulation begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def compute_simulated_arrival_offsets(
    after: Mapping[str, Sequence[str]], lasts: Mapping[str, float]
) -> dict[str, float]:
    """Return how much later each run arrives, in seconds: when all runs before it end, if none of them waits.

    `after` has the runs that each run comes after, `lasts` the duration of each run. Unknown runs take no
    time.
    """
    found: dict[str, float] = {}

    def offset(name: str) -> float:
        if name not in found:
            before = [one for one in after.get(name, ()) if one in lasts]
            found[name] = max((offset(one) + lasts[one] for one in before), default=0.0)
        return found[name]

    for name in after:
        offset(name)
    return found
