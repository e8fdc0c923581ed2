"""The changes of a render as a unified difference."""

from __future__ import annotations

import difflib
from pathlib import Path

from gangplan.emit import FileOutcome, TreeChange
from gangplan.workspace import RENDERED


def render_unified_difference(tree: Path, change: TreeChange, text: str) -> str:
    """Return the difference of one file. New and removed files are only named: their whole text says
    little."""
    path = f"{RENDERED}/{change.path}"
    if change.outcome is not FileOutcome.CHANGED:
        return f"{change.outcome.value}: {path}\n"
    old = (tree / change.path).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    lines = difflib.unified_diff(
        old, text.splitlines(keepends=True), f"{path} (committed)", f"{path} (rendered now)", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
