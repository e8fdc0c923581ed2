"""The finding about a rendered/ that is not what is rendered now, and how a merge made it so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gangplan.emit import FileOutcome, TreeChange
from gangplan.findings import Finding, Location
from gangplan.rules.merges import RENDERED_STALE
from gangplan.rules.model import Severity
from gangplan.tools.revisions import compute_git_blob_id, find_git_merge_parents, list_commit_files
from gangplan.workspace import RENDERED

RENDER_HELP = "Run gangplan render, and commit rendered/."


def check_stale_files(
    root: Path, stale: Sequence[TreeChange], level: Severity | None = None, asks_git: bool = False
) -> list[Finding]:
    """Return one finding for all files of rendered/ that are not what is rendered now, at the first.

    If it `asks_git`, it says how a merge caused it. Raises ToolError only then.
    """
    if not stale:
        return []
    first = f"{RENDERED}/{stale[0].path}"
    counts = {word: sum(one.outcome is outcome for one in stale) for outcome, word in _WORDS.items()}
    parts = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    how = _describe_stale_merge(root, stale) if asks_git else ""
    message = f"{RENDERED}/ is stale: {len(stale)} file{'' if len(stale) == 1 else 's'} ({parts}){how}"
    return [Finding(RENDERED_STALE, Location(first, 1, 1), message, RENDER_HELP, level=level)]


_WORDS = {
    FileOutcome.CHANGED: "not as rendered now",
    FileOutcome.NEW: "missing",
    FileOutcome.REMOVED: "no longer rendered",
}


def _describe_stale_merge(root: Path, stale: Sequence[TreeChange]) -> str:
    """Return how a merge made it stale; empty if no merge did."""
    parents = find_git_merge_parents(root)
    if not parents:
        return ""
    blended = []
    sides = [list_commit_files(root, commit, [RENDERED]).files for commit in parents]
    for change in stale:
        path = f"{RENDERED}/{change.path}"
        ids = [side.get(path, "") for side in sides]
        if change.outcome is FileOutcome.CHANGED and all(ids):
            here = compute_git_blob_id((root / path).read_bytes(), ids[0])
            blended += [path] if here not in ids else []
    if blended:
        return f"; a merge joined lines of two renders, and nobody rendered the result ({blended[0]})"
    return "; it was not rendered again after the merge"
