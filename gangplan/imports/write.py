"""Write specs and changed files to disk: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gangplan.errors import ToolError, UserError, build_os_refusal_error
from gangplan.starter.write import replace_file, write_new_files


def write_imported_files(
    root: Path, new: Mapping[str, str], before: Mapping[str, bytes | None], after: Mapping[str, bytes]
) -> None:
    """Write the new files, and replace the changed ones.

    Raises UserError if a new file exists or a changed one is a link, ToolError if another file was changed
    meanwhile or the system refuses; then everything is as it was.
    """
    for name in after:
        path = root / name
        if path.is_symlink():
            raise UserError(f"{name} is a link; nothing was written", "Replace it with a file.")
        if (path.read_bytes() if path.is_file() else None) != before.get(name):
            raise ToolError(f"{name} was changed meanwhile; nothing was written", "Run the command again.")
    made = {name: data.decode() for name, data in after.items() if before.get(name) is None}
    write_new_files(root, {**new, **made})
    replaced: list[str] = []
    try:
        for name, data in after.items():
            if name not in made:
                replace_file(root / name, data)
                replaced.append(name)
    except BaseException as failed:
        for name in replaced:
            with suppress(OSError):
                replace_file(root / name, before[name] or b"")
        for name in (*new, *made):
            with suppress(OSError):
                (root / name).unlink()
        if isinstance(failed, OSError):
            raise build_os_refusal_error(f"nothing was written: {failed.filename}", failed) from None
        raise
