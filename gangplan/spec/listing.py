"""Finding the spec files of a workspace, and files that look like specs but would be ignored."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from gangplan.findings import Finding, Location
from gangplan.objects import is_one_line
from gangplan.rules.core import SPEC_FILE_NAME, SPEC_TEAM
from gangplan.source import MAX_DOCUMENT_BYTES
from gangplan.source.plain import PlainFolders
from gangplan.spec.near import find_closest

_LOOKED_AT = 65_536  # bytes of a hidden file that are read
# How a file in a team's folder of templates declares its kind.
_KIND = re.compile(rb"^kind:[ \t]*[\"']?JobTemplate\b", re.MULTILINE)
# Folders of files that specs mount: YAML files there are not specs.
FILES_FOLDER = "files"


def list_visible_folders(parent: Path) -> list[str]:
    """Return the names of the folders in a folder, without hidden ones."""
    with os.scandir(parent) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def list_spec_files(
    root: Path,
    specs: str,
    teams: list[str],
    findings: list[Finding],
    plain: PlainFolders = {},  # noqa: B006
) -> list[tuple[str, str]]:
    """Return every `specs`/<team>/**/*.yaml except team.yaml with its team, sorted by path.

    For folders in `plain` (source/plain.py), the names are already known.
    """
    files: list[tuple[str, str]] = []
    for team in teams:
        _list_spec_files_in_folder(root, f"{specs}/{team}", team, files, findings, plain)
    for name in sorted(os.listdir(root / specs)):
        if _is_yaml(name) and not (root / specs / name).is_dir():
            message = "the file is not in a team's folder and would be ignored"
            there = ", ".join(list_visible_folders(root / specs)[:4])
            help = f"Move it to specs/<team>/{f' (there are {there})' if there else ''}."
            findings.append(Finding(SPEC_TEAM, Location(f"{specs}/{name}"), message, help))
    return sorted(files)


def find_possible_sweeps(
    root: Path, files: list[tuple[str, str]], without: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Return the spec files (path, team) that contain the word Sweep, so that only these are parsed."""
    return [one for one, data in read_spec_bytes(root, files, without) if b"Sweep" in data]


def read_spec_bytes(
    root: Path, files: list[tuple[str, str]], without: Collection[str] = ()
) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yield spec files (path, team) with their bytes. With thousands of files, each microsecond counts."""
    top, flags = f"{root}{os.sep}", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    for one in files:
        file = one[0]
        if without and file.rpartition("/")[0] in without:
            continue
        try:
            handle = os.open(top + file, flags)
            try:
                data = os.read(handle, MAX_DOCUMENT_BYTES)
            finally:
                os.close(handle)
        except OSError:
            continue  # reported where the file is read
        yield one, data


def is_template(file: str, data: bytes) -> bool:
    """Return whether a file in a team's folder of templates declares that it is a template."""
    return PurePosixPath(file).parts[2] == "templates" and bool(_KIND.search(data))


def suggest_team_for_spec_folder(root: Path, folder: str) -> str:
    """Return the help for a folder without team.yaml: it is misspelt, or the team is new."""
    specs = root / "specs"
    teams = [name for name in list_visible_folders(specs) if (specs / name / "team.yaml").is_file()]
    if near := find_closest(folder, teams):
        return f"Did you mean specs/{near}/? Move the files there, or add a team.yaml for a new team."
    return "Add one; gangplan explain Team lists its fields."


def is_ignored(file: str) -> bool:
    """Return whether a file below specs/, by its path from the root, is read neither as a spec nor as a
    team."""
    parts = PurePosixPath(file).parts
    return FILES_FOLDER in parts[2:-1] or parts[-1].startswith(".") or not _is_yaml(parts[-1])


def _is_yaml(name: str) -> bool:
    """Return whether a file looks like YAML, unless it is hidden."""
    return name.lower().endswith((".yaml", ".yml")) and not name.startswith(".")


def _list_spec_files_in_folder(
    root: Path,
    folder: str,
    team: str,
    files: list[tuple[str, str]],
    findings: list[Finding],
    plain: PlainFolders,
) -> None:
    is_top = folder.count("/") == 1
    for name, is_dir in _list_entries_of_specs_folder(root, folder, plain):
        file = f"{folder}/{name}"
        if name.endswith(".yaml") and name[0] != "." and not is_dir and name.isascii() and name.isprintable():
            if not (is_top and name == "team.yaml"):
                files.append((file, team))
        elif name.startswith("."):
            findings += _check_hidden_file_in_specs_folder(root, folder, name)
        elif is_dir and name == FILES_FOLDER:
            findings += _check_for_spec_among_mounted_files(root, file)
        elif is_dir and not name.endswith(".yaml"):
            _list_spec_files_in_folder(root, file, team, files, findings, plain)
        elif _is_yaml(name) and not is_one_line(file):
            message, help = "the name contains an invisible character", "Rename the file."
            findings.append(Finding(SPEC_FILE_NAME, Location(file), message, help))
        elif _is_yaml(name) and not name.endswith(".yaml"):
            stem, _, ending = name.rpartition(".")
            message = f"the file ends in .{ending} and would be ignored"
            findings.append(Finding(SPEC_FILE_NAME, Location(file), message, f"Rename it to {stem}.yaml."))
        elif name.endswith(".yaml") and not (is_top and name == "team.yaml"):
            files.append((file, team))


def _list_entries_of_specs_folder(root: Path, folder: str, plain: PlainFolders) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder, and whether each is a folder."""
    if folder in plain:
        files, inside = plain[folder]
        yield from ((name, False) for name in files)
        yield from ((name, True) for name in inside)
        return
    with os.scandir(root / folder) as entries:
        yield from ((entry.name, entry.is_dir()) for entry in entries)


def _check_hidden_file_in_specs_folder(root: Path, folder: str, name: str) -> list[Finding]:
    """Report a hidden file in a format of gangplan as an error, because its author would wait for a run that
    never starts.

    Settings of other tools (.yamllint.yaml), copies that macOS makes (._job.yaml) and leftovers of editors
    (.job.yaml.swp) are not reported.
    """
    file = root / folder / name
    if (
        not name.lower().endswith((".yaml", ".yml"))
        or name.startswith(("._", ".#"))
        or not _has_spec_file_format(file)
    ):
        return []
    stem = name.lstrip(".").rpartition(".")[0] or "job"
    message = "the file is hidden and would be ignored"
    help = f"Rename it to {stem}.yaml, or remove it."
    return [Finding(SPEC_FILE_NAME, Location(f"{folder}/{name}"), message, help)]


def _has_spec_file_format(file: Path) -> bool:
    """Return whether a file has one of gangplan's formats."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return b"gangplan.dev/" in stream.read(_LOOKED_AT)


def _check_for_spec_among_mounted_files(root: Path, folder: str) -> list[Finding]:
    """Report specs in a folder of files that specs mount."""
    found = []
    for parent, names, files in os.walk(root / folder):
        names.sort()
        inside = Path(parent).relative_to(root).as_posix()
        for name in sorted(files):
            if _is_yaml(name) and _has_spec_file_format(root / inside / name):
                message = f"the file is in a folder {FILES_FOLDER}/, which holds what specs mount: it is not a spec there"
                help = f"Move it out of {folder}/, or remove it."
                found.append(Finding(SPEC_FILE_NAME, Location(f"{inside}/{name}"), message, help))
    return found
