"""A file that a flag names: checked before the work starts, and written as a whole."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from gangplan.errors import UserError, build_os_refusal_error
from gangplan.records import dataclass
from gangplan.workspace import RENDERED

# What these folders of a workspace contain is input, or written only by other commands.
_NOT_FOR_OUTPUT = ("specs", "overlays", "images", "policies", "schemas", "jobtemplates", RENDERED)
# Names of open files, which are never replaced. Files in /dev/shm are ordinary files.
_OPEN = ("/dev/fd/", "/dev/std", "/proc/")


@dataclass(frozen=True, slots=True)
class OutFile:
    """A file to be written: what it is for (`the report`), its name as given, and the target of its links."""

    what: str
    name: str
    target: Path
    is_plain: bool = (
        True  # an existing or a new file; otherwise a pipe or a device, which takes any number of texts
    )

    def write(self, text: str) -> None:
        """Write the text as a whole or not at all; write directly to a pipe or a device.

        Raises ToolError, and UserError for a name that is too long.
        """
        data = text.encode("utf-8", "backslashreplace")
        try:
            if not self.is_plain:
                with open(os.open(self.target, os.O_WRONLY | os.O_APPEND), "wb") as stream:
                    stream.write(data)
                return
            aside = self.target.with_name(f".gangplan.{os.getpid()}")
            try:
                aside.write_bytes(data)
                os.replace(aside, self.target)
            finally:
                with suppress(OSError):
                    aside.unlink()
        except OSError as bad:
            raise build_os_refusal_error(f"{self.what} {self.name} was not written", bad) from None


def resolve_output_file_flag(name: str, root: Path, what: str) -> OutFile:
    """Return the file with a name.

    Raises UserError if it cannot be written, or is in a folder that belongs to the workspace `root`.
    """
    if not name:
        raise UserError(f"{what} cannot be written: the name is empty", "Name a file.")
    path = os.path.abspath(name)
    target = Path(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = 0
    except OSError as bad:
        raise UserError(f"{what} cannot be written to {name}: {bad.strerror}", "Name another file.") from None
    if stat.S_ISDIR(mode):
        raise UserError(f"{what} cannot be written: {name} is a folder", f"Name a file: {name}/report.")
    if mode and (path.startswith(_OPEN) or not stat.S_ISREG(mode)):
        return OutFile(what, name, Path(path), is_plain=False)
    _check_output_file_writable(what, name, target, root)
    return OutFile(what, name, target)


def _check_output_file_writable(what: str, name: str, target: Path, root: Path) -> None:
    """Refuse a plain file that must not or cannot be written. Raises UserError."""
    if not target.parent.is_dir():
        folder = Path(name).parent
        raise UserError(
            f"{what} cannot be written: there is no folder {folder}", f"Create it first: mkdir -p {folder}."
        )
    inside = target.relative_to(root).parts[:1] if target.is_relative_to(root) else ()
    if inside and inside[0] in _NOT_FOR_OUTPUT:
        message = f"{what} cannot be written to {name}: {inside[0]}/ holds what is checked"
        raise UserError(message, "Name a file in another folder.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise UserError(f"{what} cannot be written: {name} may not be changed", "Name another file.")
