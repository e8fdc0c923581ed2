"""Read the package and module versions that the Go linker wrote into a binary.

A program built by `go install` may call itself `(devel)` or `development`, because its release script sets
the version with a linker flag. The linker always writes module and version, as `go version -m` shows.
Format: Go's debug/buildinfo/buildinfo.go (a 16-byte aligned header; strings inline since Go 1.18).
"""

from __future__ import annotations

import mmap
from pathlib import Path

from gangplan.records import dataclass

_MAGIC = b"\xff Go buildinf:"
_ALIGNMENT = 16
_HEADER_BYTES = 32
_INLINE_STRINGS = 0x02

#: The module lines are enclosed by two 16-byte marks.
_MARK_BYTES = 16

#: The most bytes of a string's length: three can express 2 MiB; real module lists take a few KiB.
_MAX_LENGTH_BYTES = 3


@dataclass(frozen=True)
class BuildInfo:
    """The package of a program, and the version of each module in it (`(devel)` if built from a checkout)."""

    package: str
    main: str
    versions: dict[str, str]


def read_build_info(path: Path) -> BuildInfo | None:
    """Return the build information of a Go program, or None for any other file.

    Raises OSError if the file cannot be read.
    """
    with path.open("rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            return None
        with content:
            if content[:2] == b"#!":
                return None
            return _find_build_info_in_go_program(content)


def _find_build_info_in_go_program(content: mmap.mmap) -> BuildInfo | None:
    at = content.find(_MAGIC)
    while at >= 0:
        if at % _ALIGNMENT == 0 and (lines := _read_go_module_lines(content, at)):
            return _parse_go_module_lines(lines)
        at = content.find(_MAGIC, at + 1)
    return None


def _read_go_module_lines(content: mmap.mmap, at: int) -> str:
    """Return the text after a header, or an empty one if this is not a header."""
    header = content[at : at + _HEADER_BYTES]
    if len(header) < _HEADER_BYTES or not header[15] & _INLINE_STRINGS:
        return ""
    _, end = _read_go_varint_string(content, at + _HEADER_BYTES)  # the Go version
    raw, _ = _read_go_varint_string(content, end)
    return raw[_MARK_BYTES:-_MARK_BYTES].decode("utf-8", "replace")


def _read_go_varint_string(content: mmap.mmap, at: int) -> tuple[bytes, int]:
    """Read a string that follows its length (a base-128 varint); return it and the position after it."""
    length = 0
    for position, byte in enumerate(content[at : at + _MAX_LENGTH_BYTES]):
        length |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            begin = at + position + 1
            return content[begin : begin + length], begin + length
    return b"", at


def _parse_go_module_lines(lines: str) -> BuildInfo | None:
    """Parse tab-separated lines: `path P`, `mod M V SUM`, `dep M V SUM` and `=> M V SUM`."""
    package = main = last = ""
    versions: dict[str, str] = {}
    for line in lines.splitlines():
        word, *fields = line.split("\t")
        if word == "path" and fields:
            package = fields[0]
        elif word in ("mod", "dep") and len(fields) >= 2:
            last = fields[0]
            versions[last] = fields[1]
            main = last if word == "mod" else main
        elif word == "=>" and len(fields) >= 2 and last:
            versions[last] = fields[1]
    return BuildInfo(package, main, versions) if package else None
