"""The fields of shared files that changed: the reasons why a run is retrained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from gangplan.findings import FieldPath, Finding, Location
from gangplan.rules.lifecycle import RUN_REPLACED
from gangplan.rules.model import Severity
from gangplan.source import Document, load_document
from gangplan.tools.git import commit_of
from gangplan.tools.revisions import list_commit_files, read_blobs
from gangplan.validate.problems import format_path
from gangplan.workspace import CATALOG, OVERLAYS, SPECS, Workspace

# A field as it is written, and its place today; if the field is gone, where it would be.
ChangedField = tuple[str, Location]
# How many fields are named; `plan --base` shows all.
_MOST = 3


def compare_fields(old: Any, new: Document) -> list[ChangedField]:
    """Return the fields of a file that are new, gone or changed, in the order of today."""
    return [(format_path(path), new.where(path)) for path in _find_changed_field_paths(old, new.value)]


def document_of(workspace: Workspace, file: str) -> Document | None:
    """Return a file of a workspace as it was read: the catalog, or that of a cluster or team."""
    top, name, *_ = [*file.split("/"), ""]
    if file == CATALOG:
        return workspace.catalog_document
    of = workspace.clusters if top == OVERLAYS else workspace.teams
    return next((one.document for key, one in of.items() if key == name and one.document.file == file), None)


def add_changed_fields(workspace: Workspace, revision: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings; those about a retrained run name the fields that changed since a revision.

    Raises UserError and ToolError, as the comparison that found them.
    """
    found = list(findings)
    again = {_list_shared_files_of_run(one): None for one in found if _is_retrained(one)}
    changed = (
        _compare_files_since_revision(workspace, revision, {file for files in again for file in files})
        if again
        else {}
    )
    return [_explain_retrained_run(one, changed) if _is_retrained(one) else one for one in found]


def _is_retrained(finding: Finding) -> bool:
    """Return whether a finding is about a run whose spec did not change; only that makes it a warning."""
    return finding.rule is RUN_REPLACED and finding.severity is Severity.WARNING


def _list_shared_files_of_run(finding: Finding) -> tuple[str, ...]:
    """Return the shared files with fields that a run depends on."""
    (cluster,), team = finding.clusters, finding.where.file.split("/")[1]
    return CATALOG, f"{OVERLAYS}/{cluster}/cluster.yaml", f"{SPECS}/{team}/team.yaml"


def _explain_retrained_run(finding: Finding, changed: dict[str, list[ChangedField]]) -> Finding:
    told = [
        f"{at} ({name})" for file in _list_shared_files_of_run(finding) for name, at in changed.get(file, ())
    ]
    more = [f"{len(told) - _MOST} other places"] if len(told) > _MOST else []
    if not told:
        return finding
    return replace(finding, message=f"{finding.message}; changed: {', '.join([*told[:_MOST], *more])}")


def _compare_files_since_revision(
    workspace: Workspace, revision: str, files: Iterable[str]
) -> dict[str, list[ChangedField]]:
    """Return the changed fields of some files, by file."""
    root, wanted = workspace.root, sorted(files)
    ids = list_commit_files(root, commit_of(root, revision), wanted).files
    contents = read_blobs(root, ids.values())
    changed = {}
    for file in wanted:
        new = document_of(workspace, file)
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
