"""Wrap text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH = 100


def wrap_paragraph(text: str, first: str = "", rest: str = "") -> str:
    """Wrap a paragraph; `first` and `rest` are the indents of its first and its other lines."""
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_name_list(what: str, names: Iterable[str]) -> str:
    """Return `fields: a, b, c`, with further lines indented below the first name."""
    return textwrap.fill(
        ", ".join(names),
        WIDTH,
        initial_indent=f"{what}: ",
        subsequent_indent=" " * (len(what) + 2),
        break_on_hyphens=False,
    )
