"""The first line of every rendered file: the mark of gangplan, and the spec that the file comes from."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

# gangplan wrote the files that begin with this; it never changes or removes any other file.
RENDERED_MARK = "# Rendered by gangplan from "
# How Git marks the start of a conflict; a file with two new names gets one more sign.
_CONFLICT = re.compile(rb"^<{7,} ", re.MULTILINE)
_ADVICE = ": change that file and run gangplan render, or edits are lost"


def build_header_lines(source: str) -> tuple[str, ...]:
    """Return the comment lines (without '# ') for a file rendered from `source`."""
    return (f"{RENDERED_MARK[2:]}{source}{_ADVICE}",)


def find_line_source(first: str) -> str | None:
    """Return the source that the first line of a rendered file names, or None for another file."""
    if not first.startswith(RENDERED_MARK):
        return None
    return first[len(RENDERED_MARK) :].rstrip("\n").removesuffix(_ADVICE)


def read_header_source(path: Path) -> str | None:
    """Return the source of a rendered file, or None if gangplan did not write it; gangplan writes no links.

    A file with a Git conflict in its first lines still counts as rendered, from either source.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None  # reading a pipe would never end
        with path.open("rb") as file:
            first = file.readline(4096)
            if _CONFLICT.match(first):
                first = file.readline(4096)
    except OSError:
        return None
    return find_line_source(first.decode("utf-8", "replace"))


def find_conflict_line(data: bytes) -> int:
    """Return the line, from 1, at which Git wrote a conflict into a file, or 0 if there is none."""
    found = _CONFLICT.search(data)
    return data.count(b"\n", 0, found.start()) + 1 if found else 0
