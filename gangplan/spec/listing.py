"""The spec files of a workspace by name; files that somebody would take for specs, and that would be ignored."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from gangplan.findings import Finding, Location
from gangplan.objects import is_one_line
from gangplan.rules.core import SPEC_FILE_NAME, SPEC_TEAM

_LOOKED_AT = 65_536  # bytes of a hidden file


def folders(parent: Path) -> list[str]:
    """The names of the folders in a folder, hidden ones aside."""
    with os.scandir(parent) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def list_specs(root: Path, specs: str, teams: list[str], findings: list[Finding]) -> list[tuple[str, str]]:
    """Every `specs`/<team>/**/*.yaml but team.yaml with its team, sorted by path."""
    files: list[tuple[str, str]] = []
    for team in teams:
        _list_folder(root, f"{specs}/{team}", team, files, findings)
    for name in sorted(os.listdir(root / specs)):
        if _is_yaml(name) and not (root / specs / name).is_dir():
            message = "the file is not in a team's folder and would be ignored"
            findings.append(
                Finding(SPEC_TEAM, Location(f"{specs}/{name}"), message, "Move it to specs/<team>/.")
            )
    return sorted(files)


def _is_yaml(name: str) -> bool:
    """Whether somebody would take the file for YAML, hidden files aside."""
    return name.lower().endswith((".yaml", ".yml")) and not name.startswith(".")


def _list_folder(
    root: Path, folder: str, team: str, files: list[tuple[str, str]], findings: list[Finding]
) -> None:
    with os.scandir(root / folder) as entries:
        for entry in entries:
            file = f"{folder}/{entry.name}"
            if entry.name.startswith("."):
                findings += _hidden(root, folder, entry.name)
                continue
            if entry.is_dir() and not entry.name.endswith(".yaml"):
                _list_folder(root, file, team, files, findings)
            elif _is_yaml(entry.name) and not is_one_line(file):
                message, help = "the name contains an invisible character", "Rename the file."
                findings.append(Finding(SPEC_FILE_NAME, Location(file), message, help))
            elif _is_yaml(entry.name) and not entry.name.endswith(".yaml"):
                stem, _, ending = entry.name.rpartition(".")
                message = f"the file ends in .{ending} and would be ignored"
                findings.append(
                    Finding(SPEC_FILE_NAME, Location(file), message, f"Rename it to {stem}.yaml.")
                )
            elif entry.name.endswith(".yaml") and PurePosixPath(file).parts[2:] != ("team.yaml",):
                files.append((file, team))


def _hidden(root: Path, folder: str, name: str) -> list[Finding]:
    """An error for a hidden file that is one of gangplan's formats: its author waits for a run that never comes.

    Settings of other tools (.yamllint.yaml), copies that macOS makes (._job.yaml) and what editors leave
    (.job.yaml.swp) are none.
    """
    file = root / folder / name
    if not name.lower().endswith((".yaml", ".yml")) or name.startswith(("._", ".#")) or not file.is_file():
        return []
    with file.open("rb") as stream:
        if b"gangplan.dev/" not in stream.read(_LOOKED_AT):
            return []
    stem = name.lstrip(".").rpartition(".")[0] or "job"
    message = "the file is hidden and would be ignored"
    help = f"Rename it to {stem}.yaml, or remove it."
    return [Finding(SPEC_FILE_NAME, Location(f"{folder}/{name}"), message, help)]
