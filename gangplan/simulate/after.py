"""When runs arrive that come after others: a simulation is told so before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def offsets(after: Mapping[str, Sequence[str]], lasts: Mapping[str, float]) -> dict[str, float]:
    """How much later each run arrives, in seconds: once those before it are complete, had they never waited.

    `after` names the runs that each one comes after, `lasts` says how long runs take. Runs that are not there
    take no time.
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
