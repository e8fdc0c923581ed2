"""Files that `gangplan gitops` and `gangplan pipeline` make: each says in its first lines with which command,
so that it can be made again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

_MADE = re.compile(
    r"^(?:#|//) Made by `gangplan (?:gitops )?(?P<words>[^`\n]*)`; see docs/\w+\.md\.$", re.MULTILINE
)
# The command beside gitops that makes files.
PIPELINE = "pipeline"
# Characters of a file that the line is looked for in.
_HEAD = 2000

Flag = tuple[str, str | Sequence[str]]


def command_of(name: str, flags: Iterable[Flag]) -> list[str]:
    """The words of the command that makes files again: its name and the flags that are not empty."""
    words = [name]
    for flag, given in flags:
        for value in [given] if isinstance(given, str) else given:
            words += [flag, value] if value else []
    return words


def headed(command: Sequence[str], files: Mapping[str, str], comment: str = "#") -> dict[str, str]:
    """The files, each below the line that says how it was made."""
    line = f"{comment} Made by `gangplan gitops {shlex.join(command)}`; see docs/gitops.md.\n"
    return {path: line + text for path, text in files.items()}


def made_by(text: str) -> list[str] | None:
    """The words of the command that made a file, without gitops; None where it says nothing of one: it is
    somebody's own."""
    found = _MADE.search(text[:_HEAD])
    if not found:
        return None
    try:
        return shlex.split(found["words"])
    except ValueError:
        return None
