"""Converting a command as written (a list, or one line) to an argument vector."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from gangplan.spec.base import Hints, build_helpful_error
from gangplan.spec.flow import format_flow_list
from gangplan.spec.lookalikes import describe_typesetting, restore_typed_line, restore_typed_word

# A backslash that continues a line, also if YAML has folded it and the next into one (`train.py \ --lr 1`); what
# keeps its text whatever is in it (quotes, an escaped character); and a comment before a line break.
_PIECES = re.compile(
    r"""(?P<next>(?:\A|(?<!\s)\s+)(?:\\(?:[ ](?!\s)|\n\s*|\Z))+|\\\n\s*)|(?P<kept>'[^']*'|"(?:\\.|[^"\\])*"|\\.)"""
    r"""|(?P<note>(?:(?<=\s)|\A)\#[^\n]*(?=\n))""",
    re.DOTALL,
)
# In double quotes, a shell drops the backslash before these; shlex (Python 3.13) keeps it.
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NOHUP = re.compile(r"(?:\A|(?<=&& )|(?<=; ))nohup\s+")
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_LONGEST = 400
_DIRECTIVE = re.compile(r"^\s*#(SBATCH|PBS)\b", re.MULTILINE)
# Syntax that only a shell understands; gangplan starts programs without a shell.
_SHELL = ("&&", "||", "|", ";", ">", "<", "$(", "`", "&")


_SCRIPT_OPTIONS = ("-c", "-lc", "-ec")


def parse_spec_command(value: Any) -> tuple[str, ...]:
    """Return the words of `value`: a list of texts unchanged, or one line split at its spaces and quotes.

    Raises a pydantic error if the value is neither, is empty, or needs a shell.
    """
    if isinstance(value, str):
        return _parse_spec_command_line(value)
    if isinstance(value, (list, tuple)):
        return _parse_spec_command_list(list(value))
    message = "a command is a list of words or one line of text"
    raise build_helpful_error("command", message, _EXAMPLE, Hints(writes="command"))


_EXAMPLE = "Write command: [python, train.py]."


def _build_command_error(
    message: str, help: str, kind: str = "command", word: int | None = None
) -> PydanticCustomError:
    """Return an error about the command, or about one of its words."""
    return build_helpful_error(kind, message, help, Hints(word, is_whole=True))


def _build_corrected_command_error(
    message: str, help: str, kind: str = "command", word: int | None = None
) -> PydanticCustomError:
    """Return the same error with a help that contains the whole corrected command."""
    return build_helpful_error(kind, message, help, Hints(word, is_whole=True, writes="command"))


def _parse_spec_command_list(words: list[Any]) -> tuple[str, ...]:
    if not words:
        raise _build_corrected_command_error("the command is empty", _EXAMPLE)
    for index, word in enumerate(words):
        if not isinstance(word, str):
            message = f"word {index + 1} of the command is not text"
            raise _build_corrected_command_error(
                message, f"Write command: {format_flow_list(_flatten_command_words(words))}.", word=index
            )
        if "\0" in word:
            raise _build_command_error(
                f"word {index + 1} of the command holds a zero byte", "Remove it.", word=index
            )
        if what := _describe_typesetting_of_spec_word(words, index):
            message = f"word {index + 1} of the command has {what}, as word processors write: the program would get it"
            raise _build_corrected_command_error(
                message, f"Write command: {_restore_spec_command_as_typed(words)}.", word=index
            )
    if not words[0].strip():
        raise _build_command_error("the command's first word is empty", "Start it with the program's name.")
    return tuple(words)


def _parse_spec_command_line(line: str) -> tuple[str, ...]:
    if _DIRECTIVE.search(line):
        tool = "pbs" if "#PBS" in line else "slurm"
        help = f"gangplan import {tool} FILE reads such a script as a whole; command is the program alone."
        message = f"the command is a batch script of {tool.title()}, whose options nobody reads here"
        raise _build_command_error(message, help, "shell")
    line = _join_continued_lines(line.strip())
    bare = _PIECES.sub(lambda piece: "" if piece["note"] else "_", line)
    words = _split_command_line(line, is_script="<<" in bare or ("#" in bare and "\n" in line))
    found = next((mark for mark in _SHELL if mark in bare), None)
    if words and not found and "\n" not in bare:
        return _parse_spec_command_list(words)
    what = f"'{found}'" if found else "a line break"
    message = f"the command has {what}, which only a shell understands"
    if is_detached := bare.endswith("&") and not bare.endswith("&&"):
        line = _NOHUP.sub("", line.rstrip("& "))
        bare = bare.rstrip("& ")
    if is_detached and "\n" not in bare and not any(mark in bare for mark in _SHELL):
        help = f"Write command: {format_flow_list(_split_command_line(line))}{_LASTS}."
    elif len(line) <= _LONGEST:
        # A pipeline ends with the code of its last program: a training that fails would count as complete.
        strict = "set -o pipefail; " if _PIPE.search(bare) and "pipefail" not in line else ""
        script = format_flow_list(["bash", "-c", strict + restore_typed_line(line)])
        help = f"Write command: {script}{_LASTS if is_detached else ''}."
    else:
        help = "Write command: [bash, -c, SCRIPT], with this text as SCRIPT."
    raise _build_corrected_command_error(message, help, "shell")


_LASTS = "; the run lasts as long as its program"


def _join_continued_lines(line: str) -> str:
    """Return a line whose continuations outside of quotes are single blanks."""
    return _PIECES.sub(lambda piece: " " if piece["next"] else piece[0], line).strip()


def _unescape_quoted_text(piece: re.Match[str]) -> str:
    """Return a text in double quotes without the backslashes that a shell drops."""
    if not piece[0].startswith('"'):
        return piece[0]
    return _ESCAPED.sub(lambda one: one[1] if one[1] in "$`" else one[0], piece[0])


def _split_command_line(line: str, is_script: bool = False) -> list[str]:
    """Return the words of a line, or raise a pydantic error if it has none or its quotes do not match.

    A script may contain a single quote in a comment or a here-document; it has no words here.
    """
    try:
        words = shlex.split(_PIECES.sub(_unescape_quoted_text, line))
    except ValueError as error:
        if is_script:
            return []
        message = f"the command's quotes do not match: {error}"
        raise _build_command_error(message, "Close the quote, or write the command as a list.") from None
    if not words:
        raise _build_corrected_command_error("the command is empty", _EXAMPLE)
    return words


def _describe_typesetting_of_spec_word(words: Sequence[Any], index: int) -> str:
    """Return how a word processor changed a word; empty if it did not.

    In a script every word is checked. A text of several words for the program may contain such quotes.
    """
    word = words[index]
    if word.isascii():
        return ""
    if _is_script(words, index):
        return next(filter(None, map(describe_typesetting, word.split())), "")
    return "" if " " in word and restore_typed_word(word) != word[1:-1] else describe_typesetting(word)


def _is_script(words: Sequence[Any], index: int) -> bool:
    return index > 0 and str(words[index - 1]) in _SCRIPT_OPTIONS and " " in str(words[index])


def _restore_spec_command_as_typed(words: Sequence[Any]) -> str:
    """Return the words as they were before a word processor changed them."""
    typed: list[str] = []
    for index, word in enumerate(map(str, words)):
        if _is_script(words, index):
            typed.append(restore_typed_line(word))
        elif "\u00a0" in word:
            typed += restore_typed_word(word).split()
        else:
            typed.append(
                restore_typed_word(word)
                if not word.isascii() and _describe_typesetting_of_spec_word(words, index)
                else word
            )
    return format_flow_list(typed)


def _flatten_command_words(words: Sequence[Any]) -> list[str]:
    """Return the words that were meant by entries of which some are lists, or texts that YAML reads as mappings."""
    found: list[str] = []
    for word in words:
        if isinstance(word, (list, tuple)):
            inner = _flatten_command_words(word)
            is_script = found[-1:] and found[-1] in _SCRIPT_OPTIONS and len(inner) > 1
            found += [_join_script_words(inner)] if is_script else inner
        elif isinstance(word, dict):
            found += _flatten_command_mapping(word)
        else:
            found.append(word if isinstance(word, str) else json.dumps(word))
    return found


def _join_script_words(words: Sequence[str]) -> str:
    return " ".join(word if word in _SHELL else shlex.quote(word) for word in words)


def _flatten_command_mapping(mapping: Mapping[str, Any]) -> list[str]:
    """Return the words of an entry such as `--lr: 1e-4`, `{rank}` or `{"a": 1}`."""
    if mapping and all(name.startswith("-") for name in mapping):
        return [
            word
            for name, value in mapping.items()
            for word in (name, *_flatten_command_words([] if value in (None, "") else [value]))
        ]
    if len(mapping) != 1 or any(isinstance(value, (list, tuple, dict)) for value in mapping.values()):
        return [json.dumps(mapping, ensure_ascii=False)]
    name, value = next(iter(mapping.items()))
    return [
        f"{{{name}}}"
        if value is None
        else f"{name}: {value if isinstance(value, str) else json.dumps(value)}"
    ]
