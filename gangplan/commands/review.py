"""`gangplan plan --base REF` and `gangplan diff --base REF`: what a change does."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace

from gangplan.api.checks import resolve_day
from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.commands.reports import find_report_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, sort_findings
from gangplan.pipeline.request import Request
from gangplan.records import dataclass
from gangplan.report.review_json import build_diff_json, build_review_json
from gangplan.report.review_markdown import GITHUB_MAX_BYTES, format_review_as_markdown
from gangplan.report.review_sections import is_about_trees
from gangplan.report.review_text import render_review_text
from gangplan.review.retrained import add_changes_behind_retraining
from gangplan.review.review import Review, build_review
from gangplan.review.scope import ReviewPart, resolve_review_part
from gangplan.review.sides import Sides, open_review_sides
from gangplan.review.trees import compare_files_of_rendered_trees
from gangplan.tools.revisions import resolve_git_revision
from gangplan.workspace import RENDERED

FORMATS = ("text", "markdown", "json")
# The headline does not fit into fewer bytes.
LEAST = 1000


@dataclass(frozen=True, slots=True)
class ReviewFlags:
    """The flags of a review: the revision, the format and its limit in bytes, the day for waivers."""

    base: str
    format: str = "text"
    limit: int | None = None
    today: str | None = None

    def check(self) -> None:
        """Raise UserError for an unknown format, and for a limit that makes no sense."""
        if self.format not in FORMATS:
            raise UserError(f"there is no format '{self.format}'", f"Formats: {', '.join(FORMATS)}.")
        if self.limit is not None and (self.format != "markdown" or self.limit < LEAST):
            raise UserError("--limit is for Markdown", f"Use --format markdown --limit N, N from {LEAST}.")


def print_plan_since_base(request: Request, flags: ReviewFlags) -> Exit:
    """Print what a change does, from a Git revision to the workspace as it is. Raises UserError."""
    flags.check()
    day, revision = resolve_day(flags.today), resolve_git_revision(request.root, flags.base)
    with open_review_sides(request, revision) as sides:
        review = build_review(request.root, sides, resolve_review_part(request, sides), day)
        review = replace(review, edits=add_changes_behind_retraining(request, sides, review.edits))
        _print_formatted_review(request, review, flags)
    return choose_exit_code(review.all_findings)


def print_diff_since_base(request: Request, flags: ReviewFlags, is_raw: bool) -> Exit:
    """Print which objects differ, by meaning, or with `is_raw` the lines of rendered/. Raises UserError."""
    flags.check()
    if is_raw and flags.format != "text":
        raise UserError("--raw prints lines", "Leave --format out.")
    day, revision = resolve_day(flags.today), resolve_git_revision(request.root, flags.base)
    with open_review_sides(request, revision) as sides:
        part = resolve_review_part(request, sides)
        review = build_review(request.root, sides, part, day)
        if is_raw:
            print_findings_to_stderr(_select_tree_findings(review))
            sys.stdout.writelines(_render_unified_diffs_for_raw_flag(sides, part))
        else:
            _print_formatted_review(request, review, flags, objects_alone=True)
    return choose_exit_code(_select_tree_findings(review))


def _print_formatted_review(
    request: Request, review: Review, flags: ReviewFlags, objects_alone: bool = False
) -> None:
    """Print the review in its format. As text, findings go to standard error."""
    found = _select_tree_findings(review) if objects_alone else sort_findings(review.findings.new)
    if flags.format == "json":
        folder = find_report_folder(request.root)
        document = (
            build_diff_json(review, found, folder) if objects_alone else build_review_json(review, folder)
        )
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    elif flags.format == "markdown":
        sys.stdout.write(format_review_as_markdown(review, flags.limit or GITHUB_MAX_BYTES, objects_alone))
    else:
        print_findings_to_stderr(found)
        sys.stdout.write(render_review_text(review, objects_alone))


def _select_tree_findings(review: Review) -> list[Finding]:
    return [one for one in review.all_findings if is_about_trees(one)]


def _render_unified_diffs_for_raw_flag(sides: Sides, part: ReviewPart) -> Iterator[str]:
    """Yield unified diffs of the rendered files, from the earlier ones to those rendered now."""
    before, after = sides.before.tree, sides.after.tree
    for path in compare_files_of_rendered_trees(before, after):
        old, new = before.text(path), after.text(path)
        if not part.covers(path, (new or old).partition("\n")[0].partition(" from ")[2]):
            continue
        name = f"{RENDERED}/{path}"
        was, is_now = old.splitlines(keepends=True), new.splitlines(keepends=True)
        for line in difflib.unified_diff(was, is_now, f"{name} ({sides.revision.commit[:12]})", name):
            yield line if line.endswith("\n") else f"{line}\n"
