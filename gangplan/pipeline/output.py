"""The folder of `render --output`: a render swaps it in as a whole and removes what it no longer renders."""

from __future__ import annotations

import os
from pathlib import Path

from gangplan.errors import UserError
from gangplan.workspace import READ_FOLDERS, RENDERED

# Folders of a cluster in the tree. What is elsewhere below an output folder is not this workspace's.
_PARTS = frozenset({"platform", "tenants", "runs"})


def check_output_folder(root: Path, tree: Path) -> None:
    """Refuse a folder whose swap would remove or spoil something else. Raises UserError.

    `root` is the workspace, `tree` the folder; neither needs to be resolved.
    """
    base, real = Path(os.path.realpath(root)), Path(os.path.realpath(tree))
    inside = real.relative_to(base).parts if real.is_relative_to(base) else ()
    if ".git" in real.parts:
        message = f"{tree} is part of Git's own folder"
    elif base.is_relative_to(real):
        message = f"{tree} holds the workspace, and a render replaces the folder as a whole"
    elif inside and inside[0] in READ_FOLDERS:
        message = f"{tree} cannot be written: {inside[0]}/ holds what is checked"
    elif inside and inside[0] == RENDERED and inside != (RENDERED,):
        message = f"{tree} cannot be written: {RENDERED}/ holds what is applied"
    elif _is_workspace_or_checkout(real):
        message = f"{tree} is a checkout or a workspace, and a render replaces the folder as a whole"
    elif Path.cwd().is_relative_to(real):
        message = f"{tree} is the current folder, and a render replaces it as a whole"
    else:
        return
    raise UserError(message, "Name a folder of its own, such as --output build/manifests.")


def _is_workspace_or_checkout(folder: Path) -> bool:
    return (folder / ".git").exists() or all((folder / name).is_dir() for name in ("specs", "overlays"))


def is_rendered_path(path: str) -> bool:
    """Return whether a path has the form of a file of the tree: CLUSTER/runs/TEAM/NAME.yaml."""
    return path.split("/")[1:2] != [] and path.split("/")[1] in _PARTS
