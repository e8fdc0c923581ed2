"""Source lines for the text report on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.rules.security import SECRET_LITERAL
from gangplan.source import MAX_DOCUMENT_BYTES


def build_excerpt_reader(root: Path, findings: Iterable[Finding]) -> Callable[[Location], str | None]:
    """Return a function from a location to its line. Nothing is shown of a file that contains a secret."""
    secret = {finding.where.file for finding in findings if finding.rule == SECRET_LITERAL}

    @cache
    def lines(file: str) -> list[str]:
        path = root / file
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_DOCUMENT_BYTES:
                return []
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return []
        return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def line(where: Location) -> str | None:
        if where.file in secret or where.line < 1:
            return None
        found = lines(where.file)
        return found[where.line - 1] if where.line <= len(found) else None

    return line
