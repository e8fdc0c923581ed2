"""Traces of a merge: files that it could not settle, and a rendered/ that was not rendered again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.review.sides import Side, Sides
from gangplan.review.stale import RENDER_HELP, check_stale_files
from gangplan.rules.merges import MERGE_CONFLICT, SPEC_SPLIT
from gangplan.tools.revisions import list_unmerged_files_in_git_index
from gangplan.workspace import READ_FOLDERS, RENDERED

# Stages of a file in the index of an open merge (1 base, 2 ours, 3 theirs): what happened to it.
_STAGES: Mapping[tuple[int, ...], str] = {
    (1,): "both branches gave the file another name",
    (2,): "this branch gave a file this name, and the other branch another one",
    (3,): "the other branch gave a file this name, and this branch another one",
    (1, 2): "the other branch deleted the file, and this one changed it",
    (1, 3): "this branch deleted the file, and the other one changed it",
    (2, 3): "both branches added the file",
    (1, 2, 3): "both branches changed the same lines",
}


def check_files_left_by_merge(root: Path, sides: Sides) -> list[Finding]:
    """Return one finding per file that a merge left open, one for a stale rendered/, and one per spec that
    split."""
    told = {one.where.file for one in sides.after.findings if one.is_error}
    return [
        *_check_unmerged_files(root, told),
        *check_stale_files(root, sides.stale, asks_git=True),
        *_check_specs_split_by_change(sides.before, sides.after),
    ]


def _check_unmerged_files(root: Path, told: set[str]) -> Iterator[Finding]:
    """Report files with stages in the index, except those that another finding reports already."""
    for path, stages in sorted(list_unmerged_files_in_git_index(root).items()):
        top = path.split("/")[0]
        if top not in (*READ_FOLDERS, RENDERED) or path in told:
            continue
        message = f"the merge is not settled: {_STAGES.get(stages, 'Git could not merge the file')}"
        help = (
            f"Keep the name and contents that are meant, then: git add {path} (git rm for a name that goes)."
        )
        if top == RENDERED:
            help = f"Settle specs/ and the other files first. {RENDER_HELP}"
        yield Finding(MERGE_CONFLICT, Location(path, 1, 1), message, help)


def _check_specs_split_by_change(before: Side, after: Side) -> Iterator[Finding]:
    """Report specs with the contents of one that is gone, if there are several."""
    gone: dict[tuple[str, bytes], str] = {}
    for path, data in before.specs.items():
        if path not in after.specs:
            gone[path.split("/")[1], data] = path
    heirs: dict[str, list[str]] = {}
    for path, data in after.specs.items():
        origin = gone.get((path.split("/")[1], data))
        if path not in before.specs and origin is not None:
            heirs.setdefault(origin, []).append(path)
    for origin, paths in sorted(heirs.items()):
        if len(paths) > 1:
            names = " and ".join(sorted(paths))
            message = f"{origin} became {names}, which are the same: each of them trains"
            help = "If a merge kept both names of one job, remove one of the files and render."
            yield Finding(SPEC_SPLIT, Location(sorted(paths)[1], 1, 1), message, help)


def find_renamed_specs(before: Side, after: Side) -> dict[str, str]:
    """Return specs with another name and the same contents, by their names before."""
    gone = {data: path for path, data in before.specs.items() if path not in after.specs}
    new = {path: data for path, data in after.specs.items() if path not in before.specs}
    return {gone[data]: path for path, data in sorted(new.items(), reverse=True) if data in gone}
