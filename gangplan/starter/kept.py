"""Files that existed before a new workspace, and what they lack for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

# Files whose lines can be added to those of somebody else.
_OF_LINES = (".gitignore", ".gitattributes")


def describe_files_kept_by_init(root: Path, files: Mapping[str, str], there: Sequence[str]) -> list[str]:
    """Return messages about files that stay as they are, with the lines to add to some of them."""
    said = []
    for path in there:
        lacking = _find_lines_missing_from_kept_file(root / path, files[path]) if path in _OF_LINES else []
        lines = "this line" if len(lacking) == 1 else "these lines"
        said.append(f"kept {path} as it is" + (f"; add {lines}:" if lacking else ""))
        said += [f"    {line}" for line in lacking]
    if any(path not in _OF_LINES for path in there):
        said.append("to compare: the same command with another DIR writes them as they would be")
    return said


def _find_lines_missing_from_kept_file(path: Path, text: str) -> list[str]:
    """Return the lines of a text that a file lacks, ignoring comments and slashes at the ends."""
    try:
        own = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # a broken link
        own = []
    known = {_normalise_file_line(line) for line in own}
    return [
        line
        for line in text.splitlines()
        if line and line[0] != "#" and _normalise_file_line(line) not in known
    ]


def _normalise_file_line(line: str) -> str:
    return " ".join(line.split()).strip("/")
