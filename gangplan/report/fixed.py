"""What `--fix` changes, as a unified difference that `git apply` and `patch -p1` read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator

from gangplan.fixes import FixedFile
from gangplan.report.escape import log_line, own_line

_MARK = "\ufeff"
# As Git: a carriage return belongs to its line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


def fixed_text(fixed: FixedFile) -> str:
    """The difference of one file; empty where nothing changes.

    What a terminal or a CI runner would obey, or nobody would see, is made visible: then it is no patch any more,
    and is not `patch_text`.
    """
    return "".join(_line(line, _shown) for line in _lines(fixed))


def patch_text(fixed: FixedFile) -> str:
    """The same as `git apply` reads it, whatever stands in the file."""
    return "".join(_line(line, str) for line in _lines(fixed))


def _lines(fixed: FixedFile) -> Iterator[str]:
    old, new = (_LINE.findall(data.decode("utf-8", "replace")) for data in (fixed.before, fixed.after))
    return difflib.unified_diff(old, new, f"a/{fixed.file}", f"b/{fixed.file}", n=1)


def _line(line: str, shown: Callable[[str], str]) -> str:
    """A line of the difference; the line's own end is kept."""
    body = line.removesuffix("\n")
    end = "\r" if body.endswith("\r") else ""
    text = shown(body.removesuffix("\r")) + end + "\n"
    return text if line.endswith("\n") else f"{text}\\ No newline at end of file\n"


def _shown(body: str) -> str:
    """Tabs, and the byte order mark of a file's first line, do no harm and are part of the patch."""
    sign, rest = body[:1], body[1:]
    mark = _MARK if rest.startswith(_MARK) else ""
    text = "\t".join(map(log_line, rest.removeprefix(mark).split("\t")))
    return sign + mark + (own_line(text) if sign == " " else text)
