"""An OCI image layout (Image Specification 1.1): a folder, or a tar of one, as podman and skopeo write it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from gangplan.errors import ToolError, UserError
from gangplan.oci.manifests import Descriptor, image_index_platforms_of, parse_manifest_or_config_json
from gangplan.oci.names import INDEX_TYPES, OCI_INDEX, compute_blob_digest
from gangplan.oci.registry import MAX_MANIFEST_BYTES, Manifest
from gangplan.oci.tar import iterate_tar_entries
from gangplan.records import dataclass

_REF = "org.opencontainers.image.ref.name"
_CHUNK = 1 << 20

# Opens a file of the layout by its path in it; returns None for a missing file.
Open = Callable[[str], IO[bytes] | None]


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """An open layout."""

    name: str
    open: Open

    def top(self, tag: str | None) -> Manifest:
        """Return the manifest or index of a tag; without a tag, that of the only image, or an index of all.

        Raises UserError if the layout has no such tag.
        """
        data = self._bytes("index.json", MAX_MANIFEST_BYTES)
        body = parse_manifest_or_config_json(data, f"{self.name}: index.json")
        entries = body.get("manifests")
        every = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
        named = [one for one in every if _name_of(one) == tag] if tag else every
        if tag and not named:
            known = ", ".join(sorted(filter(None, map(_name_of, every)))) or "no names"
            raise UserError(f"{self.name} has no image '{tag}'", f"It has {known[:500]}.")
        if len(named) == 1:
            checked = image_index_platforms_of({"manifests": named}, self.name)
            if checked:
                return self.manifest(checked[0].entry)
        return Manifest(data, compute_blob_digest(data), OCI_INDEX)

    def manifest(self, one: Descriptor) -> Manifest:
        """Return a manifest of the layout, checked against its digest. Raises ToolError."""
        data = self._bytes(_build_blob_path(one.digest), min(one.size, MAX_MANIFEST_BYTES))
        if compute_blob_digest(data) != one.digest:
            raise ToolError(f"{self.name}: the bytes of {one.digest} have {compute_blob_digest(data)}")
        kind = one.media_type or (INDEX_TYPES[0] if b'"manifests"' in data else "")
        return Manifest(data, one.digest, kind)

    def blob(self, one: Descriptor) -> IO[bytes]:
        """Return a blob at its start, after checking its digest and size. Raises ToolError."""
        stream = self.open(_build_blob_path(one.digest))
        if stream is None:
            raise ToolError(f"{self.name} has no {one.digest}", "Save it again with all of its blobs.")
        hashed, size = hashlib.sha256(), 0
        while chunk := stream.read(_CHUNK):
            hashed.update(chunk)
            size += len(chunk)
            if size > one.size:
                break
        if f"sha256:{hashed.hexdigest()}" != one.digest or size != one.size:
            raise ToolError(f"{self.name}: the bytes of {one.digest} are others, or more or fewer")
        stream.seek(0)
        return stream

    def _bytes(self, path: str, most: int) -> bytes:
        stream = self.open(path)
        if stream is None:
            help = "Save it again with all of its blobs, or choose an architecture that it has: --arch."
            if path == "index.json":
                help = "Name the folder that has oci-layout and index.json."
            raise ToolError(f"{self.name} has no {path}", help)
        with stream:
            data = stream.read(most + 1)
        if len(data) > most:
            raise ToolError(f"{self.name}: {path} has more than {most} bytes")
        return data


def open_oci_layout(path: Path, name: str) -> ImageLayout:
    """Open the layout in a folder or an uncompressed tar. Raises UserError for anything else."""
    if path.is_dir():
        return ImageLayout(name, lambda inner: _open_oci_layout_file(path, inner))
    if not path.is_file():
        raise UserError(f"there is no {name}", "Name an OCI layout: a folder, or a tar of one.")
    places = _find_oci_layout_tar_offsets(path, name)

    def part(inner: str) -> IO[bytes] | None:
        return cast("IO[bytes]", _Part(path, *places[inner])) if inner in places else None

    return ImageLayout(name, part)


def _open_oci_layout_file(root: Path, inner: str) -> IO[bytes] | None:
    """Open a regular file of the folder; links are not followed, so that nothing outside is read."""
    place = root
    for part in inner.split("/"):
        place = place / part
        try:
            mode = os.lstat(place).st_mode
        except OSError:
            return None
        if stat.S_ISLNK(mode):
            raise ToolError(f"{place.relative_to(root)} is a link, which is not followed")
    return place.open("rb") if stat.S_ISREG(mode) else None


def _find_oci_layout_tar_offsets(path: Path, name: str) -> dict[str, tuple[int, int]]:
    """Return the offset and size of each file in a tar."""
    found = {}
    size = path.stat().st_size
    with path.open("rb") as stream:
        if stream.read(2) == b"\x1f\x8b":
            raise UserError(f"{name} is packed", f"Unpack it first: gunzip {path.name}")
        stream.seek(0)
        for entry, _ in iterate_tar_entries(stream, size, name):
            if entry.kind == "file":
                found[entry.name.removeprefix("./")] = (stream.tell(), entry.size)
    return found


class _Part:
    """A part of a file, as a file object."""

    def __init__(self, path: Path, start: int, size: int) -> None:
        self._stream, self._start, self._size, self._at = path.open("rb"), start, size, 0
        self._stream.seek(start)

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes of the part."""
        left = self._size - self._at
        data = self._stream.read(left if count < 0 else min(count, left))
        self._at += len(data)
        return data

    def seek(self, place: int, whence: int = 0) -> int:
        """Move to a position in the part."""
        self._at = place + (self._at if whence == 1 else self._size if whence == 2 else 0)
        self._stream.seek(self._start + self._at)
        return self._at

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _build_blob_path(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _name_of(entry: dict[str, object]) -> str | None:
    notes = entry.get("annotations")
    name = notes.get(_REF) if isinstance(notes, dict) else None
    return str(name) if isinstance(name, str) else None
