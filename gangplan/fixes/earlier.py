"""Keep a replaced digest of the catalog in `earlier` of its image: runs may still use that build."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.findings import Fix
from gangplan.source import Document

# The most that the catalog takes (spec/catalog.py).
MOST = 64
_WHY = "runs that still have that build need it approved"
_ENTRY = re.compile(r"(\s*)-\s+[\"']?$")


def build_earlier_digest_fix(document: Document, text: str, name: str, digests: Sequence[str]) -> Fix | None:
    """Return the fix that adds digests to `earlier` of an image, newest first.

    Return None if there are none to add, or no room. `text` is the document's, without a byte order mark. A
    digest of zeros is not a build.
    """
    there = document.value["images"][name].get("earlier") or []
    wanted = [one for one in dict.fromkeys(digests) if one not in there and set(one[7:]) != {"0"}]
    if not wanted or len(there) + len(wanted) > MOST:
        return None
    lines = text.splitlines(keepends=True)
    ending = "\r\n" if lines[0].endswith("\r\n") else "\n"
    path = ("images", name)
    if there:
        where = document.where((*path, "earlier", 0))
        before = lines[where.line - 1][: where.column - 1]
        if entry := _ENTRY.fullmatch(before):
            added = "".join(f"{entry[1]}- {one}{ending}" for one in wanted)
            return Fix(document.file, where.line, 1, where.line, 1, added, _WHY)
        return document.fix((*path, "earlier", 0), ", ".join([*wanted, there[0]]), _WHY)
    if "earlier" in document.value["images"][name]:
        where = document.where((*path, "earlier"))
        end = lines[where.line - 1].find("[]", where.column - 1)
        found = (where.line, end + 1, where.line, end + 3)
        return Fix(document.file, *found, f"[{', '.join(wanted)}]", _WHY) if end >= 0 else None
    where = document.where((*path, "digest"), key=True)
    line = lines[where.line - 1]
    indent, key = line[: where.column - 1], f"earlier: [{', '.join(wanted)}]"
    if indent.strip():  # {repository: ..., digest: ...}
        return Fix(document.file, where.line, where.column, where.line, where.column, f"{key}, ", _WHY)
    if where.line == len(lines):
        return Fix(document.file, where.line, 1, where.line, 1, f"{indent}{key}{ending}", _WHY)
    return Fix(document.file, where.line + 1, 1, where.line + 1, 1, f"{indent}{key}{ending}", _WHY)
