"""The cohort tree as the rendered objects say it, and the most that a queue can ever get.

Written from Kueue's source and apart from what the generator computes, so that one checks the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gangplan.model.quantity import parse

Body = dict[str, Any]
Key = tuple[str, str]  # flavor, resource


@dataclass(frozen=True, slots=True)
class Member:
    """A ClusterQueue or Cohort: who is above it, and its amounts by flavor and resource."""

    kind: str
    name: str
    parent: str
    nominal: Mapping[Key, Fraction]
    borrowing: Mapping[Key, Fraction]
    lending: Mapping[Key, Fraction]


def members(bodies: Sequence[Body]) -> list[Member]:
    """Every queue and cohort among objects that fit their schemas."""
    return [_member(body) for body in bodies if body["kind"] in ("ClusterQueue", "Cohort")]


def _member(body: Body) -> Member:
    spec = body.get("spec") or {}
    amounts: dict[str, dict[Key, Fraction]] = {"nominalQuota": {}, "borrowingLimit": {}, "lendingLimit": {}}
    for group in spec.get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for item in flavor["resources"]:
                for field, found in amounts.items():
                    if item.get(field) is not None:
                        found[flavor["name"], item["name"]] = amount(item[field])
    parent = spec.get("cohortName" if body["kind"] == "ClusterQueue" else "parentName") or ""
    return Member(body["kind"], body["metadata"]["name"], parent, *amounts.values())


def amount(written: Any) -> Fraction:
    """A quantity as an exact number."""
    return Fraction(parse(str(written)).nano, 10**9)


def circle(found: Sequence[Member], name: str) -> list[str]:
    """The cohorts from `name` back to itself, or nothing."""
    parents = {one.name: one.parent for one in found if one.kind == "Cohort"}
    way = [name]
    while (above := parents.get(way[-1], "")) and above not in way:
        way.append(above)
    return [*way, name] if parents.get(way[-1]) == name else []


def root_of(found: Sequence[Member], queue: str) -> str:
    """The cohort at the top of a queue's tree; `/` and the queue's name where it is in none."""
    parents = {one.name: one.parent for one in found if one.kind == "Cohort"}
    name = next(one.parent for one in found if one.kind == "ClusterQueue" and one.name == queue)
    seen = set()
    while name and parents.get(name) and name not in seen:
        seen.add(name)
        name = parents[name]
    return name or f"/{queue}"


class Capacity:
    """`potentialAvailable` of Kueue for one flavor and resource (resource_node.go, v0.19.2).

    A cohort that is only named exists all the same: it has nothing and passes on everything.
    """

    def __init__(self, found: Sequence[Member], key: Key) -> None:
        """Read the amounts of one flavor and resource. There must be no circle."""
        self._key = key
        self._of = {(one.kind, one.name): one for one in found}
        self._below: dict[str, list[Member]] = {}
        for one in found:
            self._below.setdefault(one.parent, []).append(one)
        self._subtrees: dict[tuple[str, str], Fraction] = {}

    def most(self, queue: str) -> Fraction:
        """The most that a queue can ever hold."""
        return self._potential(self._of["ClusterQueue", queue])

    def _potential(self, one: Member) -> Fraction:
        subtree = self._subtree(one)
        if not one.parent:
            return subtree
        above = self._of.get(("Cohort", one.parent))
        given = self._potential(above) if above else self._sum_below(one.parent)
        most = self._local(one) + given
        limit = one.borrowing.get(self._key)
        return most if limit is None else min(most, subtree + limit)

    def _subtree(self, one: Member) -> Fraction:
        place = (one.kind, one.name)
        if place not in self._subtrees:
            own = one.nominal.get(self._key, Fraction(0))
            self._subtrees[place] = own + (self._sum_below(one.name) if one.kind == "Cohort" else 0)
        return self._subtrees[place]

    def _sum_below(self, cohort: str) -> Fraction:
        below = self._below.get(cohort, ())
        return sum((self._subtree(one) - self._local(one) for one in below), Fraction(0))

    def _local(self, one: Member) -> Fraction:
        limit = one.lending.get(self._key)
        return Fraction(0) if limit is None else max(Fraction(0), self._subtree(one) - limit)
