"""Find every launcher that a command starts: directly, after prefixes, or in a shell script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gangplan.plan.launchers.later import can_start_nested_launcher, find_nested_launcher
from gangplan.plan.launchers.prefixes import (
    ASSIGNMENT_PATTERN,
    REMOTE_SHELLS,
    StrippedPrefixes,
    strip_prefixes,
)
from gangplan.plan.launchers.programs import LauncherStart, MpiGeneration, find_launcher_at, program_name_of
from gangplan.plan.launchers.reading import LauncherReading, read_launcher_words
from gangplan.plan.launchers.shell import (
    DECLARING,
    ShellWord,
    SimpleCommand,
    UnreadableError,
    list_substitutions,
    read_shell_commands,
)
from gangplan.records import dataclass

if TYPE_CHECKING:
    from gangplan.plan.launchers.values import ScriptValues

SHELL_NAMES = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
# Programs that take a script after this option.
_TEXT_TAKERS = {"su": ("c", "--command"), "script": ("c", "--command"), "runuser": ("c", "--command")}
# Shell words that precede a program, as prefixes do.
_SHELL_PREFIXES = frozenset({"exec", "command", "builtin", "noglob"})
_DEFAULT = re.compile(r"\$\{(\w+):?-([^${}`\s]+)\}")  # ${MPIRUN:-mpirun}
# Names of variables in which people keep a launcher.
_MPI_VARIABLE = re.compile(r"(?:\w*_)?(?:MPI(?:RUN|EXEC)?|MPI_?(?:LAUNCHER|CMD|RUN|EXEC))(?:_CMD)?")
# What gives a script, or a part of it, other words than those behind it.
_CHANGES_WORDS = re.compile(r"\bshift\b|\bset\s+(?:[-+]\w+\s+)*(?:--?(?=\s|$)|[^-+\s])|\(\)|\bfunction\s")
# Where the system finds a program, as a script asks for it.
_LOCATED = re.compile(
    r"(?:\$\(|`)\s*(?:which|command\s+-v|type\s+-[pP])\s+([\w./+-]+)\s*(?:2>\s*/dev/null\s*)?[)`]"
)
_DEPTH = 4  # scripts in scripts that are still read


@dataclass(frozen=True, slots=True)
class ShellScript:
    """A script and the index of the word that contains it; `words` are those of one of its commands.

    `sets` are the variables assigned before and in that command; a value is None if it is only known at run
    time.
    """

    at: int
    text: str
    words: tuple[ShellWord, ...]
    sets: dict[str, str | None]
    after: str
    is_direct: bool = True


@dataclass(frozen=True, slots=True)
class FoundLauncher:
    """A launcher in a command: its start, its options, the prefixes before it and the script around it.

    `through` are the programs that start it, outermost first. `guessed` is the one of them that gangplan does
    not know.
    """

    start: LauncherStart
    reading: LauncherReading
    peeled: StrippedPrefixes
    script: ShellScript | None = None
    through: tuple[str, ...] = ()
    guessed: str = ""


def find_launchers(
    words: Sequence[str], family: MpiGeneration | None, given: Mapping[str, str] | None = None
) -> list[FoundLauncher]:
    """Return the launchers that a command starts; `given` are the known values of its variables.

    Next to one that starts something, calls such as `mpirun --version` do not count. Raises UnreadableError for
    a script that no shell could read.
    """
    found = _find_launcher_calls(words, family, given or {})
    return [one for one in found if not _only_prints(one.reading)] or found


def _only_prints(reading: LauncherReading) -> bool:
    """Return whether a launcher prints something about itself, and has nothing to start."""
    return next(reading.of("nothing"), None) is not None and not any(
        begin < end for begin, end in reading.programs
    )


def _find_launcher_calls(
    words: Sequence[str], family: MpiGeneration | None, given: Mapping[str, str], begin: int = 0
) -> list[FoundLauncher]:
    peeled = strip_prefixes(words, begin)
    through = tuple(program_name_of(words[one]) for one in peeled.via)
    start = find_launcher_at(words, peeled.at, family)
    if start is not None:
        return [
            FoundLauncher(
                start, read_launcher_words(start.launcher, words, start.at), peeled, through=through
            )
        ]
    at = find_script_index(words, peeled.at)
    if at >= 0:
        behind = _find_program_behind_script(words, at)
        arguments = words[at + 2 :] if not behind else None
        inner = _find_launchers_in_shell_script(words[at], at, family, 0, given, arguments)
        outer = _find_launcher_calls(words, family, given, behind) if behind > 0 else []
        return [_prepend_outer_programs(one, through) for one in (*inner, *outer)]
    start = find_nested_launcher(words, peeled.at, family)
    name = program_name_of(words[peeled.at]) if peeled.at < len(words) else ""
    if start is not None:
        reading = read_launcher_words(start.launcher, words, start.at)
        return [FoundLauncher(start, reading, peeled, None, (*through, name), name)]
    at = _find_passed_script_index(words, peeled.at)
    inner = _find_launchers_in_shell_script(words[at], at, family, 0, given) if at >= 0 else ()
    return [replace(_prepend_outer_programs(one, (*through, name)), guessed=name) for one in inner]


def _find_program_behind_script(words: Sequence[str], at: int) -> int:
    """Return the index of the program that a script starts as "$@"; 0 without one, -1 if its words may change."""
    if "$" not in words[at]:
        return 0
    if _CHANGES_WORDS.search(words[at]):
        return -1
    for one in read_shell_commands(words[at]):
        offset = next((index for index, text in enumerate(one.texts) if text not in _SHELL_PREFIXES), 0)
        program = one.texts[strip_prefixes(one.texts, offset).at :]
        if program in (("$@",), ("${@}",), ("$0", "$@")):
            return at + 1 + (program[0] != "$0")
    return 0


def _prepend_outer_programs(found: FoundLauncher, through: tuple[str, ...]) -> FoundLauncher:
    return replace(found, through=(*through, *found.through))


def _find_passed_script_index(words: Sequence[str], at: int) -> int:
    """Return the index of a script that a program other than a shell passes to one; -1 without one."""
    if not can_start_nested_launcher(words, at):
        return -1
    name = program_name_of(words[at])
    for index in range(at + 1, len(words)):
        if (inner := find_script_index(words, index)) >= 0:
            return inner
        option = words[index - 1]
        is_told = name in _TEXT_TAKERS and option.startswith("-") and option.endswith(_TEXT_TAKERS[name])
        if is_told or (name in REMOTE_SHELLS and " " in words[index]):
            return index
    return -1


def find_script_index(words: Sequence[str], at: int) -> int:
    """Return the index of the script that a shell at index `at` gets with -c; -1 without one."""
    if at >= len(words) or program_name_of(words[at]) not in SHELL_NAMES:
        return -1
    index, has_script = at + 1, False
    while index < len(words) and words[index][:1] in ("-", "+") and len(words[index]) > 1:
        word = words[index]
        if word == "--":
            index += 1
            break
        if not word.startswith("--"):
            has_script = has_script or "c" in word
            index += word.endswith(("o", "O"))
        elif word in ("--rcfile", "--init-file"):
            index += 1
        index += 1
    return index if has_script and index < len(words) else -1


def read_script_commands(words: Sequence[str]) -> tuple[int, list[SimpleCommand]]:
    """Return the index of the script that a command passes to a shell, and its simple commands.

    Returns -1 and an empty list without a script or if it is unreadable, which `find_launchers` reports.
    """
    at = find_script_index(words, strip_prefixes(words).at)
    try:
        return (at, read_shell_commands(words[at])) if at >= 0 else (-1, [])
    except UnreadableError:
        return -1, []


def _find_launchers_in_shell_script(
    text: str,
    at: int,
    family: MpiGeneration | None,
    depth: int,
    given: Mapping[str, str],
    arguments: Sequence[str] | None = None,
) -> Sequence[FoundLauncher]:
    """Return the launchers that the commands of a script start; without any, those in its substitutions."""
    found = list(_find_launchers_of_commands(text, at, family, depth, given, arguments))
    return found or list(_find_substituted_launchers(text, at, family, depth, given))


def _find_substituted_launchers(
    text: str, at: int, family: MpiGeneration | None, depth: int, given: Mapping[str, str]
) -> Iterator[FoundLauncher]:
    """Yield the launchers whose output a script reads, without those that only say something about themselves."""
    if depth >= _DEPTH or ("$(" not in text and "`" not in text):
        return
    words = (word for one in read_shell_commands(text) for word in (*one.sets, *one.words) if word.is_open)
    for word in words:
        try:
            inner = [
                one
                for script in list_substitutions(word.text)
                for one in _find_launchers_in_shell_script(script, at, family, depth + 1, given)
            ]
        except UnreadableError:
            continue  # this reader knows less of substitutions than a shell
        for found in inner:
            is_launch = found.start.launcher.kind != "foreign" and not _only_prints(found.reading)
            if found.script is not None and is_launch:
                script = replace(found.script, text=text, after="", is_direct=False)
                yield replace(found, script=script)


def _find_launchers_of_commands(
    text: str,
    at: int,
    family: MpiGeneration | None,
    depth: int,
    given: Mapping[str, str],
    arguments: Sequence[str] | None,
) -> Iterator[FoundLauncher]:
    from gangplan.plan.launchers.values import ScriptValues  # few commands are scripts

    sets: dict[str, str | None] = {}
    values = ScriptValues(given, arguments)
    found = read_shell_commands(text)
    waits = [number for number, one in enumerate(found) if one.texts[:1] == ("wait",)]
    for number, written in enumerate(found):
        command = values.expand(written, text)
        values.record(written, text)
        if not command.words:
            _record_assigned_variables(command.sets, sets)
            continue
        after = "" if any(place > number for place in waits) else command.after
        local = dict(sets)
        _record_assigned_variables(command.sets, local)
        script = ShellScript(at, text, command.words, local, after)
        yield from _find_command_launchers(script, command, values, family, depth)
        if command.texts[0] in DECLARING or command.texts[0] == "read":
            _record_assigned_variables(command.words[1:], sets)


def _find_command_launchers(
    script: ShellScript,
    command: SimpleCommand,
    values: ScriptValues,
    family: MpiGeneration | None,
    depth: int,
) -> Iterator[FoundLauncher]:
    """Yield the launchers that one command of a script starts; `script` has its words."""
    written, offset = _resolve_launcher_variable(command, script.sets), 0
    texts = tuple(_LOCATED.sub(r"/usr/bin/\1", text) for text in written)
    while offset < len(texts) and texts[offset] in _SHELL_PREFIXES:
        offset += 1 + (texts[offset + 1 : offset + 2] == ("-a",)) * 2
    peeled = strip_prefixes(texts, offset)
    start = find_launcher_at(texts, peeled.at, family)
    if start is not None:
        through = tuple(program_name_of(texts[one]) for one in peeled.via)
        words = (*texts[: start.at + 1], *written[start.at + 1 :])
        yield FoundLauncher(
            start, read_launcher_words(start.launcher, words, start.at), peeled, script, through
        )
        return
    behind = find_nested_launcher(texts, peeled.at, family)
    if behind is not None:
        name = program_name_of(texts[peeled.at])
        through = (*(program_name_of(texts[one]) for one in peeled.via), name)
        yield FoundLauncher(
            behind, read_launcher_words(behind.launcher, texts, behind.at), peeled, script, through, name
        )
        return
    if depth >= _DEPTH:
        return
    nested = find_script_index(texts, peeled.at)
    begin = 1 if texts[0] == "eval" else nested if nested >= 0 else len(texts)
    end = len(texts) if texts[0] == "eval" else begin + 1
    inner = " ".join(values.fill(word, command.block) for word in command.words[begin:end])
    if command.document and _is_reading_script(texts[peeled.at :]):
        inner = _drop_unreadable_script(command.document)
    for found in _find_launchers_in_shell_script(inner, script.at, family, depth + 1, values.given):
        if found.script is not None:
            inside = found.script
            sets = {**script.sets, **inside.sets}
            outer = ShellScript(script.at, script.text, inside.words, sets, inside.after, is_direct=False)
            yield replace(found, script=outer)


def _drop_unreadable_script(text: str) -> str:
    """Return a script that a here-document holds; empty if its quotes are not those of a script."""
    try:
        read_shell_commands(text)
    except UnreadableError:
        return ""
    return text


def _is_reading_script(words: Sequence[str]) -> bool:
    """Return whether a program is a shell that reads its script from its input."""
    if not words or program_name_of(words[0]) not in SHELL_NAMES or find_script_index(words, 0) >= 0:
        return False
    return "-s" in words or all(word[:1] in ("-", "+") for word in words[1:])


def _resolve_launcher_variable(command: SimpleCommand, sets: dict[str, str | None]) -> tuple[str, ...]:
    """Return the words of a command, with the value of a variable (`$MPIRUN`) as its first word."""
    first = command.words[0]
    value = sets.get(first.names[0]) if len(first.names) == 1 else None
    if value is None and len(first.names) == 1 and _MPI_VARIABLE.fullmatch(first.names[0]):
        value = "mpirun"  # the usual value; a finding at the launcher reports that it is unknown
    default = _DEFAULT.fullmatch(first.text)
    if default is not None:
        return (value if default[1] in sets and value else default[2], *command.texts[1:])
    is_one = value and first.text in (f"${first.names[0]}", f"${{{first.names[0]}}}")
    return (value, *command.texts[1:]) if is_one and value else command.texts


def _record_assigned_variables(words: Sequence[ShellWord], sets: dict[str, str | None]) -> None:
    """Record the variables that these words assign.

    A bare name (`export A`, `read A`) gets its value elsewhere.
    """
    for word in words:
        assigned = ASSIGNMENT_PATTERN.fullmatch(word.text)
        if assigned is not None:
            name, is_known = assigned[1], not word.is_open and word.items is None
            before = (sets.get(name) if name in sets else "") if word.text[len(name)] == "+" else ""
            sets[name] = before + assigned[2] if is_known and before is not None else None
        elif word.text.isidentifier():
            sets.setdefault(word.text, None)


__all__ = [
    "SHELL_NAMES",
    "FoundLauncher",
    "ShellScript",
    "UnreadableError",
    "find_launchers",
    "find_script_index",
    "read_script_commands",
]
