"""The answer for a line of a file, for people: what is there, where it comes from, and what it became."""

from __future__ import annotations

import json
from collections.abc import Iterable

from gangplan.objects import ref_of
from gangplan.plan.names import HASH_PLACEHOLDER
from gangplan.provenance.lookup import LineAnswer, LineOrigin, LineOutcome
from gangplan.report.escape import escape_own_line
from gangplan.trace import Cause
from gangplan.validate.problems import format_path

# How many fields and causes are named; the rest is a number.
MOST, MOST_LETTERS = 12, 100


def render_line_answer_text(answer: LineAnswer) -> str:
    """Return the answer as lines."""
    fields = ", ".join(format_path(field) for field in answer.fields) if not answer.origins else ""
    lines = [f"{answer.file}:{answer.line}" + (f"  {fields}" if fields else "")]
    if answer.remark:
        lines.append(f"  {answer.remark}")
    for origin in answer.origins:
        lines += _format_line_origin(origin)
    direct = [one for one in answer.outcomes if one.is_direct]
    lines += _format_line_outcomes(direct)
    aside = [one for one in answer.outcomes if not one.is_direct]
    if aside:
        count = f"{len(aside)} more field{'' if len(aside) == 1 else 's'}"
        lines.append(f"  affects {count}, whose value does not show it:" if direct else f"  affects {count}:")
        lines += _format_line_outcomes(aside, MOST // 2 if direct else MOST * 2)
    return "".join(f"{escape_own_line(line)}\n" for line in lines)


def _format_line_origin(origin: LineOrigin) -> list[str]:
    subject = str(ref_of(origin.body)).replace(f"-{HASH_PLACEHOLDER}", "")
    lines = [f"  {subject}", f"  {format_path(origin.path)}{_format_origin_value(origin)}"]
    trace = origin.trace
    if isinstance(origin.value, dict | list) and origin.value:
        shown = [cause for cause in trace.causes if cause.is_written and cause.where]
        lines += (
            ["  holds fields that come from", *_format_cause_places(shown)]
            if shown
            else [f"    {trace.because}"]
        )
        return lines
    first, *rest = trace.causes
    lines.append(f"    {first.where}: {first.because}" if first.where else f"    {first.because}")
    shown = [cause for cause in rest if cause.is_written and cause.where]
    own = [cause for cause in rest if not cause.where]
    lines += [f"    {cause.because}" for cause in own]
    if shown:
        lines += ["  and looks at", *_format_cause_places(shown)]
    missing = [cause for cause in rest if not cause.is_written and cause.where]
    if missing:
        lines.append(f"  would change with {', '.join(_list_unwritten_fields(missing))}")
    return lines


def _list_unwritten_fields(causes: Iterable[Cause]) -> list[str]:
    """Return fields that are not written, with their files; a few of them."""
    names = list(
        dict.fromkeys(f"{format_path(cause.field)} in {cause.file}" for cause in causes if cause.field)
    )
    return [*names[:4], f"{len(names) - 4} more"] if len(names) > 5 else names


def _format_cause_places(causes: list[Cause]) -> list[str]:
    """Return the places of causes, a few of them."""
    more = [f"    and {len(causes) - MOST} more"] if len(causes) > MOST else []
    return [*(f"    {cause.where}: {cause.because}" for cause in causes[:MOST]), *more]


def _format_origin_value(origin: LineOrigin) -> str:
    value = origin.value
    if isinstance(value, dict | list) and value:
        return f": {len(value)} {'entr' + ('y' if len(value) == 1 else 'ies')}"
    if isinstance(value, str) and "\n" in value:
        return f": a text of {value.count(chr(10))} lines"
    text = json.dumps(value, ensure_ascii=False)
    text = text.replace(f"-{HASH_PLACEHOLDER}", "-<hash>")
    return f" = {text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + '...'}"


def _format_line_outcomes(outcomes: list[LineOutcome], most: int = MOST * 2) -> list[str]:
    """Return rendered fields, file by file."""
    lines, file = [], ""
    for one in outcomes[:most]:
        if one.file != file:
            file = one.file
            lines.append(f"  {file}")
        lines.append(
            f"    line {one.line}: {one.origin.body['kind']} {format_path(one.origin.path)}{_format_origin_value(one.origin)}"
        )
    if len(outcomes) > most:
        lines.append(f"    and {len(outcomes) - most} more")
    return lines
