"""Converting a command as written (a list, or one line) to an argument vector."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from gangplan.spec.base import Hints, helpful
from gangplan.spec.flow import listed
from gangplan.spec.lookalikes import as_typed, as_typed_line, typeset

# A line that continues on the next one.
_CONTINUED = re.compile(r"\s*\\\n\s*")
_LONGEST = 400
_DIRECTIVE = re.compile(r"^\s*#(SBATCH|PBS)\b", re.MULTILINE)
# Syntax that only a shell understands; gangplan starts programs without a shell.
_SHELL = ("&&", "||", "|", ";", ">", "<", "$(", "`", "&")


def argv_of(value: Any) -> tuple[str, ...]:
    """Return the words of `value`: a list of texts unchanged, or one line split at its spaces and quotes.

    Raises a pydantic error if the value is neither, is empty, or needs a shell.
    """
    if isinstance(value, str):
        return _from_line(value)
    if isinstance(value, (list, tuple)):
        return _from_list(list(value))
    message = "a command is a list of words or one line of text"
    raise helpful("command", message, _EXAMPLE, Hints(writes="command"))


_EXAMPLE = "Write command: [python, train.py]."


def _refused(message: str, help: str, kind: str = "command", word: int | None = None) -> PydanticCustomError:
    """Return an error about the command, or about one of its words."""
    return helpful(kind, message, help, Hints(word, is_whole=True))


def _rewritten(
    message: str, help: str, kind: str = "command", word: int | None = None
) -> PydanticCustomError:
    """Return the same error with a help that contains the whole corrected command."""
    return helpful(kind, message, help, Hints(word, is_whole=True, writes="command"))


def _from_list(words: list[Any]) -> tuple[str, ...]:
    if not words:
        raise _rewritten("the command is empty", _EXAMPLE)
    for index, word in enumerate(words):
        if not isinstance(word, str):
            message = f"word {index + 1} of the command is not text"
            raise _rewritten(message, f"Write command: {listed(_flat(words))}.", word=index)
        if "\0" in word:
            raise _refused(f"word {index + 1} of the command holds a zero byte", "Remove it.", word=index)
        if what := _typeset(words, index):
            message = f"word {index + 1} of the command has {what}, as word processors write: the program would get it"
            raise _rewritten(message, f"Write command: {_typed(words)}.", word=index)
    if not words[0].strip():
        raise _refused("the command's first word is empty", "Start it with the program's name.")
    return tuple(words)


def _from_line(line: str) -> tuple[str, ...]:
    if _DIRECTIVE.search(line):
        tool = "pbs" if "#PBS" in line else "slurm"
        help = f"gangplan import {tool} FILE reads such a script as a whole; command is the program alone."
        message = f"the command is a batch script of {tool.title()}, whose options nobody reads here"
        raise _refused(message, help, "shell")
    line = _CONTINUED.sub(" ", line.strip())
    if line.endswith("&") and not any(mark in line.rstrip("& ") for mark in _SHELL):
        help = (
            f"Write command: {listed(shlex.split(line.rstrip('& ')))}; the run lasts as long as its program."
        )
        raise _rewritten("the command has '&', which only a shell understands", help, "shell")
    found = next((mark for mark in _SHELL if mark in line), None)
    if found or "\n" in line:
        what = f"'{found}'" if found else "a line break"
        raise _rewritten(
            f"the command has {what}, which only a shell understands",
            f"Write command: {listed(['bash', '-c', as_typed_line(line)])}."
            if len(line) <= _LONGEST
            else "Write command: [bash, -c, SCRIPT], with this text as SCRIPT.",
            "shell",
        )
    try:
        words = shlex.split(line)
    except ValueError as error:
        message = f"the command's quotes do not match: {error}"
        raise _refused(message, "Close the quote, or write the command as a list.") from None
    return _from_list(words)


def _typeset(words: Sequence[Any], index: int) -> str:
    """Return how a word processor changed a word; empty if it did not.

    In a script every word is checked. A text of several words for the program may contain such quotes.
    """
    word = words[index]
    if word.isascii():
        return ""
    if _is_script(words, index):
        return next(filter(None, map(typeset, word.split())), "")
    return "" if " " in word and as_typed(word) != word[1:-1] else typeset(word)


def _is_script(words: Sequence[Any], index: int) -> bool:
    return index > 0 and str(words[index - 1]) in ("-c", "-lc", "-ec") and " " in str(words[index])


def _typed(words: Sequence[Any]) -> str:
    """Return the words as they were before a word processor changed them."""
    typed: list[str] = []
    for index, word in enumerate(map(str, words)):
        if _is_script(words, index):
            typed.append(as_typed_line(word))
        elif "\u00a0" in word:
            typed += as_typed(word).split()
        else:
            typed.append(as_typed(word) if not word.isascii() and _typeset(words, index) else word)
    return listed(typed)


def _flat(words: Sequence[Any]) -> list[str]:
    return [
        one for word in words for one in (_flat(word) if isinstance(word, (list, tuple)) else [str(word)])
    ]
