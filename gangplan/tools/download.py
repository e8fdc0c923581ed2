"""Download a release archive and unpack one program from it.

Nothing in an archive is read before its SHA-256 has been checked, and only the requested member is unpacked.
"""

from __future__ import annotations

import hashlib
import io
import queue
import shutil
import tarfile
import threading
import time
import urllib.error
import urllib.request
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

from gangplan.errors import ToolError
from gangplan.tools.pins import Archive

#: Seconds to connect, and between two packets.
CONNECT_TIMEOUT_S = 3.0

#: Seconds until the first byte, including name look-up, every address and every redirect. No time-out applies
#: to the system's name look-up, hence the thread.
FIRST_BYTE_TIMEOUT_S = 6.0

#: Seconds for the whole archive: 8 MB at 64 kB/s.
TRANSFER_TIMEOUT_S = 120.0

#: The archives are 5 to 8 MB, the programs 14 to 30 MB.
_MAX_ARCHIVE_BYTES = 64 << 20
_MAX_PROGRAM_BYTES = 256 << 20

_CHUNK_BYTES = 1 << 16


def fetch_tool_executable(archive: Archive, name: str, folder: Path) -> Path:
    """Download and verify an archive, unpack its member `name` into `folder`, and return the executable file.

    Raises ToolError.
    """
    content = _fetch_tool_release_archive(archive.url)
    digest = hashlib.sha256(content).hexdigest()
    if digest != archive.sha256:
        raise ToolError(
            f"{archive.url} was refused: its SHA-256 is {digest}, not {archive.sha256}",
            "a proxy may have answered in its place",
        )
    target = folder / name
    try:
        _unpack_program_file(content, name, target)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ToolError(f"{archive.url} is not a readable archive: {error}") from error
    target.chmod(0o755)
    return target


def _fetch_tool_release_archive(url: str) -> bytes:
    response = _open_download_url_with_timeout(url)
    deadline = time.monotonic() + TRANSFER_TIMEOUT_S
    content = bytearray()
    try:
        with response:
            while chunk := response.read(_CHUNK_BYTES):
                content += chunk
                if len(content) > _MAX_ARCHIVE_BYTES:
                    raise ToolError(f"{url} is larger than {_MAX_ARCHIVE_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise ToolError(f"{url} took longer than {TRANSFER_TIMEOUT_S:g} s")
    except (OSError, HTTPException) as error:
        raise ToolError(f"{url} broke off after {len(content)} bytes: {error}") from error
    return bytes(content)


def _open_download_url_with_timeout(url: str) -> IO[bytes]:
    """Return the answer to a request once it begins. Raises ToolError after a few seconds at most."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urllib.request.urlopen(url, timeout=CONNECT_TIMEOUT_S))
        except (OSError, HTTPException, ValueError) as error:
            answers.put(error)

    # A daemon thread: if it hangs in a name look-up, neither we nor the interpreter's exit wait for it.
    threading.Thread(target=ask, daemon=True, name="download").start()
    try:
        answer = answers.get(timeout=FIRST_BYTE_TIMEOUT_S)
    except queue.Empty:
        raise ToolError(f"{url} did not answer within {FIRST_BYTE_TIMEOUT_S:g} s") from None
    if isinstance(answer, Exception):
        reason = getattr(answer, "reason", None) or answer
        raise ToolError(f"{url} cannot be downloaded: {reason}") from answer
    stream: IO[bytes] = answer
    return stream


def _unpack_program_file(content: bytes, name: str, target: Path) -> None:
    """Copy one regular file out of a .tar.gz; paths, links, owners and modes in the archive are ignored."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for member in archive:
            source = archive.extractfile(member) if member.isreg() and member.name == name else None
            if source is None:
                continue
            if member.size > _MAX_PROGRAM_BYTES:
                raise ToolError(f"{name} in the archive is larger than {_MAX_PROGRAM_BYTES >> 20} MiB")
            with source, target.open("xb") as out:
                shutil.copyfileobj(source, out)
            return
    raise ToolError(f"there is no file {name!r} in the archive")
