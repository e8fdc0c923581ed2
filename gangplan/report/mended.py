"""What `--fix` changes, as a unified difference that `git apply` and `patch -p1` read."""

from __future__ import annotations

import difflib
import re

from gangplan.fixes import Mended
from gangplan.report.escape import log_line

# As Git: a carriage return belongs to its line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


def mended_text(mended: Mended) -> str:
    """The difference of one file; empty where nothing changes."""
    old, new = (_LINE.findall(data.decode("utf-8", "replace")) for data in (mended.before, mended.after))
    lines = difflib.unified_diff(old, new, f"a/{mended.file}", f"b/{mended.file}", n=1)
    return "".join(_shown(line) for line in lines)


def _shown(line: str) -> str:
    """A line of the difference: what a terminal would obey is made visible, the line's own end is kept."""
    body = line.removesuffix("\n")
    end = "\r" if body.endswith("\r") else ""
    text = log_line(body.removesuffix("\r")) + end + "\n"
    return text if line.endswith("\n") else f"{text}\\ No newline at end of file\n"
