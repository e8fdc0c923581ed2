"""The objects that a change affects, as rows: by meaning, with the same change of many objects once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from gangplan.report.section import ARROW, Section, SectionRow, format_count, shorten_name_list
from gangplan.review.grouped import group_object_changes_by_kind, group_object_changes_by_meaning
from gangplan.review.review import Review

# How many characters of a field's value are shown; --format json has all of it.
_LONGEST = 60
# Characters before the first difference of two long values.
_CONTEXT = 24


def format_object_changes_section(review: Review, is_detail: bool = True) -> Section:
    """Return what was added, removed and changed."""
    rows: list[SectionRow] = [
        (
            row.what,
            row.kind,
            "",
            format_count(len(row.objects), "object"),
            _format_teams_and_clusters(row.teams, row.clusters),
        )
        for row in group_object_changes_by_kind(review.objects)
    ]
    for one in group_object_changes_by_meaning(review.objects):
        values = f" {ARROW} ".join(_shorten_changed_values(one.before, one.after))
        what = format_count(one.runs, "run") if one.runs else format_count(len(one.objects), "object")
        rows.append(
            (
                one.meaning,
                f"{shorten_name_list(one.kinds)} {one.field}",
                values,
                what,
                _format_teams_and_clusters(one.teams, one.clusters),
            )
        )
    return Section("Objects", ("meaning", "field", "change", "in", "of"), rows, "change", is_detail=is_detail)


def _format_teams_and_clusters(teams: Sequence[str], clusters: Sequence[str]) -> str:
    return (
        f"{shorten_name_list(teams)} on {shorten_name_list(clusters)}"
        if teams
        else shorten_name_list(clusters)
    )


def _shorten_changed_values(old: str, new: str) -> tuple[str, str]:
    """Return both values, short: if they are long, the part before the first difference is left out."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    lead = len(list(same))
    cut = lead - _CONTEXT if max(len(old), len(new)) > _LONGEST and lead > _CONTEXT else 0
    return _shorten_field_value(old, cut), _shorten_field_value(new, cut)


def _shorten_field_value(text: str, cut: int) -> str:
    if not text:
        return "(none)"
    lines = text.count("\\n")
    if lines > 1:
        return f"({lines} lines)"
    text = f"...{text[cut:]}" if cut else text
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
