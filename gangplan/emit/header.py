"""The first lines of every rendered file: whose it is, and which spec it comes from."""

from __future__ import annotations

import os
import stat
from pathlib import Path

# Files whose first line starts so are ours; no other file is ever changed or removed.
MARK = "# Rendered by gangplan from "
_ADVICE = "Change that file and run `gangplan render`; edits here are lost."


def header_lines(source: str) -> tuple[str, ...]:
    """The comment lines (without '# ') for a file rendered from `source`."""
    return (f"{MARK[2:]}{source}", _ADVICE)


def source_of(path: Path) -> str | None:
    """The file that a rendered file comes from, or None when it is not ours. We write no links."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None  # a pipe would never end
        with path.open("rb") as file:
            first = file.readline(4096).decode("utf-8", "replace")
    except OSError:
        return None
    return first[len(MARK) :].rstrip("\n") if first.startswith(MARK) else None
