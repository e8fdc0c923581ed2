"""`--base REVISION`: what a sync from a Git revision to the current tree would meet.

Modules that compare are imported only if there is something to compare.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gangplan.emit import FileOutcome
from gangplan.errors import UserError
from gangplan.findings import Finding, sort_findings
from gangplan.pipeline.request import Request, Result
from gangplan.rules.specs import RUN_RENAMED
from gangplan.workspace import RENDERED

if TYPE_CHECKING:
    from gangplan.pipeline.base import TextsByPath


def check_base_flag(request: Request, base: str | None) -> None:
    """Raise UserError if a comparison would be incomplete: a spec that is left out is not a removed run."""
    if base is not None and not base.strip():
        help = "Name a branch, tag or commit, or leave --base out; in CI, check that its variable is set."
        raise UserError("--base names no revision", help)
    if base and (request.teams or request.specs):
        raise UserError("--base compares whole clusters", "Leave --team and the names of files out.")


def add_findings_for_base_flag(request: Request, result: Result, base: str, today: TextsByPath) -> None:
    """Add the findings between a revision and a tree to those of a result.

    The revision is compared where HEAD branched off, so that what others merged since is not reported as
    undone. A run that trains again since then is reported once, although it also differs from rendered/.
    """
    from gangplan.delivery.applications import check_applications_since
    from gangplan.pipeline.base import check_changes_since
    from gangplan.provenance.lines import locate_findings_at_deciding_lines
    from gangplan.review.merged import check_change_merges_with_base
    from gangplan.review.retrained import explain_retrained_runs
    from gangplan.tools.revisions import resolve_git_revision

    workspace, revision = result.workspace, resolve_git_revision(request.root, base)
    problems = check_changes_since(workspace, revision, today, request.clusters)
    told = {one.path for _, place in problems if place for one in place.retrained}
    facts = {one.path: one for one in result.facts}
    problems = explain_retrained_runs(
        workspace, request, problems, revision, lambda path: today.get(path, ""), facts
    )
    found = locate_findings_at_deciding_lines(workspace, request, problems)
    again = {(facts[path].source, facts[path].cluster, facts[path].name) for path in told if path in facts}
    kept = [one for one in result.findings if not _is_renamed_run(one, again)]
    moved = check_applications_since(workspace, revision.commit, today)
    coming = check_change_merges_with_base(request, revision, today)
    result.findings = sort_findings([*kept, *found, *moved, *coming])


def _is_renamed_run(finding: Finding, again: Collection[tuple[str, str, str]]) -> bool:
    """Return whether a finding reports that one of some runs (spec, cluster, name) has another name in
    rendered/."""
    if finding.rule is not RUN_RENAMED or finding.clue.given is None:
        return False
    return (finding.where.file, *finding.clue.given) in again


def rendered_tree(folder: Path) -> TextsByPath:
    """Return the tree in a folder."""
    from gangplan.pipeline.base import read_rendered_texts

    return read_rendered_texts(folder)


def build_tree_from_output_folder(request: Request, result: Result, folder: Path) -> TextsByPath:
    """Return the tree as it was rendered to `folder`, which has what differs; the rest is in rendered/."""
    places = {True: request.root / RENDERED, False: folder}
    return {
        change.path: (places[change.outcome is FileOutcome.SAME] / change.path).read_text(
            encoding="utf-8", errors="replace"
        )
        for change in sorted(result.changes, key=lambda change: change.path)
    }


def build_tree_after_render_check(request: Request, result: Result) -> TextsByPath:
    """Return the tree as a render would leave it, after `render --check`: the existing files with the
    changes."""
    tree = {**rendered_tree(request.root / RENDERED), **result.texts}
    gone = {change.path for change in result.changes if change.outcome is FileOutcome.REMOVED}
    return {path: text for path, text in tree.items() if path not in gone}
