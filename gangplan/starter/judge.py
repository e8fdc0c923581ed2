"""What gangplan would report about a changed file, and which of that is new."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from gangplan.findings import Finding, reword_finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.records import dataclass
from gangplan.rules.core import WORKSPACE_EMPTY
from gangplan.spec.root import SPECS
from gangplan.starter.draft import create_draft_copy_of_workspace


@dataclass(frozen=True, slots=True)
class FileJudgement:
    """The runs that a file leads to, the findings, and the errors that are new."""

    result: Result
    found: list[Finding]
    errors: list[Finding]


def judge_changed_file(
    root: Path, file: str, before: str | None, after: str, is_spec: bool, users: Collection[str] = ()
) -> FileJudgement:
    """Check a workspace as if the file had the text `after`.

    For a file that is not a spec: what is found in it, and the errors that it would cause in the specs
    `users` and other files. `before` is None for a new file.
    """
    result, found = _preview_changed_file(root, file, after, is_spec, users)
    own = [one for one in found if is_spec or one.where.file == file]
    others = [one for one in found if one.is_error and one not in own]
    errors = [one for one in own if one.is_error]
    if not (others or (errors and before is not None)):
        return FileJudgement(result, own, errors)
    known = _preview_changed_file(root, file, before, is_spec, users)[1]
    old = {(one.rule, one.message) for one in known if is_spec or one.where.file == file}
    # Amounts in an error of another file may change with this one: it is the same error.
    theirs = {_mask_finding_amounts(one) for one in known}
    others = [one for one in others if _mask_finding_amounts(one) not in theirs]
    errors = [one for one in errors if before is None or (one.rule, one.message) not in old]
    return FileJudgement(result, own + others, errors + others)


def _preview_changed_file(
    root: Path, file: str, text: str | None, is_spec: bool, users: Collection[str]
) -> tuple[Result, list[Finding]]:
    """Return the result and findings with a file as it would be, or without it if `text` is None."""
    with create_draft_copy_of_workspace(root, {} if text is None else {file: text}, users) as draft:
        result = preview_render(Request(draft, specs=(file,) if is_spec else (), engine="serial"))
    found = [one for one in result.findings if one.rule != WORKSPACE_EMPTY or one.where.file != SPECS]
    return result, found


def _mask_finding_amounts(one: Finding) -> tuple[object, str, str]:
    return one.rule, one.where.file, reword_finding(one, lambda text: re.sub(r"\d+", "0", text)).message
