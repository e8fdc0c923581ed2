"""Programs for tests: fakes from the folder next to this file, and binaries that carry only a version."""

from __future__ import annotations

import shutil
from pathlib import Path

from gangplan.tools.pins import Tool

FAKES = Path(__file__).parent / "fakes"


def fake(kind: str, name: str, folder: Path, **files: str) -> Path:
    """Put a fake into `folder` under a program's name, with the files that it reads; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text)
    path = folder / name
    shutil.copyfile(FAKES / kind, path)
    path.chmod(0o755)
    return path


def go_binary(package: str, main: str, version: str, *more: str) -> bytes:
    """Return a file with the build information of a Go program and nothing that could be run.

    Layout: Go's debug/buildinfo; a header on a multiple of 16 bytes, then two strings with their lengths.
    """
    lines = [f"path\t{package}", f"mod\t{main}\t{version}\th1:abc=", *more]
    text = b"\x01" * 16 + ("\n".join(lines) + "\n").encode() + b"\x02" * 16
    header = b"\xff Go buildinf:" + bytes([8, 2]) + bytes(16)
    return b"\x7fELF" + bytes(44) + header + _string(b"go1.26.0") + _string(text) + bytes(64)


def binary_of(tool: Tool, version: str, path: Path) -> Path:
    """Write a file that claims to be a tool at a version, as `go install` leaves it; it cannot be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    module = tool.package.split("/cmd/")[0]
    path.write_bytes(go_binary(tool.package, module, f"v{version}"))
    path.chmod(0o755)
    return path


def _string(content: bytes) -> bytes:
    length, out = len(content), b""
    while length >= 0x80:
        out += bytes([length & 0x7F | 0x80])
        length >>= 7
    return out + bytes([length]) + content
