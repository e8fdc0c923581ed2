"""What errors hide of a change: runs, clusters and specs, which no total counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace

from gangplan.findings import Finding
from gangplan.pipeline.platform import find_clusters_closed_by_errors
from gangplan.records import dataclass
from gangplan.review.edits import EditKind, RunEdit
from gangplan.review.scope import ReviewPart
from gangplan.review.sides import RunKey, Side
from gangplan.workspace import CATALOG


@dataclass(frozen=True, slots=True)
class UnknownParts:
    """Runs, clusters and new specs of which errors hide what happens to them."""

    runs: Collection[RunKey] = field(default_factory=frozenset)
    clusters: Collection[str] = field(default_factory=frozenset)
    specs: Sequence[str] = ()
    files: Collection[str] = field(default_factory=frozenset)  # the specs of the runs

    def leave_out(self, side: Side) -> Side:
        """Return a side without the runs that are not known on the other one."""
        known = {
            key: one
            for key, one in side.runs.items()
            if key not in self.runs and one.cluster not in self.clusters
        }
        return replace(side, runs=known)

    def hides(self, finding: Finding) -> bool:
        """Return whether a finding may only be gone because it could not be looked for."""
        is_elsewhere = bool(finding.clusters) and set(finding.clusters) <= set(self.clusters)
        return is_elsewhere or finding.where.file in self.files


def find_unknown_review_parts(before: Side, after: Side, edits: Sequence[RunEdit]) -> UnknownParts:
    """Return what is not known today. Without a catalog, nothing is known of any cluster."""
    clusters = find_clusters_closed_by_errors(after.workspace, after.findings) | after.workspace.unread
    if after.workspace.catalog is None or _has_error_in(after, CATALOG):
        clusters |= {*before.workspace.clusters, *after.workspace.clusters}
    worked_on = {one.source for side in (before, after) for one in side.runs.values()}
    wrong = {one.where.file for one in after.findings if one.is_error}
    specs = [file for file in after.specs if file in wrong and file not in worked_on]
    broken = [one for one in edits if one.edit is EditKind.BROKEN]
    return UnknownParts(
        {one.facts.key for one in broken},
        clusters & {*before.workspace.clusters, *after.workspace.clusters},
        specs,
        {one.spec for one in broken},
    )


def _has_error_in(side: Side, file: str) -> bool:
    return any(one.is_error and one.where.file == file for one in side.findings)


def describe_unknown_review_parts(
    unknown: UnknownParts, part: ReviewPart, edits: Sequence[RunEdit]
) -> list[str]:
    """Return sentences about what a part of a review leaves out."""
    notes = []
    named = sorted(one for one in unknown.clusters if part.has_cluster(one))
    if named:
        notes.append(f"files of {', '.join(named)} have errors, so what changes there is not known")
    count = sum(one.edit is EditKind.BROKEN and one.facts.cluster not in named for one in edits)
    if count:
        runs = "1 run with errors is" if count == 1 else f"{count} runs with errors are"
        notes.append(f"{runs} left out of totals, quotas and objects, before and after")
    specs = [file for file in unknown.specs if part.reads(file)]
    if specs:
        names = ", ".join(specs[:3]) + (" and others" if len(specs) > 3 else "")
        notes.append(f"specs with errors, which would start runs: {names}")
    return notes
