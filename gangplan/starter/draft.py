"""Checking files before they are written, in a copy of what they depend on."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gangplan.source import MAX_DOCUMENT_BYTES
from gangplan.spec.listing import FILES_FOLDER
from gangplan.spec.root import JOB_TEMPLATES
from gangplan.starter.write import write_new_files
from gangplan.workspace import OVERLAYS, SPECS

# What a spec depends on, besides the files of the teams.
_READ = (OVERLAYS, "images", "policies", "schemas", JOB_TEMPLATES)
# Fields of a spec that name other jobs of its team, at any depth: a template has them below `job`.
_JOBS_NAMED = re.compile(r"\b(?:after|near|apart)['\"]?[ \t]*:")


@contextmanager
def create_draft_copy_of_workspace(
    root: Path | None, files: Mapping[str, str], specs: Collection[str] = ()
) -> Iterator[Path]:
    """Yield a temporary workspace with the files, and with everything of the workspace at `root` except its
    specs.

    Only these specs are copied: those that are named, those of a team with a file that names other jobs, and
    the files that a spec names next to it. A file that also exists at `root` is taken from `files`.
    """
    with tempfile.TemporaryDirectory(prefix="gangplan-") as name:
        folder = Path(name).resolve() / "workspace"
        folder.mkdir()
        for part in (SPECS, OVERLAYS):
            (folder / part).mkdir()
        if root is not None:
            _copy_spec_dependencies_to_draft(root, folder)
            _copy_named_specs_to_draft(root, folder, specs)
            templates = [
                *(folder / JOB_TEMPLATES).rglob("*.yaml"),
                *(folder / SPECS).glob("*/templates/**/*.yaml"),
            ]
            names_jobs = any(
                _JOBS_NAMED.search(one.read_text(errors="replace")) for one in templates if one.is_file()
            )
            for path, text in files.items():
                if _JOBS_NAMED.search(text) or (names_jobs and "template" in text):
                    for team in _list_teams_of_draft_file(root, path):
                        _copy_team_specs_to_draft(root, folder, team)
                if path.startswith(f"{SPECS}/") and _may_name_nearby_files(text):
                    _copy_files_beside_specs_to_draft(root, folder, Path(path).parent)
        for path in files:
            (folder / path).unlink(missing_ok=True)
        write_new_files(folder, files)
        yield folder


def _copy_spec_dependencies_to_draft(root: Path, folder: Path) -> None:
    """Copy what specs depend on.

    Links stay links, so that the copy is refused because of one, as the workspace is.
    """
    for part in _READ:
        if (root / part).is_dir():
            shutil.copytree(root / part, folder / part, symlinks=True, dirs_exist_ok=True)
    files = [*root.glob(f"{SPECS}/*/team.yaml"), *root.glob(f"{SPECS}/*/templates/**/*.yaml")]
    for file in sorted(files):
        target = folder / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target, follow_symlinks=False)


def _copy_named_specs_to_draft(root: Path, folder: Path, specs: Collection[str]) -> None:
    """Copy some specs, and the files next to those that name some."""
    beside = set()
    for name in specs:
        target = folder / name
        data = (root / name).read_bytes()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if _may_name_nearby_files(data.decode(errors="replace")):
            beside.add(Path(name).parent)
    for where in sorted(beside):
        _copy_files_beside_specs_to_draft(root, folder, where)


def _may_name_nearby_files(text: str) -> bool:
    """Return whether a spec may name files next to it; the schema in its first line does not count."""
    return any("./" in line for line in text.splitlines() if not line.startswith("#"))


def _copy_files_beside_specs_to_draft(root: Path, folder: Path, where: Path) -> None:
    """Copy what a spec in a folder may name: the files there that are not specs, and all in `files/`."""
    if not (root / where).is_dir():
        return  # the team does not exist yet
    beside = (path for path in (root / where).iterdir() if path.suffix not in (".yaml", ".yml"))
    for path in sorted([*beside, *(root / where / FILES_FOLDER).rglob("*")]):
        target = folder / path.relative_to(root)
        if (
            path.is_symlink()
            or not path.is_file()
            or path.stat().st_size > MAX_DOCUMENT_BYTES
            or target.exists()
        ):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target, follow_symlinks=False)


def _list_teams_of_draft_file(root: Path, path: str) -> list[str]:
    """Return the team of a file, or all teams for a template that any may use."""
    top, owner, *_ = Path(path).parts
    return [owner] if top == SPECS else sorted(one.name for one in (root / SPECS).iterdir() if one.is_dir())


def _copy_team_specs_to_draft(root: Path, folder: Path, team: str) -> None:
    """Copy what a job of a team may come after."""
    for file in sorted((root / SPECS / team).rglob("*.yaml")):
        target = folder / file.relative_to(root)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target, follow_symlinks=False)
