"""Split the commands of an instruction into words, and hide what they only look for (POSIX shell, GNU sed 4.9).

`sed 's/PermitRootLogin yes/PermitRootLogin no/'` and `grep 'PermitRootLogin yes'` write no `PermitRootLogin yes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.containerfile.parse import Instruction, Piece
from gangplan.records import dataclass

_TOKEN = re.compile(
    r"""'[^']*'?|"(?:\\.|[^"\\])*"?|\\.|[<>]&|&>|(?P<end>[;&|()`]+|\$\()|(?P<space>\s+)|[^\s;&|()`'"\\<>$]+|.""",
    re.DOTALL,
)
_JSON = re.compile(r'("(?:\\.|[^"\\])*"?)|[\[\],]', re.DOTALL)
# What comes before the name of a program.
_BEFORE = re.compile(
    r"if|then|elif|else|while|until|do|!|\{|\}|sudo|exec|command|env|time|nice|--\S*|\w+=.*", re.DOTALL
)
_READERS = frozenset(("grep", "egrep", "fgrep", "zgrep", "rg", "test", "[", "[[", "diff", "cmp"))
_SHELLS = frozenset(("sh", "ash", "bash", "dash", "eval"))
# A comment in what is written: from # at the start of a line or after a space, up to the end of its line.
_COMMENT = re.compile(r"(?:(?<![^'\"\s])|(?<=\\n))#(?:[^'\"\\\n]|\\(?!n))*")
_SCRIPT = re.compile(r"--expression=?|-[A-Za-z]*e")
_DELIMITERS = ",|#@%:!_~;"


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command as it is written, with its quotes, and where it starts."""

    start: int
    text: str

    @property
    def bare(self) -> str:
        """The word without its quotes."""
        return re.sub(r"['\"\\]", "", self.text)


def split_commands_of_run_instruction(text: str) -> Iterator[list[Word]]:
    """Yield the words of each simple command of a line of shell, without comments."""
    command: list[Word] = []
    start, at = -1, 0
    for match in _TOKEN.finditer(text):
        at = match.start()
        is_over = match["end"] is not None or match["space"] is not None
        if start < 0 and not is_over:
            if match[0].startswith("#"):
                break
            start = at
        if is_over and start >= 0:
            command.append(Word(start, text[start:at]))
            start = -1
        if match["end"] is not None and command:
            yield command
            command = []
        at = match.end()
    if start >= 0:
        command.append(Word(start, text[start:at]))
    if command:
        yield command


def list_commands_of_instruction(one: Instruction) -> Iterator[tuple[Piece, str, tuple[str, ...]]]:
    """Yield each command of an instruction: the line where it starts, its program and its other words."""
    is_json = bool(one.words)
    for group in _group_lines_of_run_instruction(one):
        ends: list[tuple[int, Piece]] = []
        length = 0
        for piece in group:
            length += len(piece.text) + 1
            ends.append((length, piece))
        at = 0
        for command in split_commands_of_run_instruction(_read_line(group, is_json)):
            name, rest = _split_program(command)
            while ends[at][0] <= command[0].start:
                at += 1
            yield ends[at][1], name, tuple(word.bare for word in rest)


def find_ordered_patterns_in_command(
    text: str, *patterns: re.Pattern[str], ends: str = "&|;"
) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the matches of the last pattern after matches of the others, within one command of a text.

    Each comes with the place where the first pattern matches. One pattern with `[^&|;]*` between its parts takes a
    time that grows with the square of the text.
    """
    for part in re.finditer(rf"[^{ends}]+", text):
        begin, at = -1, part.start()
        for pattern in patterns[:-1]:
            if (found := pattern.search(text, at, part.end())) is None:
                break
            begin, at = found.start() if begin < 0 else begin, found.end()
        else:
            for match in patterns[-1].finditer(text, at, part.end()):
                yield begin, match


def hide_text_read_by_instruction(one: Instruction) -> Instruction:
    """Return the instruction with spaces for what its commands look for and for comments; places stay."""
    pieces: list[Piece] = []
    is_json = bool(one.words)
    for group in _group_lines_of_run_instruction(one):
        text = "\n".join(piece.text for piece in group)
        shown = list(text)
        for start, end in _find_hidden_parts_of_run_instruction(_read_line(group, is_json)):
            shown[start:end] = [char if char == "\n" else " " for char in shown[start:end]]
        lines = (
            "".join(shown).replace("\\n", "  ").split("\n")
        )  # printf 'a\nb' writes b at the start of a line
        pieces += [
            Piece(piece.line, piece.column, line, piece.is_new)
            for piece, line in zip(group, lines, strict=True)
        ]
    return Instruction(one.name, tuple(pieces))


def _group_lines_of_run_instruction(one: Instruction) -> Iterator[list[Piece]]:
    """Yield the lines that the shell reads as one: continued lines, and each line of a here-document."""
    group: list[Piece] = []
    for piece in one.pieces:
        if piece.is_new and group:
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _read_line(group: list[Piece], is_json: bool) -> str:
    """Return the text of a group; the JSON form gets spaces for its brackets and commas."""
    text = "\n".join(piece.text for piece in group)
    return _JSON.sub(lambda match: match[1] or " ", text) if is_json else text


def _split_program(command: list[Word]) -> tuple[str, list[Word]]:
    for index, word in enumerate(command):
        if not _BEFORE.fullmatch(word.bare):
            return word.bare.rpartition("/")[2], command[index + 1 :]
    return "", []


def _find_hidden_parts_of_run_instruction(text: str, is_nested: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the parts of a line of shell that write nothing."""
    end = 0
    for command in split_commands_of_run_instruction(text):
        name, words = _split_program(command)
        end = command[-1].start + len(command[-1].text)
        only_reads = name in _READERS or (
            name == "sshd" and any(re.match(r"-[dD]*[TtG]", one.bare) for one in words)
        )
        if name in ("sed", "perl"):
            for at, script in _list_sed_scripts_of_run_instruction(words):
                yield from ((at + begin, at + stop) for begin, stop in _find_patterns_of_sed_script(script))
            continue
        for word in words if name else command:
            if only_reads:
                parts: Iterator[tuple[int, int]] = iter([(0, len(word.text))])
            elif name in _SHELLS and word.text[0] in "'\"" and not is_nested:
                parts = (
                    (begin + 1, stop + 1)
                    for begin, stop in _find_hidden_parts_of_run_instruction(word.text[1:-1], True)
                )
            else:
                parts = (match.span() for match in _COMMENT.finditer(word.text))
            yield from ((word.start + begin, word.start + stop) for begin, stop in parts)
    if (rest := text[end:].find("#")) >= 0:
        yield end + rest, len(text)


def _list_sed_scripts_of_run_instruction(words: list[Word]) -> Iterator[tuple[int, str]]:
    """Yield the scripts among the words of sed or perl, with their places; the other words are files."""
    has_option, is_next = any(_SCRIPT.match(word.bare) for word in words), False
    for word in words:
        option = _SCRIPT.match(word.text)
        if is_next or not (has_option or word.bare.startswith("-")):
            yield word.start, word.text
            if not has_option:
                return
            is_next = False
        elif option and option.end() < len(word.text):
            yield word.start + option.end(), word.text[option.end() :]
        else:
            is_next = option is not None


def _find_patterns_of_sed_script(script: str) -> Iterator[tuple[int, int]]:
    """Yield the addresses and patterns of a script of sed, and comments that it writes."""
    at = 0
    while at < len(script):
        char, after = script[at], script[at + 1 : at + 2]
        if char == "/" or (char == "\\" and after and after in _DELIMITERS):
            at += char == "\\"
            end = _find_delimiter(script, at + 1, script[at])
            yield at + 1, end
            at = end + 1
        elif char in "sy" and after and not (after.isalnum() or after.isspace() or after in "\\'\""):
            middle = _find_delimiter(script, at + 2, after)
            end = _find_delimiter(script, middle + 1, after)
            yield at + 2, middle
            yield from _find_comments_written_by_sed(script, middle + 1, end)
            at = end + 1
            while at < len(script) and script[at] in "gpiImMew0123456789":
                at += 1
        elif char in "aic" and at + 1 < len(script):
            yield from _find_comments_written_by_sed(script, at + 1, len(script))
            return
        else:
            at += 1


def _find_comments_written_by_sed(script: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    while at < end:
        line_end = script.find("\\n", at, end)
        line_end = end if line_end < 0 else line_end
        text = script[at:line_end].lstrip(" \t\\")
        if text.startswith("#"):
            yield line_end - len(text), line_end
        at = line_end + 2


def _find_delimiter(script: str, at: int, delimiter: str) -> int:
    """Return where the next delimiter without a backslash is, or the end of the script."""
    while at < len(script) and script[at] != delimiter:
        at += 1 + (script[at] == "\\")
    return min(at, len(script))
