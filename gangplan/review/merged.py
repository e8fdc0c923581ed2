"""What a merge with a revision that has moved on would leave: a rendered/ that is not rendered again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gangplan.emit import FileOutcome, TreeChange, is_run_file
from gangplan.findings import Finding, Location
from gangplan.pipeline.render import find_stale_rendered_files, render_into_temporary_folder
from gangplan.pipeline.request import Request
from gangplan.rules.merges import RENDERED_STALE
from gangplan.rules.model import Severity
from gangplan.tools.git import commit_of
from gangplan.tools.revisions import (
    Revision,
    list_commit_files,
    merge_texts_with_git,
    read_git_blobs_by_id,
)
from gangplan.workspace import READ_FOLDERS, RENDERED

# How many runs are named.
_MOST = 3


def check_change_merges_with_base(
    request: Request, revision: Revision, today: Mapping[str, str]
) -> list[Finding]:
    """Return a finding if a merge with a revision goes through and leaves a stale rendered/.

    `today` is the tree of this side. Nothing is returned where Git stops, because a conflict is settled
    by another render, nor where the result has errors. Raises ToolError.
    """
    if not revision.is_merge_base:
        return []
    merged = _merge_workspace_with_revision(request.root, revision, today)
    if not merged:
        return []
    with tempfile.TemporaryDirectory("-merged") as folder:
        top = Path(folder).resolve()
        for path, data in merged.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_bytes(data)
        asked = Request(top, engine=request.engine, jobs=request.jobs, keep_runs=request.keep_runs)
        with render_into_temporary_folder(asked, is_whole=False) as (result, stage):
            stale = find_stale_rendered_files(asked, result, stage)
    if not stale:
        return []
    message = (
        f"{revision.asked} has moved on: after a merge, rendered/ would be stale"
        f" ({len(stale)} file{'' if len(stale) == 1 else 's'}){_describe_runs_renamed_by_merge(stale)}"
    )
    help = f"Merge {revision.asked} into this branch, run gangplan render, and commit rendered/."
    where = Location(f"{RENDERED}/{stale[0].path}", 1, 1)
    return [Finding(RENDERED_STALE, where, message, help, level=Severity.WARNING)]


def _merge_workspace_with_revision(
    root: Path, revision: Revision, today: Mapping[str, str]
) -> dict[str, bytes]:
    """Return the files of a workspace after a merge; empty if that changes nothing here, or does not go
    through."""
    folders = (*READ_FOLDERS, RENDERED)
    base, theirs = (
        list_commit_files(root, commit, folders).files
        for commit in (revision.commit, commit_of(root, revision.asked))
    )
    changed = [path for path in {**base, **theirs} if base.get(path) != theirs.get(path)]
    if not changed:
        return {}
    merged = _read_own_files(root) | {f"{RENDERED}/{path}": text.encode() for path, text in today.items()}
    blobs = read_git_blobs_by_id(
        root, [side[path] for side in (base, theirs) for path in changed if path in side]
    )
    for path in changed:
        old, new = (blobs[side[path]] if path in side else None for side in (base, theirs))
        own = merged.get(path)
        if own == old:
            result = new
        elif own == new:
            result = own
        else:
            result = merge_texts_with_git(root, own, old, new)
            if result is None:
                return {}
        if result is None:
            merged.pop(path, None)
        else:
            merged[path] = result
    return merged


def _read_own_files(root: Path) -> dict[str, bytes]:
    """Return the files that people write, as they are."""
    found = {}
    for top in READ_FOLDERS:
        for parent, _, names in os.walk(root / top):
            for path in (Path(parent) / name for name in names):
                if path.is_file() and not path.is_symlink():
                    found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def _describe_runs_renamed_by_merge(stale: list[TreeChange]) -> str:
    """Return which runs would get another name."""
    runs: dict[FileOutcome, dict[str, str]] = {}
    for one in stale:
        if is_run_file(one.path):
            job, name = one.path.rpartition("-")[0], one.path.rpartition("/")[2].removesuffix(".yaml")
            runs.setdefault(one.outcome, {})[job] = name
    old, new = runs.get(FileOutcome.REMOVED, {}), runs.get(FileOutcome.NEW, {})
    told = [f"{old[job]} would be {name}" for job, name in new.items() if job in old]
    more = [f"{len(told) - _MOST} other runs"] if len(told) > _MOST else []
    return f", and runs would get other names: {', '.join([*told[:_MOST], *more])}" if told else ""
