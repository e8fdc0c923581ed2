"""Text for a terminal, filled to a width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH = 100


def filled(text: str, first: str = "", rest: str = "") -> str:
    """A paragraph; `first` and `rest` begin its first and its other lines."""
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def listed(what: str, names: Iterable[str]) -> str:
    """`fields: a, b, c`, further lines below the first name."""
    return textwrap.fill(
        ", ".join(names),
        WIDTH,
        initial_indent=f"{what}: ",
        subsequent_indent=" " * (len(what) + 2),
        break_on_hyphens=False,
    )
