"""The flags of `gangplan init`, and whether a workspace may be created in their folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gangplan.commands.connecting import ConnectionFlags
from gangplan.errors import UserError, build_os_refusal_error
from gangplan.gitops.source import check_branch_name, check_gitops_repository_url
from gangplan.records import dataclass
from gangplan.report.escape import escape_own_line
from gangplan.spec.root import find_workspace_root_above
from gangplan.starter.answers import (
    ACCELERATORS,
    STARTER_ENGINES,
    STARTER_FORGES,
    check_choice,
    check_name,
)
from gangplan.workspace import RENDERED

# Folders that belong to a workspace: no new one is created next to any of them.
_OWN = ("specs", "overlays", RENDERED)
_ADD = "gangplan new job, team, cluster, image or waiver"


@dataclass(frozen=True, slots=True)
class InitFlags:
    """The flags. What is missing is asked for on a terminal; elsewhere it has a default if possible."""

    forge: str | None
    sync: str | None
    team: str | None
    cluster: str | None
    repository: str | None
    branch: str
    is_sample: bool
    keeps: bool
    is_quiet: bool
    accelerator: str | None = None
    observing: ConnectionFlags | None = None  # how to connect to the cluster


def check_init_flags(wanted: InitFlags, asks: bool) -> None:
    """Refuse all invalid values at once. With `asks`, what is missing is asked for later. Raises
    UserError."""
    checks: list[tuple[str, str | None, Callable[[str], str]]] = [
        ("--team", wanted.team, lambda one: check_name("team", one)),
        ("--cluster", wanted.cluster, lambda one: check_name("cluster", one)),
        ("--forge", wanted.forge, lambda one: check_choice("forge", one, STARTER_FORGES)),
        ("--sync", wanted.sync, lambda one: check_choice("sync engine", one, STARTER_ENGINES)),
        ("--accelerator", wanted.accelerator, lambda one: check_choice("accelerator", one, ACCELERATORS)),
        ("--repo", wanted.repository, check_gitops_repository_url),
        ("--branch", wanted.branch, check_branch_name),
    ]
    wrong: list[tuple[str, UserError]] = []
    for flag, value, check in checks:
        try:
            if value is not None:
                check(value)
        except UserError as bad:
            wrong.append((flag, bad))
    missing = [flag for flag, value, _ in checks[:2] if value is None and not (wanted.is_sample or asks)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        help = "Write gangplan init DIR --team nlp --cluster lab; gangplan init DIR --sample shows one."
        said = f"nothing was written: {' and '.join(missing)} {verb} missing"
        wrong.insert(0, (" and ".join(missing), UserError(said, help)))
    if len(wrong) == 1:
        raise wrong[0][1]
    if wrong:
        helps = " ".join(f"{flag}: {bad.help}" for flag, bad in wrong if bad.help)
        raise UserError("; ".join(bad.message for _, bad in wrong), helps)


def check_init_folder_argument(root: Path, folder: Path) -> None:
    """Refuse a path that is not a folder, and a folder that is a workspace or inside one.

    Raises UserError, ToolError.
    """
    name = escape_own_line(str(folder))
    try:
        os.lstat(root)
    except FileNotFoundError:
        pass
    except OSError as failed:
        raise build_os_refusal_error(f"nothing was written: {name}", failed) from None
    if os.path.lexists(root) and not root.is_dir():
        raise UserError(f"nothing was written: {name} is not a folder", "Name a new or an empty folder.")
    for part in _OWN:
        if os.path.lexists(root / part):
            is_whole = all((root / one).is_dir() for one in ("specs", "overlays"))
            help = f"To add to a workspace: {_ADD}."
            if not is_whole:
                help = "It alone is not a workspace: move it away, or name another folder."
            raise UserError(f"nothing was written: {name} has {part}/ already", help)
    try:
        around = find_workspace_root_above(root.parent)
    except UserError:
        return
    message = f"nothing was written: {name} is inside the workspace {escape_own_line(str(around))}"
    raise UserError(message, f"To add to that: {_ADD}; for another workspace, name a folder outside of it.")
