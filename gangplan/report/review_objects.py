"""The objects that a change affects, as rows: by meaning, with the same change of many objects once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from gangplan.report.section import ARROW, Row, Section, counted, some
from gangplan.review.grouped import kinds_of, rows_of
from gangplan.review.review import Review

# How many characters of a field's value are shown; --format json has all of it.
_LONGEST = 60
# Characters before the first difference of two long values.
_CONTEXT = 24


def objects_section(review: Review) -> Section:
    """Return what was added, removed and changed."""
    rows: list[Row] = [
        (row.what, row.kind, "", counted(len(row.objects), "object"), _where(row.teams, row.clusters))
        for row in kinds_of(review.objects)
    ]
    for one in rows_of(review.objects):
        values = f" {ARROW} ".join(_values(one.before, one.after))
        what = counted(one.runs, "run") if one.runs else counted(len(one.objects), "object")
        rows.append(
            (one.meaning, f"{some(one.kinds)} {one.field}", values, what, _where(one.teams, one.clusters))
        )
    return Section("Objects", ("meaning", "field", "change", "in", "of"), rows, "change")


def _where(teams: Sequence[str], clusters: Sequence[str]) -> str:
    return f"{some(teams)} on {some(clusters)}" if teams else some(clusters)


def _values(old: str, new: str) -> tuple[str, str]:
    """Return both values, short: if they are long, the part before the first difference is left out."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    lead = len(list(same))
    cut = lead - _CONTEXT if max(len(old), len(new)) > _LONGEST and lead > _CONTEXT else 0
    return _value(old, cut), _value(new, cut)


def _value(text: str, cut: int) -> str:
    if not text:
        return "(none)"
    lines = text.count("\\n")
    if lines > 1:
        return f"({lines} lines)"
    text = f"...{text[cut:]}" if cut else text
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
