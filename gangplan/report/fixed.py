"""The changes of `--fix` as a unified difference that `git apply` and `patch -p1` read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator

from gangplan.fixes import FixedFile
from gangplan.report.escape import escape_log_line, escape_own_line

_MARK = "\ufeff"
# As in Git, a carriage return belongs to its line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


def render_fix_diff(fixed: FixedFile) -> str:
    """Return the difference of one file; empty if nothing changes.

    What a terminal or a CI runner would obey, or what cannot be seen, is made visible: the text is then no
    longer a patch, and differs from `render_fix_patch`.
    """
    return "".join(_format_diff_line(line, _escape_diff_line) for line in _list_fix_diff_lines(fixed))


def render_fix_patch(fixed: FixedFile) -> str:
    """Return the difference as `git apply` reads it, for any contents."""
    return "".join(_format_diff_line(line, str) for line in _list_fix_diff_lines(fixed))


def _list_fix_diff_lines(fixed: FixedFile) -> Iterator[str]:
    old, new = (_LINE.findall(data.decode("utf-8", "replace")) for data in (fixed.before, fixed.after))
    return difflib.unified_diff(old, new, f"a/{fixed.file}", f"b/{fixed.file}", n=1)


def _format_diff_line(line: str, shown: Callable[[str], str]) -> str:
    """Return a line of the difference; the line's own end is kept."""
    body = line.removesuffix("\n")
    end = "\r" if body.endswith("\r") else ""
    text = shown(body.removesuffix("\r")) + end + "\n"
    return text if line.endswith("\n") else f"{text}\\ No newline at end of file\n"


def _escape_diff_line(body: str) -> str:
    """Make a line safe, except tabs and the byte order mark of a first line: they are harmless parts of
    the patch."""
    sign, rest = body[:1], body[1:]
    mark = _MARK if rest.startswith(_MARK) else ""
    text = "\t".join(map(escape_log_line, rest.removeprefix(mark).split("\t")))
    return sign + mark + (escape_own_line(text) if sign == " " else text)
