"""docs/spec.md: in each format, the fields that everyone writes come before those that few need."""

from __future__ import annotations

import re

import pytest

from gangplan.reference.levels import LEVELS, group_format_fields_by_level
from gangplan.reference.pages import render_docs_pages
from gangplan.reference.schemas import build_editor_schema_of_format


@pytest.mark.parametrize("kind", LEVELS)
def test_every_field_has_one_level(kind: str) -> None:
    fields = list(build_editor_schema_of_format(kind)["properties"])
    named = [name for level in LEVELS[kind] for name in level.fields]
    assert len(named) == len({*named})
    assert {*named} <= {*fields}, "gone from the format"
    shown = [name for level in group_format_fields_by_level(kind, fields) for name in level.fields]
    assert sorted(shown) == sorted(fields)


def test_a_field_that_no_level_names_follows_the_one_before_it() -> None:
    first, second, *_ = group_format_fields_by_level(
        "team", ["kind", "new", "claims", "newer", "newest", "connections"]
    )
    assert first.fields == ("kind", "new")
    assert second.fields == ("claims", "newer", "newest", "connections")


def test_a_new_first_field_has_the_last_level() -> None:
    *_, last = group_format_fields_by_level("team", ["new", "kind"])
    assert last.fields == ("new",)


def test_a_format_without_levels_has_one_table() -> None:
    assert group_format_fields_by_level("waiver", ["kind", "rule"]) == []


def test_a_ten_line_spec_needs_only_the_first_table() -> None:
    first = LEVELS["spec"][0].fields
    assert {"image", "command", "workers", "gpus", "memory", "data"} <= {*first}
    assert len(first) <= 10


def test_links_inside_the_page_have_targets() -> None:
    page = render_docs_pages()["spec.md"]
    headings = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([^)]+)\)", page))
    assert links
    assert links <= headings
