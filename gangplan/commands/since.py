"""`--base REVISION`: what a sync from a Git revision to the current tree would meet.

Modules that compare are imported only if there is something to compare.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gangplan.emit import FileOutcome
from gangplan.errors import UserError
from gangplan.findings import sort_findings
from gangplan.pipeline.request import Request, Result
from gangplan.workspace import RENDERED

if TYPE_CHECKING:
    from gangplan.pipeline.base import TextsByPath


def check_base(request: Request, base: str | None) -> None:
    """Raise UserError if a comparison would be incomplete: a spec that is left out is not a removed run."""
    if base is not None and not base.strip():
        help = "Name a branch, tag or commit, or leave --base out; in CI, check that its variable is set."
        raise UserError("--base names no revision", help)
    if base and (request.teams or request.specs):
        raise UserError("--base compares whole clusters", "Leave --team and the names of files out.")


def add_since_findings(request: Request, result: Result, base: str, today: TextsByPath) -> None:
    """Add the findings between a revision and a tree to those of a result."""
    from gangplan.pipeline.base import check_changes_since
    from gangplan.provenance.lines import locate_findings
    from gangplan.review.fields import add_changed_fields

    workspace = result.workspace
    found = locate_findings(workspace, request, check_changes_since(workspace, base, today, request.clusters))
    found = add_changed_fields(workspace, base, found)
    result.findings = sort_findings([*result.findings, *found])


def rendered_tree(folder: Path) -> TextsByPath:
    """Return the tree in a folder."""
    from gangplan.pipeline.base import read_rendered_texts

    return read_rendered_texts(folder)


def build_tree_from_folder(request: Request, result: Result, folder: Path) -> TextsByPath:
    """Return the tree as it was rendered to `folder`, which has what differs; the rest is in rendered/."""
    places = {True: request.root / RENDERED, False: folder}
    return {
        change.path: (places[change.outcome is FileOutcome.SAME] / change.path).read_text(
            encoding="utf-8", errors="replace"
        )
        for change in sorted(result.changes, key=lambda change: change.path)
    }


def build_checked_tree(request: Request, result: Result) -> TextsByPath:
    """Return the tree as a render would leave it, after `render --check`: the existing files with the
    changes."""
    tree = {**rendered_tree(request.root / RENDERED), **result.texts}
    gone = {change.path for change in result.changes if change.outcome is FileOutcome.REMOVED}
    return {path: text for path, text in tree.items() if path not in gone}
