"""Stack the layers of an image with their whiteouts, and keep the files that reveal what is inside.

Only files that match `_READ` or `_NAMED` and those that the caller names are kept; nothing is written
anywhere.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import IO

from gangplan.errors import ToolError
from gangplan.oci.tar import ReadContent, TarEntry, iterate_tar_entries
from gangplan.records import dataclass

#: Largest number of bytes kept of one file; all of dpkg's list of packages, the largest file, fits.
MOST_KEPT = 16 << 20
#: How many times larger a layer may get when unpacked, plus bytes; text packs to a tenth, zeros to a
#: thousandth.
_GROWTH, _ALWAYS = 200, 256 << 20
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_LINKS = 40

# Files whose content is read, and files whose name is enough.
_READ = re.compile(
    r"etc/(passwd|group)|(.*/)?\.?sshd_config(\.d/[^/]+\.conf)?|var/lib/dpkg/status(\.d/[^/]+)?"
    r"|(.*/)?pkgconfig/(ompi|mpich|impi)\.pc|(.*/)?share/openmpi/mpicc-wrapper-data\.txt"
    r"|usr/local/cuda[^/]*/version\.json|opt/rocm[^/]*/\.info/version"
)
_NAMED = re.compile(
    r"(.*/)?(sshd|ompi_info|orterun|prterun|mpirun|mpiexec|mpichversion|impi_info|libmpi\.so[.0-9]*)"
    r"|(.*/)?conda-meta/(openmpi|mpich|impi_rt)-[^/]+\.json|(.*/)?[^/]+\.dist-info/METADATA"
    r"|usr/local/cuda[^/]*/compat/(.*/)?libcuda\.so[.0-9]*|(.*/)?libcudart\.so[.0-9]+"
)
_KEY = re.compile(r"etc/ssh/ssh_host_[a-z0-9]+_key|(.*/)?\.ssh/id_[a-z0-9]+(_sk)?")


@dataclass(frozen=True, slots=True)
class File:
    """A file, folder or link that was kept; `content` is empty unless it was read."""

    kind: str
    content: bytes = b""
    target: str = ""


@dataclass(slots=True)
class ImageFiles:
    """The kept files of an image as its top layer shows them, by path.

    `keys` are SSH keys with their layers, hidden ones too. `outside` are names that lead out of the image,
    and `unread` are the reasons why layers could not be read.
    """

    kept: dict[str, File] = field(default_factory=dict)
    keys: list[tuple[int, str]] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    _above: Counter[str] = field(default_factory=Counter)

    def lay(self, number: int, stream: IO[bytes], size: int, also: frozenset[str]) -> None:
        """Add a layer of `size` packed bytes on top of the others; record an unreadable one in `unread`."""
        what = f"layer {number}"
        most, told = size * _GROWTH + _ALWAYS, (len(self.keys), len(self.outside))
        try:
            added, gone = self._layer(
                number, iterate_tar_entries(_open_image_layer_archive(stream, what), most, what), also
            )
            if empty := _find_empty_link_targets(added):
                # A hard link's content is at another name, which was not recognised when it passed.
                again = iterate_tar_entries(_open_image_layer_archive(stream, what), most, what)
                del self.keys[told[0] :], self.outside[told[1] :]
                added, gone = self._layer(number, again, also | empty)
        except (EOFError, zlib.error, gzip.BadGzipFile) as bad:
            self.unread.append(f"{what} is damaged: {bad}")
            return
        except ToolError as bad:
            self.unread.append(bad.message)
            return
        for path, is_opaque in gone:
            self._remove(path, is_opaque)
        for path, one in added.items():
            if one.kind != "folder":
                self._remove(path, False)
            self._add(path, one)

    def _layer(
        self, number: int, found: Iterator[tuple[TarEntry, ReadContent]], also: frozenset[str]
    ) -> tuple[dict[str, File], list[tuple[str, bool]]]:
        added: dict[str, File] = {}
        gone: list[tuple[str, bool]] = []
        for entry, read in found:
            path = _normalize_layer_path(entry.name)
            if path is None:
                self.outside += [entry.name] if len(self.outside) < 10 else []
                continue
            folder, _, base = path.rpartition("/")
            if base == _OPAQUE:
                gone.append((folder, True))
            elif base.startswith(_WHITEOUT):
                name = base.removeprefix(_WHITEOUT)
                gone.append((f"{folder}/{name}" if folder else name, False))
            else:
                if entry.kind == "file" and _KEY.fullmatch(path) and len(self.keys) < 100:
                    self.keys.append((number, path))
                one = self._file(entry, path, read, also, added)
                if one is not None:
                    added[path] = one
                elif entry.kind != "folder" and (path in self._above or path in self.kept):
                    gone.append((path, False))  # something else replaced it
        return added, gone

    def _file(
        self, entry: TarEntry, path: str, read: ReadContent, also: frozenset[str], added: dict[str, File]
    ) -> File | None:
        is_read = path in also or _READ.fullmatch(path) is not None
        if entry.kind == "link" and (is_read or path.count("/") < 3 or _NAMED.fullmatch(path)):
            return File("link", target=entry.target)
        if not is_read and not _NAMED.fullmatch(path):
            return None
        if entry.kind == "file":
            return File("file", read(MOST_KEPT) if is_read else b"")
        if entry.kind == "hard link":
            target = _normalize_layer_path(entry.target) or ""
            known = added.get(target) or self.kept.get(target)
            return known or File("file", target=target if is_read else "")
        return File("folder") if entry.kind == "folder" and path in also else None

    def _add(self, path: str, one: File) -> None:
        if path not in self.kept:
            self._above.update(_list_parent_folders(path))
        self.kept[path] = one

    def _remove(self, path: str, is_opaque: bool) -> None:
        if path and path not in self._above and path not in self.kept:
            return
        below = f"{path}/" if path else ""
        for name in [
            name for name in self.kept if name.startswith(below) or (name == path and not is_opaque)
        ]:
            del self.kept[name]
            self._above.subtract(_list_parent_folders(name))
        self._above += Counter()  # drop counts of zero

    def find(self, path: str) -> File | None:
        """Return what is at an absolute path, following links; None if nothing was kept there."""
        parts, done, links = path.strip("/").split("/"), "", 0
        while parts:
            part = parts.pop(0)
            done = f"{done}/{part}" if done else part
            one = self.kept.get(done)
            if one is not None and one.kind == "link":
                links += 1
                if links > _LINKS:
                    return None
                parts = [*_resolve_layer_link_target(done, one.target), *parts]
                done = ""
        return self.kept.get(done)


def _find_empty_link_targets(added: Mapping[str, File]) -> frozenset[str]:
    """Return the targets of hard links whose content is wanted but was not kept."""
    return frozenset(one.target for one in added.values() if one.kind == "file" and one.target)


def _resolve_layer_link_target(link: str, target: str) -> list[str]:
    """Return the target of a link as parts from the root; the parent of the root is the root."""
    base = [] if target.startswith("/") else link.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            base = base[:-1]
        elif part not in ("", "."):
            base = [*base, part]
    return base


def _normalize_layer_path(name: str) -> str | None:
    """Return the path from the root; None for one that leads out of it. Absolute paths are below the root."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return None if ".." in parts or "\0" in name else "/".join(parts)


def _list_parent_folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _open_image_layer_archive(stream: IO[bytes], what: str) -> IO[bytes]:
    """Return the archive in a layer, detected by its first bytes, since media types are often wrong."""
    stream.seek(0)
    magic = stream.read(4)
    stream.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)  # type: ignore[return-value]
    if magic == b"\x28\xb5\x2f\xfd":
        raise ToolError(f"{what} is packed with zstd, which Python's own library reads from 3.14 on alone")
    return stream
