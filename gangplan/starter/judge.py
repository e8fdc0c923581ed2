"""What gangplan says about a file as it would be, and which of that is new."""

from __future__ import annotations

from pathlib import Path

from gangplan.findings import Finding
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request, Result
from gangplan.rules.core import WORKSPACE_EMPTY
from gangplan.spec.root import SPECS
from gangplan.starter.draft import drafted


def judge(root: Path, file: str, text: str, is_spec: bool) -> tuple[Result, list[Finding]]:
    """The runs that come of a file and what is found, as if it were there. Of another file than a spec: what is
    found in it, and the errors that specs and other files would have by it."""
    result, found = _looked(root, file, text, is_spec)
    if is_spec:
        return result, found
    own = [one for one in found if one.where.file == file]
    others = [one for one in found if one.is_error and one.where.file != file]
    if others:
        known = {(one.rule, one.where.file, one.message) for one in _looked(root, file, None, False)[1]}
        others = [one for one in others if (one.rule, one.where.file, one.message) not in known]
    return result, own + others


def _looked(root: Path, file: str, text: str | None, is_spec: bool) -> tuple[Result, list[Finding]]:
    """What is found with a file as it would be; None as it is."""
    there = (root / file).read_text(encoding="utf-8") if text is None and (root / file).exists() else text
    with drafted(root, {} if there is None else {file: there}) as draft:
        result = preview(Request(draft, specs=(file,) if is_spec else (), engine="serial"))
    found = [one for one in result.findings if one.rule != WORKSPACE_EMPTY or one.where.file != SPECS]
    return result, found


def new_errors(root: Path, file: str, before: str, found: list[Finding], is_spec: bool) -> list[Finding]:
    """The errors that the file did not have before, whatever line they stand on now."""
    errors = [one for one in found if one.is_error]
    if not errors:
        return []
    known = {(one.rule, one.message) for one in judge(root, file, before, is_spec)[1]}
    return [one for one in errors if (one.rule, one.message) not in known]
