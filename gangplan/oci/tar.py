"""Read tar archives (POSIX ustar and pax, GNU long names) from front to back, without unpacking them.

Python's own reader holds in memory as much as a header asks for, which is unsafe for untrusted images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO

from gangplan.errors import ToolError
from gangplan.records import dataclass

_BLOCK = 512
_CHUNK = 1 << 20
#: Largest long name or pax header in bytes.
_MOST_HEADER = 1 << 20
#: Most entries of one archive: an image of a whole distribution has some hundred thousand.
MOST_ENTRIES = 4_000_000
_KINDS = {"0": "file", "\0": "file", "7": "file", "1": "hard link", "2": "link", "5": "folder"}


@dataclass(frozen=True, slots=True)
class TarEntry:
    """One entry: its name as written, its kind, its size in bytes, and the target of a link."""

    name: str
    kind: str
    size: int
    target: str = ""


# Reads the content of the current entry, at most so many bytes.
ReadContent = Callable[[int], bytes]


def iterate_tar_entries(stream: IO[bytes], most: int, what: str) -> Iterator[tuple[TarEntry, ReadContent]]:
    """Yield every entry with a function that reads its content, to be called before the next entry.

    Raises ToolError for what is not an archive, and for one with more than `most` bytes.
    """
    source = _Source(stream, most, what)
    extra: dict[str, str] = {}
    for _ in range(MOST_ENTRIES):
        header = source.take(_BLOCK)
        if len(header) < _BLOCK or not header.strip(b"\0"):
            return  # the end, or a block of zeros, after which nothing counts
        if not _has_valid_tar_checksum(header):
            raise ToolError(f"{what} is damaged: a header has the wrong checksum")
        kind, size = chr(header[156]), _parse_tar_number(header[124:136], what)
        if kind in "xLKg":
            if size > _MOST_HEADER:
                raise ToolError(f"{what} has a header of {size} bytes")
            data = source.take(size)
            source.skip(-size % _BLOCK)
            if kind == "x":
                extra |= _parse_pax_header(data, what)
            elif kind in "LK":
                extra["path" if kind == "L" else "linkpath"] = _decode_tar_text(data.partition(b"\0")[0])
            continue
        if "size" in extra:
            size = int(extra["size"]) if re.fullmatch(r"[0-9]{1,15}", extra["size"]) else 0
        size = size if _KINDS.get(kind, "file") == "file" else 0
        entry = TarEntry(
            extra.get("path") or _read_tar_entry_name(header),
            _KINDS.get(kind, "other"),
            size,
            extra.get("linkpath") or _decode_tar_text(header[157:257].partition(b"\0")[0]),
        )
        extra = {}
        before = source.taken
        yield entry, lambda count, left=size: source.take(min(count, left))  # type: ignore[misc]
        source.skip(size + -size % _BLOCK - (source.taken - before))
    raise ToolError(f"{what} has more than {MOST_ENTRIES} entries")


class _Source:
    """A stream that is read up to a limit."""

    def __init__(self, stream: IO[bytes], most: int, what: str) -> None:
        self.stream, self.most, self.what, self.taken = stream, most, what, 0

    def take(self, count: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        data = bytearray()
        while len(data) < count and (chunk := self._read(min(_CHUNK, count - len(data)))):
            data += chunk
        return bytes(data)

    def skip(self, count: int) -> None:
        """Skip bytes. Raises ToolError if the stream ends too early."""
        while count > 0:
            chunk = self._read(min(_CHUNK, count))
            if not chunk:
                raise ToolError(f"{self.what} is damaged: it ends in the middle of a file")
            count -= len(chunk)

    def _read(self, count: int) -> bytes:
        chunk = self.stream.read(count)
        self.taken += len(chunk)
        if self.taken > self.most:
            raise ToolError(f"{self.what} unpacks to more than {self.most} bytes, which is all that is read")
        return chunk


def _has_valid_tar_checksum(header: bytes) -> bool:
    """Return whether the checksum of a header is right; its own field counts as blanks."""
    stated = header[148:156].strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,7}", stated):
        return False
    return sum(header) - sum(header[148:156]) + 8 * 32 == int(stated, 8)


def _parse_tar_number(field: bytes, what: str) -> int:
    if field[0] & 0x80:  # GNU's binary form
        value = int.from_bytes(field[1:], "big")
        return value if field[0] == 0x80 and value < 1 << 60 else 0
    text = field.strip(b" \0") or b"0"
    if not re.fullmatch(rb"[0-7]+", text):
        raise ToolError(f"{what} is damaged: a size is not a number")
    return int(text, 8)


def _read_tar_entry_name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:262] == b"ustar" else b""
    return _decode_tar_text(prefix + b"/" + name if prefix and header[263:265] == b"00" else name)


def _parse_pax_header(data: bytes, what: str) -> dict[str, str]:
    """Parse the records of a pax header: LENGTH KEY=VALUE, one after the other."""
    found, place = {}, 0
    while place < len(data) and data[place : place + 1] != b"\0":
        length, blank, _ = data[place : place + 20].partition(b" ")
        if not blank or not length.isdigit() or not 0 < int(length) <= len(data) - place:
            raise ToolError(f"{what} is damaged: a pax header cannot be read")
        record = data[place + len(length) + 1 : place + int(length)]
        key, _, value = record.rstrip(b"\n").partition(b"=")
        found[_decode_tar_text(key)] = _decode_tar_text(value)
        place += int(length)
    return {key: found[key] for key in ("path", "linkpath", "size") if key in found}


def _decode_tar_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
