"""Files of `gangplan gitops`: printed, written into a folder, or compared with the existing ones."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from gangplan.commands.common import format_plural
from gangplan.errors import Exit, UserError, build_os_refusal_error
from gangplan.gitops.made import PIPELINE_COMMAND, parse_gitops_command_header


def write_or_print_files(
    files: Mapping[str, str], output: str | None, is_check: bool, kept: bool = False
) -> Exit:
    """Print the files, or write them below the folder `output`; with `is_check`, only compare.

    `kept`: files of the same command that it no longer makes may exist. Raises UserError if a file of
    somebody else is in the way, ToolError if one cannot be written.
    """
    if output in (None, "-"):
        if is_check:
            raise UserError("--check compares files, and none are named", "Name their folder: -o DIR.")
        _print_gitops_files(files)
        return Exit.CLEAN
    folder = Path(str(output))
    if not is_check:
        check_output_flag_paths_free(files, folder)
    files = _drop_taken_over_files(files, folder)
    over = [] if kept else _find_left_over_gitops_files(files, folder)
    if is_check:
        return _compare_gitops_files_for_check_flag(files, folder, over)
    for path, text in files.items():
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as bad:
            raise build_os_refusal_error(f"{target} was not written", bad) from None
        sys.stdout.write(f"wrote {target}\n")
    for path in over:
        sys.stdout.write(f"{folder / path} is left over: remove it\n")
    return Exit.CLEAN


def check_output_flag_paths_free(files: Mapping[str, str], folder: Path) -> None:
    """Refuse to write if something is in the way of one of the files. Raises UserError."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"nothing was written: {folder} is not a folder", "Name a folder: -o DIR.")
    own = _find_taken_over_files(files, folder)
    for path, text in files.items():
        if path not in own:
            _refuse_file_not_made_by_gitops_command(folder, path, text)


def _drop_taken_over_files(files: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Return the files without those that somebody took over."""
    own = _find_taken_over_files(files, folder)
    for path in own:
        sys.stderr.write(f"{folder / path} is yours, because its first line is gone: it was left alone\n")
    return {path: text for path, text in files.items() if path not in own}


def _find_taken_over_files(files: Mapping[str, str], folder: Path) -> list[str]:
    """Return the files whose first line somebody removed; none unless other files still have theirs."""
    made = [path for path in files if parse_gitops_command_header(_read_text_or_empty(folder / path))]
    return [path for path in files if path not in made and (folder / path).is_file()] if made else []


def _print_gitops_files(files: Mapping[str, str]) -> None:
    """Print one file as it is; several, each below a line with its path, YAML as one stream."""
    texts = list(files.values())
    if len(files) > 1:
        texts = [f"# {path}\n{text}" for path, text in files.items()]
    sys.stdout.write("---\n".join(texts))


def _refuse_file_not_made_by_gitops_command(folder: Path, path: str, text: str) -> None:
    """Refuse to write over a file that `gangplan gitops` did not make, one of another workspace, and through
    a link."""
    target = folder / path
    if target.is_symlink():
        raise UserError(f"nothing was written: {target} is a link", "Replace it with a file.")
    before = parse_gitops_command_header(_read_text_or_empty(target))
    if before and (other := _find_workspace_folder(before)) != _find_workspace_folder(
        parse_gitops_command_header(text) or []
    ):
        help = "Write into another folder (-o) and join the two; remove the file if that workspace is gone."
        raise UserError(
            f"nothing was written: {target} is that of the workspace in {other or 'the top folder'}", help
        )
    if target.is_dir():
        raise UserError(f"nothing was written: {target} is a folder", "Move it away.")
    if before and before[0] != (parse_gitops_command_header(text) or [""])[0]:
        help = "Write into another folder: -o DIR."
        raise UserError(f"nothing was written: {target} was made by `gangplan gitops {before[0]}`", help)
    if os.path.lexists(target) and before is None:
        help = "Move it away, or write into another folder (-o) and take over what you need."
        raise UserError(f"nothing was written: {target} exists and was made by hand", help)


def _find_workspace_folder(words: Sequence[str]) -> str:
    """Return the folder of the workspace in its repository, from a file's command; empty for the top."""
    flags = dict(pairwise(words))
    place = flags.get("--workspace") or flags.get("--prefix") or ""
    return "" if place == "." else place


def _compare_gitops_files_for_check_flag(files: Mapping[str, str], folder: Path, over: list[str]) -> Exit:
    stale = [
        f"{folder / path} is {'stale' if (folder / path).is_file() else 'missing'}"
        for path, text in files.items()
        if _read_text_or_empty(folder / path) != text
    ]
    for line in (*stale, *(f"{folder / path} is left over: remove it" for path in over)):
        sys.stdout.write(f"{line}\n")
    if stale:
        words = next(filter(None, map(parse_gitops_command_header, files.values())), [])
        command = shlex.join(
            ["gangplan", *(("gitops",) if words[:1] != [PIPELINE_COMMAND] else ()), *words, "-o", str(folder)]
        )
        sys.stdout.write(f"{format_plural(len(stale), 'file')} to write again: {command}\n")
    if over:
        command = shlex.join(["git", "rm", *(str(folder / path) for path in over)])
        sys.stdout.write(f"{format_plural(len(over), 'file')} to remove: {command}\n")
    return Exit.FINDINGS if stale or over else Exit.CLEAN


def _find_left_over_gitops_files(files: Mapping[str, str], folder: Path) -> list[str]:
    """Return other files of the same command: of a cluster that is gone, or a flag that was removed."""
    names = {words[0] for text in files.values() if (words := parse_gitops_command_header(text))}
    folders = {os.path.dirname(path) for path in files}
    found = []
    for inner in sorted(folders):
        for path in sorted((folder / inner).glob("*.y*ml")):
            if not path.is_file():
                continue
            name = os.path.join(inner, path.name)
            words = parse_gitops_command_header(_read_text_or_empty(path))
            if name not in files and words and words[0] in names:
                found.append(name)
    return found


def _read_text_or_empty(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
