"""Apply fixes to the text of a file. Everything else stays the same, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gangplan.errors import InternalError
from gangplan.findings import Fix

# YAML's line breaks, limited to those that a file that loads can contain (source.document forbids the
# others).
_BREAK = re.compile(r"\r\n|\n|\r")


def apply_fixes(text: str, fixes: Iterable[Fix]) -> str:
    """Return the text with every fix applied; equal fixes count as one.

    Raises InternalError when two fixes overlap, or one names a place that the text does not have.
    """
    starts = _find_line_starts(text)
    spans = sorted({(_locate_text_replaced_by_fix(text, starts, fix), fix.replacement) for fix in fixes})
    out, end = [], 0
    for (first, last), replacement in spans:
        if first < end:
            raise InternalError("two fixes change the same text")
        out += [text[end:first], replacement]
        end = last
    return "".join([*out, text[end:]])


def split_overlapping_fixes(text: str, fixes: Sequence[Fix]) -> tuple[list[Fix], list[Fix]]:
    """Split fixes into those that touch no other, in order, and those that overlap.

    Overlapping fixes are ambiguous, so none of them is applied.
    """
    starts = _find_line_starts(text)
    once = {(_locate_text_replaced_by_fix(text, starts, fix), fix.replacement): fix for fix in fixes}
    spans = sorted(once)
    clash: set[int] = set()
    reach, widest = -1, -1  # the furthest end so far, and the span that it belongs to
    for index, ((first, last), _) in enumerate(spans):
        if first < reach:
            clash |= {index, widest}
        if last > reach:
            reach, widest = last, index
    kept = [once[span] for index, span in enumerate(spans) if index not in clash]
    return kept, [once[span] for index, span in enumerate(spans) if index in clash]


def _find_line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _BREAK.finditer(text))]


def _locate_text_replaced_by_fix(text: str, starts: list[int], fix: Fix) -> tuple[int, int]:
    """Return where the text that a fix replaces begins and ends."""
    if not (1 <= fix.line <= fix.end_line <= len(starts)):
        raise InternalError(f"{fix.file} has no line {fix.end_line}")
    first = starts[fix.line - 1] + fix.column - 1
    last = starts[fix.end_line - 1] + fix.end_column - 1
    if not 0 <= first <= last <= len(text):
        raise InternalError(f"{fix.file}:{fix.line}:{fix.column} is not a stretch of text")
    return first, last
