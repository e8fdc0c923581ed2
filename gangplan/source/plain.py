"""A check of the folders that people write, before any file in them is read: only plain files and folders are
allowed.

A link would show its target in a report (the first line of a file outside, or the keys of another), a pipe or
device never ends, and a file of gigabytes stops the check for everybody. Git can contain links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.rules.core import FILE_UNREADABLE

# Reports of scanners and CRDs have a few MiB; specs and policies have limits of their own (document.py).
MOST_MIB = 64


#: The names of the files and of the folders in folders that hold nothing else, by path.
PlainFolders = Mapping[str, tuple[Sequence[str], Sequence[str]]]


def find_special_files(root: Path, names: Iterable[str], plain: PlainFolders = {}) -> list[Finding]:  # noqa: B006  never changed
    """Return an error for every link, pipe, socket, device and huge file below `root`/`names`, sorted by
    path.

    Folders in `plain` were found to be plain a moment ago and are not checked again. A lock of Emacs
    (`.#job.yaml`, a dangling link) is allowed as long as it is dangling.
    """
    found: list[Finding] = []
    for name in sorted(names):
        try:
            status = os.lstat(root / name)
        except OSError:
            continue  # reported by its reader
        found += _check_plain_file(root, name, status)
        if stat.S_ISDIR(status.st_mode):
            found += _check_folder_files(root, name, plain)
    return found


def _check_folder_files(root: Path, folder: str, plain: PlainFolders) -> Iterator[Finding]:
    if folder in plain:
        for name in sorted(plain[folder][1]):
            yield from _check_folder_files(root, f"{folder}/{name}", plain)
        return
    try:
        with os.scandir(root / folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except PermissionError:
        yield _report_closed_folder(folder)
        return
    except OSError:
        return  # reported by its reader
    for entry in entries:
        file = f"{folder}/{entry.name}"
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _check_folder_files(root, file, plain)
            else:
                yield from _check_plain_file(root, file, entry.stat(follow_symlinks=False))
        except PermissionError:
            yield _report_closed_folder(folder)
            return


def _report_closed_folder(folder: str) -> Finding:
    message = "permission to read the folder is denied, and nothing was read at all"
    help = f"Give yourself permission: chmod u+rx {folder}."
    return Finding(FILE_UNREADABLE, Location(folder), message, help)


def _check_plain_file(root: Path, file: str, status: os.stat_result) -> Iterator[Finding]:
    where, mode = Location(file), status.st_mode
    if stat.S_ISLNK(mode):
        if file.rpartition("/")[2].startswith(".#") and not (root / file).exists():
            return
        message = "this is a link; only plain files and folders are read, and nothing was read at all"
        yield Finding(FILE_UNREADABLE, where, message, "Replace the link with what it points to.")
    elif stat.S_ISREG(mode):
        if status.st_size > MOST_MIB << 20:
            message = f"the file has {status.st_size >> 20} MiB, more than {MOST_MIB} MiB; nothing was read"
            yield Finding(FILE_UNREADABLE, where, message, "Move it out of the folders that gangplan reads.")
    elif not stat.S_ISDIR(mode):
        message = "this is a pipe, socket or device, not a regular file"
        yield Finding(FILE_UNREADABLE, where, message, "Replace it with a file.")
