"""docs/spec.md: in each format, the fields that everyone writes come before those that few need."""

from __future__ import annotations

import re

import pytest

from gangplan.reference.levels import LEVELS, OTHERS, group_by_level
from gangplan.reference.pages import render_pages
from gangplan.reference.schemas import build_format_schema


@pytest.mark.parametrize("kind", LEVELS)
def test_every_field_has_one_level(kind: str) -> None:
    fields = list(build_format_schema(kind)["properties"])
    named = [name for level in LEVELS[kind] for name in level.fields]
    assert sorted(named) == sorted(fields), "place new fields in gangplan/reference/levels.py"


def test_a_field_that_no_level_names_comes_last() -> None:
    *_, last = group_by_level("team", ["kind", "claims", "invented"])
    assert (last.title, last.fields) == (OTHERS, ("invented",))


def test_a_format_without_levels_has_one_table() -> None:
    assert group_by_level("waiver", ["kind", "rule"]) == []


def test_a_ten_line_spec_needs_only_the_first_table() -> None:
    first = LEVELS["spec"][0].fields
    assert {"image", "command", "workers", "gpus", "memory", "data"} <= {*first}
    assert len(first) <= 10


def test_links_inside_the_page_have_targets() -> None:
    page = render_pages()["spec.md"]
    headings = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([^)]+)\)", page))
    assert links
    assert links <= headings
