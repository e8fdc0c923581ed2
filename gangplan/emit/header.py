"""The first lines of every rendered file: whose it is, and which spec it comes from."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

# Files whose first line starts so are ours; no other file is ever changed or removed.
MARK = "# Rendered by gangplan from "
# How Git begins what it could not merge; a file with two new names has one sign more.
_CONFLICT = re.compile(rb"^<{7,} ", re.MULTILINE)
_ADVICE = "Change that file and run `gangplan render`; edits here are lost."


def header_lines(source: str) -> tuple[str, ...]:
    """The comment lines (without '# ') for a file rendered from `source`."""
    return (f"{MARK[2:]}{source}", _ADVICE)


def source_of(path: Path) -> str | None:
    """The file that a rendered file comes from, or None when it is not ours. We write no links.

    One whose first lines Git could not merge is still ours, from either file.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None  # a pipe would never end
        with path.open("rb") as file:
            first = file.readline(4096)
            if _CONFLICT.match(first):
                first = file.readline(4096)
    except OSError:
        return None
    text = first.decode("utf-8", "replace")
    return text[len(MARK) :].rstrip("\n") if text.startswith(MARK) else None


def conflict_line(data: bytes) -> int:
    """The line, from 1, where Git put two versions of a file into it; 0 where it did not."""
    found = _CONFLICT.search(data)
    return data.count(b"\n", 0, found.start()) + 1 if found else 0
