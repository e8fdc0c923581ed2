"""Writing new files: all of them or none, and never over existing ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gangplan.errors import UserError, build_os_refusal_error


def list_existing_files(root: Path, files: Mapping[str, str]) -> list[str]:
    """Return the files that exist already, including broken links."""
    return sorted(path for path in files if os.path.lexists(root / path))


def write_new_files(root: Path, files: Mapping[str, str]) -> None:
    """Write all files below `root`, which is created; on any failure, no file stays, nor a folder made for
    them.

    Raises UserError if a file exists or a folder on the way is not a folder, ToolError if the system refuses.
    """
    files_made: list[Path] = []
    folders_made: list[Path] = []
    try:
        for name, text in files.items():
            _make_folder_of_new_file((root / name).parent, root, folders_made)
            with (root / name).open("xb") as stream:
                files_made.append(root / name)
                stream.write(text.encode())
    except BaseException as failed:
        for path in files_made:
            with suppress(OSError):
                path.unlink()
        for path in reversed(folders_made):
            with suppress(OSError):
                path.rmdir()
        if isinstance(failed, FileExistsError):
            raise UserError(
                f"{failed.filename} exists; nothing was written", "Choose another name."
            ) from None
        if isinstance(failed, OSError):
            raise build_os_refusal_error(f"nothing was written: {failed.filename or root}", failed) from None
        raise


def replace_file(target: Path, data: bytes) -> None:
    """Replace the bytes of a file atomically, and keep its permissions. Raises OSError."""
    aside = target.with_name(f".gangplan.{os.getpid()}")
    try:
        aside.write_bytes(data)
        aside.chmod(target.stat().st_mode & 0o7777)
        os.replace(aside, target)
    finally:
        with suppress(OSError):  # on a read-only file system this fails, too, and would hide why
            aside.unlink()


def _make_folder_of_new_file(folder: Path, root: Path, made: list[Path]) -> None:
    """Create a folder and those above it. Raises UserError.

    A link on the way below `root` could lead anywhere, so it is refused.
    """
    missing: list[Path] = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    way = [folder, *folder.parents]
    below = way[: way.index(root)] if root in way else []
    for one in below:
        if one.is_symlink():
            raise UserError(f"{one} is a link; nothing was written", "Replace it with a folder.")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; nothing was written", "Move it away, or write elsewhere.")
    for one in reversed(missing):
        one.mkdir()
        made.append(one)
