"""Findings and waivers, before and after: which are new, which are gone, and how many stay.

A finding is the same if its rule, file, object and words are; its line may have moved, and the hashes of runs
differ from one run of a job to the next.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from gangplan.findings import Finding, reword_finding
from gangplan.records import dataclass
from gangplan.review.scope import ReviewPart
from gangplan.review.sides import Side

# What differs between states of a place or run, but not between findings.
_MOVING = re.compile(r":\d+(?::\d+)?\b|-[0-9a-f]{8}\b")

Id = tuple[str, str, str, str, str]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Novelty:
    """Findings that only today has, findings that only the base had, and today's version of those on both
    sides."""

    new: Sequence[Finding]
    gone: Sequence[Finding]
    same: Sequence[Finding]

    @property
    def policies(self) -> list[Finding]:
        """Policies that are newly violated."""
        return [one for one in self.new if one.rule.is_policy and one.counts]


@dataclass(frozen=True, slots=True)
class WaiverChange:
    """What happened to a waiver: added, removed, expired (its last day is over), or changed."""

    what: str
    name: str
    rule: str
    until: str
    approver: str
    reason: str


def compare_findings_of_both_sides(
    before: Sequence[Finding], after: Sequence[Finding], renamed: Mapping[str, str]
) -> Novelty:
    """Return what is new and what is gone. `renamed` are files with other names today, by their names
    before."""
    there = Counter(before)  # most are the same to the letter: those are dropped first
    moved = [one for one in after if not _take_finding_known_before_change(there, one)]
    gone = [one for one in reversed(before) if _take_finding_known_before_change(there, one)][::-1]
    known = Counter(_build_finding_identity_across_sides(one, renamed) for one in gone)
    new = [
        one
        for one in moved
        if not _take_finding_known_before_change(known, _build_finding_identity_across_sides(one, {}))
    ]
    gone = [
        one
        for one in reversed(gone)
        if _take_finding_known_before_change(known, _build_finding_identity_across_sides(one, renamed))
    ]
    found = {id(one) for one in new}
    return Novelty(new, gone[::-1], [one for one in after if id(one) not in found])


def _take_finding_known_before_change(counts: Counter[Key], key: Key) -> bool:
    """Return whether there is one left of a key, and take it."""
    if not counts[key]:
        return False
    counts[key] -= 1
    return True


def _build_finding_identity_across_sides(finding: Finding, renamed: Mapping[str, str]) -> Id:
    file, still = finding.where.file, reword_finding(finding, lambda text: _MOVING.sub("", text))
    if file.startswith("rendered/"):
        file = _MOVING.sub("", file)
    return (
        str(finding.rule),
        renamed.get(file, file),
        still.object_ref,
        still.message,
        "waived" if not finding.counts else finding.severity.word,
    )


def compare_waivers_of_both_sides(
    before: Side, after: Side, day: datetime.date, part: ReviewPart
) -> list[WaiverChange]:
    """Return the waivers of a part that are new, gone or changed, or have expired on a day, by name."""
    old = {one.name: one for one in before.workspace.waivers}
    new = {one.name: one for one in after.workspace.waivers}
    found = []
    for name in sorted({*old, *new}):
        one = new.get(name) or old[name]
        if not part.has_waiver(one.spec.scope):
            continue
        what = ""
        if name not in new:
            what = "removed"
        elif new[name].spec.expires < day.isoformat():
            what = "expired"
        elif name not in old:
            what = "added"
        elif old[name].spec != new[name].spec:
            what = "changed"
        if what:
            spec = one.spec
            found.append(WaiverChange(what, name, spec.rule, spec.expires, spec.approver, spec.reason))
    return found
