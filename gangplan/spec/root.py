"""Finding the folder of the workspace."""

from __future__ import annotations

import os
from pathlib import Path

from gangplan.errors import UserError

SPECS, OVERLAYS, JOB_TEMPLATES = "specs", "overlays", "jobtemplates"
RENDERED = "rendered"


def find_workspace_root_above(start: Path) -> Path:
    """Return the nearest folder at or above `start` that contains specs/ and overlays/. Raises UserError."""
    for folder in (start, *start.parents):
        if (folder / SPECS).is_dir() and (folder / OVERLAYS).is_dir():
            return folder
    raise UserError(
        "nothing was checked: this is not a gangplan workspace (no folder above has specs/ and overlays/)",
        "Go to the repository that holds your specs, name it with --workspace DIR, or make one: gangplan init DIR.",
    )


def find_path_from_root(root: Path, start: Path, name: str) -> str:
    """Return the path of a file from the resolved root, `name` being relative to `start`.

    A file outside begins with `../`. A shell's $PWD may lead to the workspace through links.
    """
    path = os.path.normpath(start / name)
    found = os.path.relpath(path, root)
    if found.startswith(".."):
        found = os.path.relpath(os.path.realpath(path), root)
    return found.replace(os.sep, "/")


def locate_workspace_root(folder: Path | None) -> Path:
    """Return the workspace that contains a folder (default: the current one). Raises UserError."""
    start = (folder or Path.cwd()).resolve()
    if not start.is_dir():
        raise UserError(
            f"nothing was checked: {folder} is not a folder",
            "Name the folder that holds specs/ and overlays/.",
        )
    return find_workspace_root_above(start)
