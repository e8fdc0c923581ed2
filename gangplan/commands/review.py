"""`gangplan plan --base REF` and `gangplan diff --base REF`: what a change does."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator

from gangplan.api.checks import day_of
from gangplan.commands.common import exit_code, print_findings
from gangplan.commands.reports import repository_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, in_order
from gangplan.pipeline.request import Request
from gangplan.records import dataclass
from gangplan.report.review_json import diff_document, review_document
from gangplan.report.review_markdown import GITHUB, review_markdown
from gangplan.report.review_sections import is_about_trees
from gangplan.report.review_text import review_text
from gangplan.review.review import Review, review_of
from gangplan.review.scope import Part, part_of
from gangplan.review.sides import Sides, both_sides
from gangplan.review.trees import differing
from gangplan.tools.revisions import revision_of
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


def plan_since(request: Request, flags: ReviewFlags) -> Exit:
    """Print what a change does, from a Git revision to the workspace as it is. Raises UserError."""
    flags.check()
    day, revision = day_of(flags.today), revision_of(request.root, flags.base)
    with both_sides(request, revision) as sides:
        review = review_of(request.root, sides, part_of(request, sides), day)
        _print(request, review, flags)
    return exit_code(review.all_findings)


def diff_since(request: Request, flags: ReviewFlags, is_raw: bool) -> Exit:
    """Print which objects differ, by meaning, or with `is_raw` the lines of rendered/. Raises UserError."""
    flags.check()
    if is_raw and flags.format != "text":
        raise UserError("--raw prints lines", "Leave --format out.")
    day, revision = day_of(flags.today), revision_of(request.root, flags.base)
    with both_sides(request, revision) as sides:
        part = part_of(request, sides)
        review = review_of(request.root, sides, part, day)
        if is_raw:
            print_findings(_of_trees(review))
            sys.stdout.writelines(_raw(sides, part))
        else:
            _print(request, review, flags, objects_alone=True)
    return exit_code(_of_trees(review))


def _print(request: Request, review: Review, flags: ReviewFlags, objects_alone: bool = False) -> None:
    """Print the review in its format. As text, findings go to standard error."""
    found = _of_trees(review) if objects_alone else in_order(review.findings.new)
    if flags.format == "json":
        folder = repository_folder(request.root)
        document = diff_document(review, found, folder) if objects_alone else review_document(review, folder)
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    elif flags.format == "markdown":
        sys.stdout.write(review_markdown(review, flags.limit or GITHUB, objects_alone))
    else:
        print_findings(found)
        sys.stdout.write(review_text(review, objects_alone))


def _of_trees(review: Review) -> list[Finding]:
    return [one for one in review.all_findings if is_about_trees(one)]


def _raw(sides: Sides, part: Part) -> Iterator[str]:
    """Yield unified diffs of the rendered files, from the earlier ones to those rendered now."""
    before, after = sides.before.tree, sides.after.tree
    for path in differing(before, after):
        old, new = before.text(path), after.text(path)
        if not part.covers(path, (new or old).partition("\n")[0].partition(" from ")[2]):
            continue
        name = f"{RENDERED}/{path}"
        was, is_now = old.splitlines(keepends=True), new.splitlines(keepends=True)
        for line in difflib.unified_diff(was, is_now, f"{name} ({sides.revision.commit[:12]})", name):
            yield line if line.endswith("\n") else f"{line}\n"
