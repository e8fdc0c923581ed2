"""The contents of folders as digests: from what the system says about each file, and from its bytes if that
is new.

A folder whose files have the same names, sizes, times and inodes as before holds the same bytes, so only the
others are read. The times include one that no program can set (ctime). A folder that was changed a moment ago
is always read: a second change within the same tick of the clock would not be seen.
"""

from __future__ import annotations

import marshal
import os
import stat
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any

#: Nanoseconds after which a file's time has moved on: a kernel's tick is 10 ms at most.
TICK_NS = 100_000_000
#: The same for file systems that count whole seconds (FAT counts in twos).
COARSE_NS = 3_000_000_000

#: With more files than this, a second process shares the work.
MANY = 10_000
#: The largest file, in bytes, that is read to compare it; all that gangplan reads otherwise is smaller.
MOST_BYTES = 64 << 20

#: The bits of a mode that say which type a file has.
_KIND = 0o170000

#: By folder: a digest of what the system says about its files, and one of their names and bytes.
LookMemory = Mapping[str, tuple[str, str]]


def read_memory(held: Any) -> LookMemory:
    """Return the memory in a record; empty without a record."""
    return {path: (said, content) for path, (said, content) in held.items()} if held else {}


class Look:
    """The contents of some folders at one time.

    `contents` has the digest of each folder's own files by its path, `memory` the part of it that may be
    kept: folders that have not changed for a while, `said` what the system says about each. `plain` are the
    names of the files and folders in each folder that holds nothing else (a link, a pipe, a huge file).
    `files` counts all files, `read` those that had to be read; `digests` has those in folders that were
    different before, by name. `began` is when the look began (ns).
    `is_over`: the command itself has changed a few of the files since; `is_rewritten`: it has changed many.
    """

    __slots__ = (
        *("began", "contents", "digests", "files", "is_over", "is_rewritten", "memory", "plain", "read"),
        "said",
    )

    def __init__(self) -> None:
        self.began, self.is_over, self.is_rewritten = time.time_ns(), False, False
        self.contents: dict[str, str] = {}
        self.memory: dict[str, tuple[str, str]] = {}
        self.said: dict[str, str] = {}
        self.plain: dict[str, tuple[list[str], list[str]]] = {}
        self.digests: dict[str, dict[str, str]] = {}
        self.files = self.read = 0

    @property
    def digest(self) -> str:
        """One digest of all contents."""
        return digest_folder(self.contents)

    @property
    def whole(self) -> str:
        """One digest of what the system says about all files: while it is the same, no file was touched."""
        return digest_folder(self.said)


def look_at_folders(
    root: str,
    tops: Iterable[str],
    memory: LookMemory,
    without: Collection[str] = frozenset(),
    workers: int = 1,
) -> Look:
    """Look at folders below `root`, with all that is in them; folders with the names `without` are left out.

    A missing folder counts as empty. With two `workers` and more than `MANY` files, a second process looks at
    half of the folders: the system takes most of that time.

    Raises OSError if something cannot be read.
    """
    found = Look()
    for path, said, newest, names, inside in _survey_folders(root, deque(tops), without, workers):
        found.said[path] = said
        found.files += len(names)
        if inside is not None:
            found.plain[path] = (names, inside)
        known = memory.get(path)
        if known is not None and known[0] == said:
            content = known[1]
        else:
            own = {name: digest_path_to_detect_changes(os.path.join(root, path, name)) for name in names}
            content = digest_folder(own)
            found.read += len(names)
            if known is not None:  # not of all files in a new workspace
                found.digests[path] = own
        found.contents[path] = content
        if is_surely_before(newest, found.began):
            found.memory[path] = (said, content)
    return found


#: A folder: its path, a digest of what the system says about its own files, the newest time (ns), their
#: names, and those of the folders in it; None for these if anything in it is neither a plain file nor a
#: folder.
Folder = tuple[str, str, int, list[str], list[str] | None]


def _survey_folders(root: str, waiting: deque[str], without: Collection[str], workers: int) -> list[Folder]:
    """Return all folders below those that wait, level by level. Raises OSError."""
    found: list[Folder] = []
    seen = 0
    while waiting:
        if workers > 1 and seen > MANY and len(waiting) > 1:
            return found + _survey_folders_with_fork(root, list(waiting), without)
        folder = waiting.popleft()
        said: list[str] = []
        names: list[str] = []
        inside: list[str] = []
        newest, is_plain = 0, True
        try:
            handle = os.open(os.path.join(root, folder), os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:  # by its handle, so that the system need not find the folder again for each of its files
            with os.scandir(handle) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        inside.append(entry.name)
                        if entry.name not in without:
                            waiting.append(f"{folder}/{entry.name}")
                            said.append(f"{entry.name}/")
                        continue
                    names.append(entry.name)
                    own = entry.stat(follow_symlinks=False)
                    changed = own.st_ctime_ns
                    if changed > newest:
                        newest = changed
                    mode, size = own.st_mode, own.st_size
                    if mode & _KIND != stat.S_IFREG or size > MOST_BYTES:
                        is_plain = False
                    said.append(f"{entry.name}\0{mode} {size} {own.st_mtime_ns} {changed} {own.st_ino}")
        finally:
            os.close(handle)
        seen += len(said)
        said.sort()
        text = "\n".join(said).encode("utf-8", "surrogateescape")
        found.append((folder, sha256(text).hexdigest(), newest, names, inside if is_plain else None))
    return found


def _survey_folders_with_fork(root: str, waiting: list[str], without: Collection[str]) -> list[Folder]:
    """Return the same, with every other folder surveyed by a child of this process. Raises OSError."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(writer, "wb") as pipe:
                marshal.dump(_survey_folders(root, deque(waiting[1::2]), without, 1), pipe)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    try:
        with open(reader, "rb") as pipe:
            own = _survey_folders(root, deque(waiting[::2]), without, 1)
            data = pipe.read()
    finally:
        _, status = os.waitpid(child, 0)
    theirs = marshal.loads(data) if status == 0 else _survey_folders(root, deque(waiting[1::2]), without, 1)
    return own + theirs


def is_surely_before(changed_ns: int, then_ns: int) -> bool:
    """Return whether a file's time is before a time of the system's clock, however coarsely files count."""
    return changed_ns + (TICK_NS if changed_ns % 1_000_000_000 else COARSE_NS) < then_ns


def digest_folder(files: Mapping[str, str]) -> str:
    """Return the digest of a folder whose files have these digests (`held`) by name."""
    lines = (f"{name}\0{files[name]}\n" for name in sorted(files))
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def digest_path_to_detect_changes(path: str) -> str:
    """Return the digest of a path: a file's bytes, the target of a link, or the type of anything else.

    A file that is larger than any that is read here is identified by what the system says about it. Raises
    OSError.
    """
    own = os.lstat(path)
    mode = own.st_mode
    if stat.S_ISLNK(mode):
        return f"link {os.readlink(path)}"
    if not stat.S_ISREG(mode):
        return f"other {stat.S_IFMT(mode)}"  # a pipe would never end
    if own.st_size > MOST_BYTES:
        return f"large {own.st_size} {own.st_mtime_ns} {own.st_ctime_ns} {own.st_ino}"
    with open(path, "rb") as file:
        return sha256(file.read(MOST_BYTES + 1)).hexdigest()
