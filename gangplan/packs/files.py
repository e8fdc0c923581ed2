"""Check policies/ for files that nothing reads, and for altered copies of gangplan's own packs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from gangplan import policies as shipped
from gangplan.findings import Finding, Location
from gangplan.packs.read import NON_PACK_FOLDERS, POLICIES_FOLDER, find_shipped_packs_folder
from gangplan.rules.policy import PACK_INVALID, POLICY_FILE_IGNORED


def check_files_outside_packs(root: Path) -> list[Finding]:
    """Report what is in policies/ and would be silently ignored."""
    top = root / POLICIES_FOLDER
    if not top.is_dir():
        return [_build_non_folder_finding(POLICIES_FOLDER)] if top.exists() else []
    theirs = {name for name in shipped.BUILTIN_PACKS if _is_theirs(top / name)}
    findings = [
        finding
        for name in shipped.BUILTIN_PACKS
        if name not in theirs
        for finding in _check_copied_pack(top / name, name)
    ]
    packs = {path.parent.name for path in top.glob("*/pack.yaml") if path.is_file()}
    for folder, folders, files in os.walk(top):
        parts = Path(folder).relative_to(top).parts
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if not parts:
            folders[:] = [name for name in folders if name not in theirs]
            findings += [
                _build_non_folder_finding(f"{POLICIES_FOLDER}/{name}")
                for name in NON_PACK_FOLDERS
                if name in files
            ]
        for name in sorted([*files, *folders]):
            if name.lower().endswith((".yaml", ".yml")) and not name.startswith("."):
                findings += _check_ignored_policy_file(packs, (*parts, name)) or _check_pack_file_is_regular(
                    folder, (*parts, name)
                )
    return findings


def _build_non_folder_finding(shown: str) -> Finding:
    help = f"Make {shown} a folder; policies are separate files below it."
    return Finding(
        POLICY_FILE_IGNORED, Location(shown), f"{shown} is not a folder and would be ignored", help
    )


def _check_pack_file_is_regular(folder: str, parts: tuple[str, ...]) -> list[Finding]:
    """Return a finding if a name is not a regular file but a folder, a pipe or a link to a device."""
    if os.path.isfile(os.path.join(folder, parts[-1])) or parts[:1] == (
        "waivers",
    ):  # spec/waiver_files.py reports it
        return []
    where = Location("/".join((POLICIES_FOLDER, *parts)))
    help = "Put a regular file in its place, or remove it."
    return [Finding(POLICY_FILE_IGNORED, where, "this is not a regular file and would be ignored", help)]


def _is_theirs(folder: Path) -> bool:
    """Return whether a folder is gangplan's own, because the workspace is gangplan's repository."""
    return folder.is_dir() and folder.samefile(find_shipped_packs_folder() / folder.name)


def _check_copied_pack(folder: Path, name: str) -> Iterator[Finding]:
    """Report a copy of one of gangplan's packs that differs from it; gangplan always reads its own."""
    if not (folder / "pack.yaml").is_file():
        return
    mine, theirs = _read_yaml_files(folder), _read_yaml_files(find_shipped_packs_folder() / name)
    for file in sorted({*mine, *theirs}):
        if mine.get(file) != theirs.get(file):
            is_not = "is missing" if file not in mine else "is more" if file not in theirs else "differs"
            message = f"gangplan has a pack '{name}' of its own, and this one differs: {file} {is_not}"
            help = "Choose another name for the folder; params and actions in cluster.yaml change gangplan's."
            yield Finding(PACK_INVALID, Location(f"{POLICIES_FOLDER}/{name}/pack.yaml", 1, 1), message, help)
            return


def _read_yaml_files(folder: Path) -> dict[str, bytes]:
    with os.scandir(folder) as entries:
        files = [one for one in entries if one.name.endswith(".yaml") and one.is_file()]
    return {one.name: Path(one.path).read_bytes() for one in files}


def _check_ignored_policy_file(packs: Collection[str], parts: tuple[str, ...]) -> list[Finding]:
    """Return a finding if nothing reads a file below policies/, judged by its path. `packs` have a
    pack.yaml."""
    *folders, name = parts
    stem, _, ending = name.rpartition(".")
    shown = "/".join((POLICIES_FOLDER, *parts))
    home = "/".join((POLICIES_FOLDER, *folders))
    message = help = ""
    if folders == ["waivers"]:
        return []  # spec/waiver_files.py reports it
    if folders and folders[0] in NON_PACK_FOLDERS and len(folders) > 1:
        message, help = _describe_nested_file(f"{POLICIES_FOLDER}/{folders[0]}/")
    elif folders and folders[0] not in NON_PACK_FOLDERS and folders[0] not in packs:
        pack = f"{POLICIES_FOLDER}/{folders[0]}"
        message = f"{pack}/ has no pack.yaml: the file would be ignored"
        help = (
            f"Add {pack}/pack.yaml; or move the file to {POLICIES_FOLDER}/, where it holds on every cluster."
        )
        if name == "pack.yml":
            help = f"Rename it to {home}/pack.yaml."
    elif len(folders) > 1 and folders[1:] != ["tests"]:
        message, help = _describe_nested_file(f"{POLICIES_FOLDER}/{folders[0]}/")
    elif ending != "yaml":
        message, help = f"the file ends in .{ending} and would be ignored", f"Rename it to {stem}.yaml."
    return [Finding(POLICY_FILE_IGNORED, Location(shown, 1, 1), message, help)] if message else []


def _describe_nested_file(home: str) -> tuple[str, str]:
    return f"the file is in a folder below {home} and would be ignored", f"Move it to {home}."
