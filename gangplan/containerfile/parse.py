"""Parse a Containerfile into instructions with their lines, and into stages.

Source: Dockerfile reference of BuildKit 0.20 (instructions, continuation lines, `escape` directive,
here-documents, JSON form).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from gangplan.records import dataclass

KNOWN = frozenset(
    (
        "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER",
        "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
    )
)  # fmt: skip
_ESCAPE = re.compile(r"^#\s*escape\s*=\s*(?P<mark>[\\`])\s*$", re.IGNORECASE)
_DIRECTIVE = re.compile(r"^#\s*\w+\s*=")
# A here-document is a word of its own outside quotes: `<<<` and `$((1<<X))` are for the shell.
_HEREDOC = re.compile(
    r"""(?<!\S)\d*<<(?P<tabs>-?)(?P<quote>['"]?)(?P<name>\w[\w.-]*)(?P=quote)(?!\S)|'[^']*'|"(?:\\.|[^"\\])*"|\\."""
)
_WITH_HEREDOCS = frozenset(("ADD", "COPY", "ONBUILD", "RUN"))
_FROM = re.compile(r"^(?:--\S+\s+)*(?P<image>(?!--)\S+)(?:\s+[Aa][Ss]\s+(?P<name>\S+))?\s*$")
_VARIABLE = re.compile(r"\$(?:(?P<bare>\w+)|\{(?P<name>\w+)(?::(?P<how>[-+])(?P<word>[^{}]*))?\})")


class ContainerfileError(ValueError):
    """The text is not a Containerfile; `line` starts at 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


@dataclass(frozen=True, slots=True)
class Piece:
    """A line of an instruction: its number and the column of its text, both from 1, and the text.

    `is_new` is set for the lines of a here-document, each of which is a line for the shell, too.
    """

    line: int
    column: int
    text: str
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its upper-case name, and its lines without name and comments."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def line(self) -> int:
        """The number of its first line with text; 1 where it has none."""
        return self.pieces[0].line if self.pieces else 1

    @property
    def text(self) -> str:
        """All lines, joined into one."""
        return " ".join(piece.text for piece in self.pieces).strip()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the JSON form; empty for the shell form."""
        text = self.text
        if not text.startswith("["):
            return ()
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return ()
        return tuple(found) if isinstance(found, list) and all(isinstance(one, str) for one in found) else ()

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, int, re.Match[str]]]:
        """Yield the line, column and match of each occurrence of a pattern, line by line."""
        for piece in self.pieces:
            for match in pattern.finditer(piece.text):
                yield piece.line, piece.column + match.start(), match


@dataclass(frozen=True, slots=True)
class Stage:
    """A build stage: its base image or stage, its own name, its FROM, and the instructions after that."""

    base: str
    name: str
    begin: Instruction
    instructions: tuple[Instruction, ...]


def parse_containerfile(text: str) -> list[Instruction]:
    """Parse a Containerfile into its instructions, in order. Raises ContainerfileError."""
    lines = text.replace("\r\n", "\n").removeprefix("\ufeff").split("\n")
    mark = _read_containerfile_escape_directive(lines)
    found: list[Instruction] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if not line.strip() or line.lstrip().startswith("#"):
            number += 1
            continue
        name = line.split(None, 1)[0]
        if name.upper() not in KNOWN:
            raise ContainerfileError(f"there is no instruction {name!r}", number + 1)
        pieces, number = _read_containerfile_instruction_lines(
            lines, number, mark, line.index(name) + len(name)
        )
        if name.upper() in _WITH_HEREDOCS:
            more, number = _read_here_documents(lines, number, " ".join(piece.text for piece in pieces))
            pieces += more
        found.append(Instruction(name.upper(), tuple(pieces)))
    if not any(one.name == "FROM" for one in found):
        raise ContainerfileError("there is no FROM", 1)
    return found


def _read_containerfile_escape_directive(lines: Sequence[str]) -> str:
    for line in lines:
        if match := _ESCAPE.match(line):
            return match["mark"]
        if not _DIRECTIVE.match(line):
            break
    return "\\"


def _read_containerfile_instruction_lines(
    lines: Sequence[str], number: int, mark: str, skip: int
) -> tuple[list[Piece], int]:
    """Return the lines of an instruction without its here-documents, and the index of the line after it."""
    pieces: list[Piece] = []
    start = number
    is_open = True
    while is_open and number < len(lines):
        line = lines[number]
        # Comments and empty lines between continued lines: BuildKit 0.20 passes over both, and warns about the
        # latter (NoEmptyContinuation).
        if number > start and (not line.strip() or line.lstrip().startswith("#")):
            number += 1
            continue
        bare = line.rstrip()
        is_open = bare.endswith(mark) and not bare.endswith(mark * 2)
        text = bare[: -len(mark)] if is_open else bare
        column = skip if number == start else 0
        body = text[column:]
        left = len(body) - len(body.lstrip())
        if body.strip():
            pieces.append(Piece(number + 1, column + left + 1, body.strip()))
        number += 1
    return pieces, number


def find_here_documents(text: str) -> list[re.Match[str]]:
    """Return the here-documents that the line of an instruction begins, with their `name` and `tabs`."""
    return [match for match in _HEREDOC.finditer(text) if match["name"]]


def _read_here_documents(lines: Sequence[str], number: int, text: str) -> tuple[list[Piece], int]:
    """Return the lines of an instruction's here-documents, and the index of the line after them.

    Raises ContainerfileError for one that does not end.
    """
    pieces: list[Piece] = []
    for match in find_here_documents(text):
        begin = number
        while number < len(lines):
            line = lines[number]
            if (line.lstrip("\t") if match["tabs"] else line) == match["name"]:
                break
            if line.strip():
                pieces.append(Piece(number + 1, len(line) - len(line.lstrip()) + 1, line.strip(), True))
            number += 1
        if number == len(lines):
            raise ContainerfileError(f"the here-document {match['name']} does not end", begin)
        number += 1
    return pieces, number


def split_containerfile_stages(instructions: Sequence[Instruction]) -> tuple[dict[str, str], list[Stage]]:
    """Return the defaults of the ARGs before the first FROM, and the stages. Raises ContainerfileError."""
    given: dict[str, str] = {}
    found: list[tuple[str, str, Instruction, list[Instruction]]] = []
    for one in instructions:
        if one.name == "FROM":
            match = _FROM.match(one.text)
            if match is None:
                raise ContainerfileError("FROM names one image, and AS a name", one.line)
            found.append(
                (expand_containerfile_variables(match["image"], given), match["name"] or "", one, [])
            )
        elif found:
            found[-1][3].append(one)
        elif one.name == "ARG":
            for name, value in split_variables(one):
                given[name] = expand_containerfile_variables(value, given)
        else:
            raise ContainerfileError(f"{one.name} comes before the first FROM", one.line)
    return given, [Stage(base, name, begin, tuple(rest)) for base, name, begin, rest in found]


def split_variables(one: Instruction) -> Iterator[tuple[str, str]]:
    """Yield the variables that an ENV or ARG sets, with their values."""
    for match in re.finditer(r"(?<!\w)(?P<name>\w+)=(?P<value>\"[^\"]*\"|'[^']*'|\S*)", one.text):
        yield match["name"], match["value"].strip("\"'")
    if "=" not in one.text and one.name == "ENV" and len(words := one.text.split(None, 1)) == 2:
        yield words[0], words[1]


def resolve_last_containerfile_stage(found: Sequence[Stage]) -> tuple[str, tuple[Instruction, ...]]:
    """Return the base image of the last stage in the end, and all instructions that lead to the stage."""
    named = {stage.name.lower(): stage for stage in found if stage.name}
    stage, parts, seen = found[-1], list(found[-1].instructions), {id(found[-1])}
    while (below := named.get(stage.base.lower())) is not None and id(below) not in seen:
        seen.add(id(below))
        parts = [*below.instructions, *parts]
        stage = below
    return stage.base, tuple(parts)


def expand_containerfile_variables(text: str, given: dict[str, str]) -> str:
    """Return a text with its variables replaced; a variable without a value stays as it is written."""

    def value(match: re.Match[str]) -> str:
        name = match["bare"] or match["name"]
        if match["how"] == "-":
            return given.get(name) or match["word"]
        if match["how"] == "+":
            return match["word"] if given.get(name) else ""
        return given.get(name, match[0])

    return _VARIABLE.sub(value, text)
