"""Reading the files in a spec's folder that its pods mount, or reporting why they cannot be read."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from gangplan.findings import Finding
from gangplan.rules.files import FILE_MISSING, FILE_UNUSABLE, FILES_TOO_LARGE
from gangplan.source import Document
from gangplan.spec.listing import FILES_FOLDER, is_ignored
from gangplan.spec.near import find_closest

# Keys of `files` with this prefix are files in the spec's folder; all others are ConfigMaps.
SPEC_FOLDER_PREFIX = "./"
# The limit of a ConfigMap for all values together (Kubernetes v1.34, pkg/apis/core/validation,
# ValidateConfigMap with core.MaxSecretSize).
MOST_BYTES = 1 << 20

Read = tuple[dict[str, bytes], list[Finding]]


def read_files_mounted_by_spec(root: Path, spec: str, names: Mapping[str, str], document: Document) -> Read:
    """Return the bytes of the files of a spec, by the names that the spec uses, and the findings about
    them."""
    found: dict[str, bytes] = {}
    findings: list[Finding] = []
    for name in names:
        if name.startswith(SPEC_FOLDER_PREFIX):
            data, wrong = _read_file_mounted_by_spec(root, spec, name, document)
            findings += wrong
            if data is not None:
                found[name] = data
    return found, [*findings, *_check_total_mounted_file_size(found, document)]


def resolve_spec_file(spec: str, name: str) -> str:
    """Return the path of a file from the root of the workspace; a path that leaves the spec's folder is kept
    as it is."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(spec), name))


def _read_file_mounted_by_spec(
    root: Path, spec: str, name: str, document: Document
) -> tuple[bytes | None, list[Finding]]:
    file, where = resolve_spec_file(spec, name), document.where(("files", name), key=True)
    folder = posixpath.dirname(spec)
    if not f"{file}/".startswith(f"{folder}/") or file == folder:
        message = f"{name} is not in the folder of the spec, {folder}/"
        help = f"Copy it to {folder}/{FILES_FOLDER}/, and write {SPEC_FOLDER_PREFIX}{FILES_FOLDER}/{_extract_file_name(name)}."
        return None, [Finding(FILE_UNUSABLE, where, message, help)]
    status = _read_file_status(root / file)
    if status is None:
        near = find_closest(_extract_file_name(name), _list_folder_names(root / posixpath.dirname(file)))
        help = (
            f"Did you mean {name.removesuffix(_extract_file_name(name))}{near}?"
            if near
            else "Add it, or correct the name."
        )
        return None, [Finding(FILE_MISSING, where, f"there is no file {file}", help)]
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "no plain file"
        help = "Write one entry for each of its files." if what == "a folder" else "Replace it with a file."
        return None, [Finding(FILE_UNUSABLE, where, f"{file} is {what}", help)]
    if not is_ignored(file):
        message = f"{file} is read as a spec, as every YAML file below specs/ is outside of a folder {FILES_FOLDER}/"
        help = f"Move it, and write {SPEC_FOLDER_PREFIX}{FILES_FOLDER}/{_extract_file_name(name)}."
        return None, [Finding(FILE_UNUSABLE, where, message, help)]
    if status.st_size > MOST_BYTES:
        return None, [_report_large_files(name, status.st_size, document)]
    try:
        return (root / file).read_bytes(), []
    except OSError as failed:
        message = f"{file} cannot be read: {failed.strerror}"
        return None, [Finding(FILE_UNUSABLE, where, message, "Let gangplan read it.")]


def _read_file_status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _list_folder_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _extract_file_name(name: str) -> str:
    return posixpath.basename(name)


def _check_total_mounted_file_size(found: Mapping[str, bytes], document: Document) -> Iterator[Finding]:
    """Report files that are too large together, since a run has one ConfigMap; the finding is at the
    largest."""
    total = sum(map(len, found.values()))
    if total > MOST_BYTES:
        yield _report_large_files(max(found, key=lambda name: len(found[name])), total, document)


def _report_large_files(name: str, size: int, document: Document) -> Finding:
    message = f"the files of the spec have {size} bytes, more than the {MOST_BYTES} that a ConfigMap holds"
    help = "Put what is large onto a claim (data), or into the image."
    return Finding(FILES_TOO_LARGE, document.where(("files", name), key=True), message, help)
