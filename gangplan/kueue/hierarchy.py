"""The path from a cohort to its root, and cycles in it: pkg/cache/hierarchy/cycle.go of Kueue.

The file is byte-identical in v0.15.2, v0.18.2 and v0.19.2.
"""

from __future__ import annotations

from collections.abc import Mapping


def find_cohort_ancestors(parents: Mapping[str, str], name: str) -> tuple[list[str], str]:
    """Return the cohorts from `name` up, and the one that closes a cycle, or "" if there is a root.

    See `HasCycle`.
    """
    way: dict[str, None] = {}
    while name and name not in way:
        way[name] = None
        name = parents.get(name, "")
    return list(way), name


def is_in_cohort_cycle(parents: Mapping[str, str], name: str) -> bool:
    """Return whether the path up from a cohort runs into a cycle (`HasCycle`): its queues are inactive."""
    return bool(find_cohort_ancestors(parents, name)[1])


def find_cohort_cycle(parents: Mapping[str, str], name: str) -> list[str]:
    """Return the cycle of cohorts from `name` back to itself; empty if it is in no cycle (`HasCycle`)."""
    way, closes = find_cohort_ancestors(parents, name)
    return [*way, name] if closes == name else []
