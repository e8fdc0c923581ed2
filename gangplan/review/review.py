"""A review as a whole: the effects of a change that a reviewer is shown, from both of its sides."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from gangplan.findings import Finding, in_order
from gangplan.records import dataclass
from gangplan.resolve.tenant_checks import expired_grants, unneeded
from gangplan.resolve.waiver_checks import judge_waivers
from gangplan.review.budgets import BudgetChange, budget_changes, rejudged
from gangplan.review.edits import Edit, RunEdit, edits_of
from gangplan.review.merges import merge_findings, renames
from gangplan.review.novel import Novelty, WaiverChange, novelty, waiver_changes
from gangplan.review.objects import ObjectChange, object_changes
from gangplan.review.reach import Reach, reaches
from gangplan.review.scope import Part
from gangplan.review.sides import Side, Sides
from gangplan.review.totals import Headroom, Total, TotalChange, headroom_of, total_of, totals_of
from gangplan.source import load_objects
from gangplan.source.manifests import ManifestError
from gangplan.tools.revisions import Revision


@dataclass(frozen=True, slots=True)
class Review:
    """The effects of a change, from a revision to the current workspace.

    `specs` are those that are new, changed and removed, `renamed` those that only have another name (before,
    after). `notes` are sentences about the comparison itself,
    `descriptions` those of new and changed specs that have one, by file.
    """

    revision: Revision
    specs: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    renamed: tuple[tuple[str, str], ...]
    edits: Sequence[RunEdit]
    totals: Sequence[TotalChange]
    sums: tuple[Total, Total]
    headroom: Sequence[Headroom]
    findings: Novelty
    waivers: Sequence[WaiverChange]
    objects: Sequence[ObjectChange]
    reaches: Sequence[Reach]
    notes: tuple[str, ...]
    budgets: Sequence[BudgetChange] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_findings(self) -> list[Finding]:
        """The findings of today, old and new."""
        return in_order([*self.findings.new, *self.findings.same])

    @property
    def is_empty(self) -> bool:
        """Whether nothing that is applied changes."""
        return not (self.edits or self.objects)


def review_of(root: Path, sides: Sides, part: Part, day: datetime.date) -> Review:
    """Return the review of a part. `day` decides which waivers and debug grants have expired, on both
    sides."""
    old, new = rejudged(sides.before, sides.after)
    before = _as_of(replace(sides.before, findings=old), day)
    after = _as_of(replace(sides.after, findings=new), day)
    every = edits_of(before, after)
    edits = [one for one in every if _takes(part, one)]
    unknown = {one.facts.path for one in every if one.edit is Edit.BROKEN}
    objects = [one for one in object_changes(sides, unknown) if part.covers(one.file, one.source)]
    renamed = renames(before, after)
    found = in_order([*after.findings, *merge_findings(root, sides)])
    news = novelty(before.findings, found, renamed)
    news = Novelty(*([one for one in of if part.is_about(one)] for of in (news.new, news.gone, news.same)))
    runs = [
        [one for one in side.runs.values() if part.takes(one.cluster, one.team, one.source)]
        for side in (before, after)
    ]
    seen = [
        replace(side, runs={one.key: one for one in own})
        for side, own in zip((before, after), runs, strict=True)
    ]
    specs = _specs(before, after, renamed)
    return Review(
        sides.revision,
        specs,
        tuple(sorted(renamed.items())),
        edits,
        totals_of(*seen),
        (total_of(runs[0]), total_of(runs[1])),
        [one for one in headroom_of(before, after) if part.has_team(one.cluster, one.team)],
        news,
        waiver_changes(before, after, day),
        objects,
        reaches(sides, edits, objects, news.new),
        _notes(sides, len(unknown)),
        [one for one in budget_changes(before, after) if part.has_team(one.cluster, one.team)],
        _descriptions(after, (*specs[0], *specs[1])),
    )


def _descriptions(side: Side, files: Sequence[str]) -> dict[str, str]:
    """Return the descriptions of these specs, by file; those that cannot be read have findings."""
    found = {}
    for file in files:
        with suppress(ManifestError, UnicodeDecodeError):
            for body in load_objects(side.specs[file].decode()):
                if isinstance(text := body.get("description"), str):
                    found[file] = " ".join(text.split())
    return found


def _as_of(side: Side, day: datetime.date) -> Side:
    """Return a side with the findings of a day."""
    if not side.is_there:
        return side
    is_whole = not any(one.is_error for one in side.findings)
    judged = judge_waivers(side.workspace, side.findings, day, is_whole)
    idle = unneeded(side.workspace, side.findings) if is_whole else ()
    return replace(side, findings=in_order([*judged, *expired_grants(side.workspace, day, ()), *idle]))


def _takes(part: Part, edit: RunEdit) -> bool:
    facts = edit.facts
    return part.takes(facts.cluster, facts.team, facts.source)


def _specs(
    before: Side, after: Side, renamed: dict[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    old, new = before.specs, after.specs
    return (
        tuple(sorted(path for path in new if path not in old and path not in renamed.values())),
        tuple(sorted(path for path in new if path in old and new[path] != old[path])),
        tuple(sorted(path for path in old if path not in new and path not in renamed)),
    )


def _notes(sides: Sides, unknown: int) -> tuple[str, ...]:
    notes = []
    revision = sides.revision
    if revision.is_merge_base:
        notes.append(
            f"{revision.asked} has moved on since; to compare with itself: --base {revision.asked}.."
        )
    if not sides.before.is_there:
        notes.append("the revision has no workspace here, so everything is new")
    if sides.unread:
        names = ", ".join(sides.unread[:3]) + (" and others" if len(sides.unread) > 3 else "")
        notes.append(f"links and submodules of the revision are not compared: {names}")
    if any(one.is_error for one in sides.before.findings):
        notes.append("the revision has errors, so some of its runs are not known")
    if unknown:
        notes.append(
            f"{unknown} run{'' if unknown == 1 else 's'} with errors are left out of totals and objects"
        )
    return tuple(notes)
