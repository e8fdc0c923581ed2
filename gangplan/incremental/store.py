"""The cache of a workspace: records in `.gangplan/cache/`, each whole or absent.

A record is written to another name, renamed, and sealed (`seal`): what a killed command, a full disk or
anybody else left there is not a record and is ignored. Several commands may use it at once; the last one
wins. Nothing there is ever needed: if it cannot be read or written, everything is computed again.

Only files with names of records are ever removed, one level deep, in folders that are not links: nothing else
that is in the cache, and nothing that a wrong path leads to.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gangplan.incremental.seal import open_sealed, read_seal_key, seal_text

#: The folder of the records, from the workspace's root.
CACHE_FOLDER = ".gangplan/cache"
#: The kinds of records; "" is the kind of single ones.
RECORD_KINDS = (
    *("", "answers", "batches", "clusters", "platform", "runs", "shapes", "sums", "worlds"),
    # Results about Git revisions that workspaces were compared with.
    *("base-clusters", "base-platform", "base-runs", "base-shapes", "base-worlds"),
)
_SINGLE = frozenset({"clean", "folders", "program", "unswept"})
#: The names of the other records (a digest, or a cluster), and what a killed command leaves next to them.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")
_ASIDE = re.compile(r"\.[0-9]+$")
#: How many answers are kept: as many different commands as people and CI give in a day.
MOST_ANSWERS = 64
#: The most bytes of all answers together.
MOST_ANSWER_BYTES = 256_000_000


def find_cache_folder_of_workspace(root: str) -> str | None:
    """Return the folder of the cache, or None if it or its parent is a link: it could lead anywhere."""
    path = root
    for part in CACHE_FOLDER.split("/"):
        path = os.path.join(path, part)
        if os.path.islink(path):
            return None
    return path


class RecordStore:
    """The records of one workspace, by names such as `answers/0123abcd`."""

    __slots__ = ("folder", "secret")

    def __init__(self, root: str) -> None:
        self.secret = read_seal_key() or b""
        self.folder = find_cache_folder_of_workspace(root) if self.secret else None

    def get(self, name: str) -> Any:
        """Return what a record holds; None if there is no record, or if gangplan did not write it."""
        path = self._path(name)
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                text = open_sealed(file.read(), self.secret)
        except OSError:
            return None
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError:
            return None

    def put(self, name: str, value: Any) -> None:
        """Keep a value, if that is possible."""
        target = self._path(name)
        if target is None:
            return
        text = json.dumps(value, separators=(",", ":")).encode()
        aside = f"{target}.{os.getpid()}"
        try:
            self._prepare(os.path.dirname(target))
            with open(aside, "xb") as file:  # never through a link
                file.write(seal_text(text, self.secret))
            os.replace(aside, target)
        except OSError:
            with suppress(OSError):
                os.unlink(aside)

    def keep_newest(self, kind: str, most: int, most_bytes: int = 1 << 62, start: str = "") -> None:
        """Remove all but the newest records of a kind whose names have this `start`, and what killed commands
        left next to them."""
        own = (one for one in self.files(kind) if os.path.basename(one[0]).startswith(start))
        files = sorted(own, key=lambda one: -one[2])
        total = 0
        for number, (path, size, _) in enumerate(files):
            total += size
            if number >= most or total > most_bytes:
                with suppress(OSError):
                    os.unlink(path)

    def files(self, kind: str) -> Iterator[tuple[str, int, int]]:
        """Yield path, size in bytes and time (ns) of the records of a kind, and of what killed commands
        left there."""
        folder = self._folder(kind)
        if folder is None:
            return
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if _is_record(kind, entry.name):
                with suppress(OSError):
                    own = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(own.st_mode):
                        yield entry.path, own.st_size, own.st_mtime_ns

    def clear(self) -> int:
        """Remove all records, and return the number of removed files. Raises OSError."""
        removed = 0
        for kind in RECORD_KINDS:
            for path, _, _ in list(self.files(kind)):
                os.unlink(path)
                removed += 1
        return removed

    def _folder(self, kind: str) -> str | None:
        """Return the folder of a kind of records; None for an unknown kind, or if it is a link."""
        if self.folder is None or kind not in RECORD_KINDS:
            return None
        path = os.path.join(self.folder, kind) if kind else self.folder
        return None if os.path.islink(path) else path

    def _path(self, name: str) -> str | None:
        """Return the file of a record; None for a name that no record has."""
        kind, _, own = name.rpartition("/")
        folder = self._folder(kind)
        return os.path.join(folder, own) if folder is not None and _is_record(kind, own) else None

    def _prepare(self, folder: str) -> None:
        """Make the folder of a record, and have Git ignore the cache in any workspace."""
        if os.path.isdir(folder):
            return
        os.makedirs(folder, exist_ok=True)
        note = os.path.join(str(self.folder), ".gitignore")
        if not os.path.exists(note):
            with open(note, "w", encoding="ascii") as file:
                file.write("*\n")


def _is_record(kind: str, name: str) -> bool:
    """Return whether a file of this name is a record of a kind, or was about to become one."""
    own = _ASIDE.sub("", name)
    return own in _SINGLE if not kind else _NAME.fullmatch(own) is not None
