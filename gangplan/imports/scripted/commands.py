"""Decide what becomes of a simple command of a batch script."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gangplan.imports.scripted import idioms
from gangplan.imports.scripted.assign import SCRIPT_ASSIGNMENT
from gangplan.imports.scripted.hosts import build_shell_command
from gangplan.imports.scripted.items import ItemKind, ScriptItem
from gangplan.imports.scripted.launch import (
    is_batch_script_launch,
    skip_shell_command_prefixes,
    strip_scheduler_start,
)
from gangplan.imports.scripted.options import is_shell_option_command
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.pieces import ExpandedWord, WordPiece
from gangplan.plan.launchers import program_name_of
from gangplan.plan.launchers.shell import ShellWord

# Files that set up software which images bring. A bashrc of an application, such as OpenFOAM's, is not among them.
_ENVIRONMENTS = re.compile(
    r"activate|(?:^|/)\.(?:bashrc|bash_profile|zshrc|profile)$|^/etc/(?:bashrc|profile)|modules?\b|modules\.sh|conda\.sh|mamba|lmod|setvars|/init/|vars\.sh|spack|cudaenv|compilervars"
)


def determine_command_kind(
    part: ScriptCommand, texts: list[str], functions: Collection[str]
) -> tuple[ItemKind, str]:
    """Return the kind of a simple command, and why it is dropped."""
    while texts[:1] and (
        texts[0] in ("sudo", "builtin", "!")
        or skip_shell_command_prefixes(texts)
        or SCRIPT_ASSIGNMENT.match(texts[0])
    ):
        texts = texts[max(1, skip_shell_command_prefixes(texts)) :]
    if not texts:
        return "drop", idioms.DROPPED_COMMANDS["set"]
    name = program_name_of(texts[0])
    if is_batch_script_launch(texts):
        return "launch", ""
    rest = strip_scheduler_start(texts)
    name = program_name_of(rest[0]) if rest else name
    if idioms.is_image_work(rest):
        return "drop", "the catalog names the image of a run"
    if name in ("source", ".") and len(rest) > 1 and not _ENVIRONMENTS.search(rest[1]):
        return "file", f"what {rest[1]} sets is not read here"
    if name == "cd":
        return "cd", ""
    if is_shell_option_command(texts):
        return "option", idioms.DROPPED_COMMANDS["set"]
    writes = is_writing_file(part)
    if texts[0].startswith("[[ ") or (
        name in idioms.DROPPED_COMMANDS and not (writes and name in idioms.PRINTING_COMMANDS)
    ):
        return "drop", idioms.DROPPED_COMMANDS.get(name, idioms.DROPPED_COMMANDS["set"])
    is_run = name == "uv" and rest[1:2] == ["run"]
    if (
        (name in idioms.PREPARATION_COMMANDS and not is_run)
        or name in idioms.PRINTING_COMMANDS
        or name in functions
    ):
        return "keep", ""
    return "program", ""


def find_pipeline_lead(
    parts: Sequence[ScriptCommand], kinds: Sequence[tuple[ItemKind, str]]
) -> tuple[ScriptCommand, bool]:
    """Return the command of a pipeline without a launch that decides what becomes of it.

    It is the first, unless that only prints what a later one works with or writes to a file. A program that
    reads what others write belongs together with them; that is returned too.
    """
    numbers = [number for number, (kind, _) in enumerate(kinds) if kind in ("keep", "program")]
    if not numbers or kinds[0][1] == idioms.DROPPED_COMMANDS["squeue"]:
        return parts[0], False
    programs = [number for number in numbers if kinds[number][0] == "program"]
    return parts[numbers[0]], any(number > 0 for number in programs)


def is_output_filter(part: ScriptCommand) -> bool:
    """Return whether a command in a pipe only changes what is printed."""
    name = program_name_of(part.texts[0]) if part.words else ""
    is_edit = name == "sed" and any(re.match(r"-\w*i|--in-place", one) for one in part.texts[1:])
    return name in idioms.FILTER_COMMANDS and not is_edit


def is_writing_file(part: ScriptCommand) -> bool:
    """Return whether what a command prints goes to a file."""
    return any(
        one.operator.lstrip("0123456789") in (">", ">>", "&>", ">|")
        and one.target not in ("/dev/null", "/dev/stderr", "/dev/stdout")
        for one in part.redirects
    )


def make_item_whole(item: ScriptItem, script: str) -> None:
    """Make an item the command of a shell, for a script that starts nothing else."""
    text = script[item.begin : item.end].strip()
    item.has_program = True
    item.fields = build_shell_command([ExpandedWord((WordPiece(text),))])
    item.words = [ShellWord(text, item.begin, item.end)] * len(item.fields)
