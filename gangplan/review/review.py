"""A review as a whole: the effects of a change that a reviewer is shown, from both of its sides."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from gangplan.emit.header import find_line_source
from gangplan.findings import Finding, sort_findings
from gangplan.model.run_facts import RunFacts
from gangplan.records import dataclass
from gangplan.resolve.tenant_checks import check_expired_team_grants, check_unneeded_team_pod_security_levels
from gangplan.resolve.waiver_checks import judge_waivers
from gangplan.review.budgets import BudgetChange, compare_budgets_of_both_sides, rejudge_budgets_of_both_sides
from gangplan.review.edits import EditKind, RunEdit, list_run_edits_between_sides
from gangplan.review.merges import check_files_left_by_merge, find_renamed_specs
from gangplan.review.novel import (
    Novelty,
    WaiverChange,
    compare_findings_of_both_sides,
    compare_waivers_of_both_sides,
)
from gangplan.review.objects import ObjectChange, compare_objects_of_both_sides
from gangplan.review.reach import Reach, find_reaches_of_shared_files
from gangplan.review.scope import ReviewPart
from gangplan.review.sides import Side, Sides
from gangplan.review.totals import (
    Headroom,
    Total,
    TotalChange,
    compare_headroom_of_both_sides,
    compare_totals_of_both_sides,
    sum_active_runs_of_side,
)
from gangplan.review.unknown import describe_unknown_review_parts, find_unknown_review_parts
from gangplan.source import load_objects
from gangplan.source.manifests import ManifestError
from gangplan.tools.revisions import Revision
from gangplan.workspace import RENDERED


@dataclass(frozen=True, slots=True)
class Review:
    """The effects of a change, from a revision to the current workspace.

    `specs` are those that are new, changed and removed, `renamed` those that only have another name (before,
    after). `notes` are sentences about the comparison itself,
    `descriptions` those of these specs that have one, by file.
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
        return sort_findings([*self.findings.new, *self.findings.same])

    @property
    def is_empty(self) -> bool:
        """Whether nothing that is applied changes."""
        return not (self.edits or self.objects)


def build_review(root: Path, sides: Sides, part: ReviewPart, day: datetime.date) -> Review:
    """Return the review of a part. `day` decides which waivers and debug grants have expired, on both
    sides."""
    old, new = rejudge_budgets_of_both_sides(sides.before, sides.after)
    before = _judge_findings_of_side_on_day(replace(sides.before, findings=old), day)
    after = _judge_findings_of_side_on_day(replace(sides.after, findings=new), day)
    every = list_run_edits_between_sides(before, after)
    unknown = find_unknown_review_parts(before, after, every)
    edits = [one for one in every if _is_run_in_review_part(part, one)]
    broken = {one.facts.path for one in every if one.edit is EditKind.BROKEN}
    objects = [
        one
        for one in compare_objects_of_both_sides(sides, broken)
        if _is_object_in_review_part(part, one) and one.cluster not in unknown.clusters
    ]
    renamed = find_renamed_specs(before, after)
    stale = [
        one
        for one in sides.stale
        if not part.scopes or part.covers(one.path, _read_spec_of_file(root, sides, one.path))
    ]
    found = sort_findings([*after.findings, *check_files_left_by_merge(root, replace(sides, stale=stale))])
    news = compare_findings_of_both_sides(before.findings, found, renamed)
    news = replace(news, gone=[one for one in news.gone if not unknown.hides(one)])
    news = Novelty(*([one for one in of if part.is_about(one)] for of in (news.new, news.gone, news.same)))
    known = [unknown.leave_out(side) for side in (before, after)]
    runs = [
        [one for one in side.runs.values() if part.takes(one.cluster, one.team, one.source)] for side in known
    ]
    seen = [
        replace(side, runs={one.key: one for one in own})
        for side, own in zip((before, after), runs, strict=True)
    ]
    renamed = {old: new for old, new in renamed.items() if part.reads(old) or part.reads(new)}
    specs = _list_changed_specs_of_review_part(before, after, renamed, part)
    return Review(
        sides.revision,
        specs,
        tuple(sorted(renamed.items())),
        edits,
        compare_totals_of_both_sides(*seen),
        (sum_active_runs_of_side(runs[0]), sum_active_runs_of_side(runs[1])),
        [
            one
            for one in compare_headroom_of_both_sides(known[0], known[1])
            if part.has_team(one.cluster, one.team) and one.cluster not in unknown.clusters
        ],
        news,
        compare_waivers_of_both_sides(before, after, day, part),
        objects,
        [
            one
            for one in find_reaches_of_shared_files(sides, edits, objects, news.new)
            if one.has_effect or not part.scopes
        ],
        (*_collect_review_notes(sides), *describe_unknown_review_parts(unknown, part, edits)),
        [one for one in compare_budgets_of_both_sides(before, after) if part.has_team(one.cluster, one.team)],
        _read_spec_descriptions_of_side(after, (*specs[0], *specs[1], *renamed.values()))
        | _read_spec_descriptions_of_side(before, specs[2]),
    )


def _read_spec_of_file(root: Path, sides: Sides, path: str) -> str:
    """Return the file that a rendered one comes from, by its first line."""
    file = root / RENDERED / path
    text = file.read_text("utf-8", "replace") if file.is_file() else sides.after.tree.text(path)
    return find_line_source(text.partition("\n")[0]) or ""


def _read_spec_descriptions_of_side(side: Side, files: Sequence[str]) -> dict[str, str]:
    """Return the descriptions of these specs, by file; those that cannot be read have findings."""
    found = {}
    for file in files:
        with suppress(ManifestError, UnicodeDecodeError):
            for body in load_objects(side.specs[file].decode()):
                if isinstance(text := body.get("description"), str):
                    found[file] = " ".join(text.split())
    return found


def _judge_findings_of_side_on_day(side: Side, day: datetime.date) -> Side:
    """Return a side with the findings of a day."""
    if not side.is_there:
        return side
    is_whole = not any(one.is_error for one in side.findings)
    judged = judge_waivers(side.workspace, side.findings, day, is_whole)
    idle = check_unneeded_team_pod_security_levels(side.workspace, side.findings) if is_whole else ()
    return replace(
        side, findings=sort_findings([*judged, *check_expired_team_grants(side.workspace, day, ()), *idle])
    )


def _is_run_in_review_part(part: ReviewPart, edit: RunEdit) -> bool:
    facts = edit.facts
    return part.takes(facts.cluster, facts.team, facts.source)


def _is_object_in_review_part(part: ReviewPart, change: ObjectChange) -> bool:
    is_queue = change.kind == "ClusterQueue" and bool(change.team)
    return part.covers(change.file, change.source) or (
        is_queue and part.has_team(change.cluster, change.team)
    )


def _list_changed_specs_of_review_part(
    before: Side, after: Side, renamed: dict[str, str], part: ReviewPart
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the specs of a part that are new, changed and removed.

    A spec is in the part if one of its runs is; without runs, if its team or file was asked for.
    """
    runs: dict[str, list[RunFacts]] = {}
    for side in (before, after):
        for one in side.runs.values():
            runs.setdefault(one.source, []).append(one)

    def is_meant(path: str) -> bool:
        if not part.scopes or path not in runs:
            return part.reads(path)
        return any(part.takes(one.cluster, one.team, path) for one in runs[path])

    old, new = (
        {path: data for path, data in side.specs.items() if is_meant(path)} for side in (before, after)
    )
    return (
        tuple(sorted(path for path in new if path not in old and path not in renamed.values())),
        tuple(sorted(path for path in new if path in old and new[path] != old[path])),
        tuple(sorted(path for path in old if path not in new and path not in renamed)),
    )


def _collect_review_notes(sides: Sides) -> list[str]:
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
    return notes
