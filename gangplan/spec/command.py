"""A command as written (a list, or one line) becomes an argument vector."""

from __future__ import annotations

import shlex
from typing import Any

from gangplan.spec.base import helpful

# Characters that only a shell understands; gangplan starts programs without one.
_SHELL = ("&&", "||", "|", ";", ">", "<", "$(", "`", "&")


def argv_of(value: Any) -> tuple[str, ...]:
    """The words of `value`: a list of texts as it is, one line split at its spaces and quotes.

    Raises a pydantic error when the value is neither, is empty, or needs a shell.
    """
    if isinstance(value, str):
        return _from_line(value)
    if isinstance(value, (list, tuple)):
        return _from_list(list(value))
    raise helpful(
        "command", "a command is a list of words or one line of text", "Write command: [python, train.py]."
    )


def _from_list(words: list[Any]) -> tuple[str, ...]:
    if not words:
        raise helpful("command", "the command is empty", "Write command: [python, train.py].")
    for index, word in enumerate(words):
        if not isinstance(word, str):
            raise helpful(
                "command",
                f"word {index + 1} of the command is not text",
                "Quote it, or write the list on one level.",
            )
        if "\0" in word:
            raise helpful("command", f"word {index + 1} of the command holds a zero byte", "Remove it.")
    if not words[0].strip():
        raise helpful("command", "the command's first word is empty", "Start it with the program's name.")
    return tuple(words)


def _from_line(line: str) -> tuple[str, ...]:
    found = next((mark for mark in _SHELL if mark in line), None)
    if found or "\n" in line.strip():
        what = f"'{found}'" if found else "a line break"
        raise helpful(
            "command",
            f"the command has {what}, which only a shell understands",
            'Write command: [bash, -c, "..."] to run a shell on every rank.',
        )
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise helpful(
            "command",
            f"the command's quotes do not match: {error}",
            "Close the quote, or write the command as a list.",
        ) from None
    return _from_list(words)
