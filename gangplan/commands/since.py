"""`--base REVISION`: what a sync from a Git revision to today's tree would meet."""

from __future__ import annotations

from gangplan.emit import FileOutcome
from gangplan.errors import UserError
from gangplan.findings import in_order
from gangplan.pipeline.base import Tree, findings_since, tree_of
from gangplan.pipeline.request import Request, Result
from gangplan.provenance.lines import located
from gangplan.workspace import RENDERED


def check_base(request: Request, base: str | None) -> None:
    """Raise UserError where a comparison would not be whole: a spec left out is not a run removed."""
    if base is not None and not base.strip():
        help = "Name a branch, tag or commit, or leave --base out; in CI, check that its variable is set."
        raise UserError("--base names no revision", help)
    if base and (request.teams or request.specs):
        raise UserError("--base compares whole clusters", "Leave --team and the names of files out.")


def add_since(request: Request, result: Result, base: str, today: Tree) -> None:
    """Add the findings between a revision and a tree to those of a result."""
    workspace = result.workspace
    found = located(workspace, request, findings_since(workspace, base, today, request.clusters))
    result.findings = in_order([*result.findings, *found])


def checked_tree(request: Request, result: Result) -> Tree:
    """The tree as a render would leave it, after `render --check`: what stands there, and what would change."""
    tree = tree_of(request.root / RENDERED) | result.texts
    gone = {change.path for change in result.changes if change.outcome is FileOutcome.REMOVED}
    return {path: text for path, text in tree.items() if path not in gone}
