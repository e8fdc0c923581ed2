"""The fields of shared files that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gangplan.findings import FieldPath, Location
from gangplan.source import Document, load_document
from gangplan.tools.git import commit_of
from gangplan.tools.revisions import list_commit_files, read_git_blobs_by_id
from gangplan.validate.problems import format_path
from gangplan.workspace import CATALOG, OVERLAYS, Workspace

# A field as it is written, and its place today; if the field is gone, where it would be.
ChangedField = tuple[str, Location]


def compare_fields(old: Any, new: Document) -> list[ChangedField]:
    """Return the fields of a file that are new, gone or changed, in the order of today."""
    return [(format_path(path), new.where(path)) for path in _find_changed_field_paths(old, new.value)]


def find_document_of_shared_file(workspace: Workspace, file: str) -> Document | None:
    """Return a file of a workspace as it was read: the catalog, or that of a cluster or team."""
    top, name, *_ = [*file.split("/"), ""]
    if file == CATALOG:
        return workspace.catalog_document
    of = workspace.clusters if top == OVERLAYS else workspace.teams
    return next((one.document for key, one in of.items() if key == name and one.document.file == file), None)


def compare_fields_since_revision(
    workspace: Workspace, revision: str, files: Iterable[str]
) -> dict[str, list[ChangedField]]:
    """Return the changed fields of some files, by file. Raises UserError and ToolError."""
    root, wanted = workspace.root, sorted(files)
    ids = list_commit_files(root, commit_of(root, revision), wanted).files
    contents = read_git_blobs_by_id(root, ids.values())
    changed = {}
    for file in wanted:
        new = find_document_of_shared_file(workspace, file)
        old, _ = load_document(contents[ids[file]], file) if file in ids else (None, [])
        if old is not None and new is not None:
            changed[file] = compare_fields(old.value, new)
    return changed


def _find_changed_field_paths(old: Any, new: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*new, *(key for key in old if key not in new)):
            if key in old and key in new:
                yield from _find_changed_field_paths(old[key], new[key], (*path, key))
            else:
                yield (*path, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _find_changed_field_paths(*pair, (*path, index))
    elif old != new:
        yield path
