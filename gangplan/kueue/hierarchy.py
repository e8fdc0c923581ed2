"""The way up from a cohort, and whether it ends: pkg/cache/hierarchy/cycle.go of Kueue.

The file is the same to the byte in v0.15.2, v0.18.2 and v0.19.2.
"""

from __future__ import annotations

from collections.abc import Mapping


def way_up(parents: Mapping[str, str], name: str) -> tuple[list[str], str]:
    """The cohorts from `name` up, and the one of them that is above the last; "" where the way ends
    (`HasCycle`).
    """
    way: dict[str, None] = {}
    while name and name not in way:
        way[name] = None
        name = parents.get(name, "")
    return list(way), name


def in_cycle(parents: Mapping[str, str], name: str) -> bool:
    """Whether the way up from a cohort never ends (`HasCycle`): its queues are inactive."""
    return bool(way_up(parents, name)[1])


def cycle(parents: Mapping[str, str], name: str) -> list[str]:
    """The cohorts from `name` up and back to itself; nothing where it is in no cycle (`HasCycle`)."""
    way, closes = way_up(parents, name)
    return [*way, name] if closes == name else []
