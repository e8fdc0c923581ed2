"""Decide what becomes of a simple command of a batch script."""

from __future__ import annotations

import re
from collections.abc import Collection

from gangplan.imports.scripted import idioms
from gangplan.imports.scripted.assign import SCRIPT_ASSIGNMENT
from gangplan.imports.scripted.items import ItemKind
from gangplan.imports.scripted.launch import (
    is_batch_script_launch,
    skip_shell_command_prefixes,
    strip_scheduler_start,
)
from gangplan.imports.scripted.options import is_shell_option_command
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.plan.launchers import program_name_of

_ENVIRONMENTS = re.compile(
    r"activate|bashrc|bash_profile|zshrc|profile|modules?\b|modules\.sh|conda\.sh|mamba|lmod|setvars|/init/|vars\.sh|spack|cudaenv|compilervars"
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
    writes = any(
        one.operator.lstrip("0123456789") in (">", ">>", "&>", ">|") and one.target != "/dev/null"
        for one in part.redirects
    )
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
