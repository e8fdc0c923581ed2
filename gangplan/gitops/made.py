"""Files that `gangplan gitops` and `gangplan pipeline` write. The first lines of each name the command, so
that it can be repeated."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

_MADE = re.compile(
    r"^(?:#|//) Made by `gangplan (?:gitops )?(?P<words>[^`\n]*)`; see docs/\w+\.md\.$", re.MULTILINE
)
# The command, besides gitops, that writes files.
PIPELINE_COMMAND = "pipeline"
# How many characters of a file are searched for the line.
_HEAD = 2000

Flag = tuple[str, str | Sequence[str]]


def build_gitops_write_command(name: str, flags: Iterable[Flag]) -> list[str]:
    """Return the words of the command that writes files again: its name and the flags that are not empty."""
    words = [name]
    for flag, given in flags:
        for value in [given] if isinstance(given, str) else given:
            words += [flag, value] if value else []
    return words


def add_gitops_command_headers(
    command: Sequence[str], files: Mapping[str, str], comment: str = "#"
) -> dict[str, str]:
    """Put the line that names the command at the top of each file."""
    line = f"{comment} Made by `gangplan gitops {shlex.join(command)}`; see docs/gitops.md.\n"
    return {path: line + text for path, text in files.items()}


def parse_gitops_command_header(text: str) -> list[str] | None:
    """Return the words of the command that made a file, without gitops; None if it names none: somebody wrote
    it."""
    found = _MADE.search(text[:_HEAD])
    if not found:
        return None
    try:
        return shlex.split(found["words"])
    except ValueError:
        return None
