"""Every launcher that a command starts: by itself, behind prefixes, or in a shell's script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gangplan.plan.launchers.prefixes import ASSIGNMENT, Peeled, peel
from gangplan.plan.launchers.programs import Mpi, Start, base, start_at
from gangplan.plan.launchers.reading import Reading, read
from gangplan.plan.launchers.shell import Command, UnreadableError, Word, commands

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
# Words of a shell that go before a program as prefixes do.
_SHELL_PREFIXES = frozenset({"exec", "command", "builtin", "noglob"})
_DEPTH = 4  # scripts in scripts that are still read


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the word of the command that holds it; `words` are those of one of its commands.

    `sets` are the variables that it gives values before and in that command, the value None where it is only
    known when it runs.
    """

    at: int
    text: str
    words: tuple[Word, ...]
    sets: dict[str, str | None]
    after: str
    is_direct: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """One launcher: how it begins, what it is told, what goes before it, and the script that it stands in."""

    start: Start
    reading: Reading
    peeled: Peeled
    script: Script | None = None


def find(words: Sequence[str], family: Mpi | None, depth: int = 0) -> list[Found]:
    """The launchers that a command starts. Raises UnreadableError for a script that no shell would read."""
    peeled = peel(words)
    start = start_at(words, peeled.at, family)
    if start is not None:
        return [Found(start, read(start.launcher, words, start.at), peeled)]
    at = script_at(words, peeled.at)
    if at < 0 or depth > _DEPTH:
        return []
    return list(_in_script(words[at], at, family, depth))


def script_at(words: Sequence[str], at: int) -> int:
    """The index of the script that a shell at index `at` is given with -c; -1 without one."""
    if at >= len(words) or base(words[at]) not in SHELLS:
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


def _in_script(text: str, at: int, family: Mpi | None, depth: int) -> Iterator[Found]:
    sets: dict[str, str | None] = {}
    found = commands(text)
    waits = [number for number, one in enumerate(found) if one.texts[:1] == ("wait",)]
    for number, command in enumerate(found):
        if not command.words:
            _remember(command.sets, sets)
            continue
        after = "" if any(place > number for place in waits) else command.after
        local = dict(sets)
        _remember(command.sets, local)
        yield from _launched(text, at, command, local, after, family, depth)
        if command.texts[0] in ("export", "declare", "typeset", "local", "readonly", "read"):
            _remember(command.words[1:], sets)


def _launched(
    text: str,
    at: int,
    command: Command,
    sets: dict[str, str | None],
    after: str,
    family: Mpi | None,
    depth: int,
) -> Iterator[Found]:
    """What one command of a script starts."""
    texts, offset = _resolved(command, sets), 0
    while offset < len(texts) and texts[offset] in _SHELL_PREFIXES:
        offset += 1 + (texts[offset + 1 : offset + 2] == ("-a",)) * 2
    peeled = peel(texts, offset)
    start = start_at(texts, peeled.at, family)
    if start is not None:
        script = Script(at, text, command.words, sets, after)
        yield Found(start, read(start.launcher, texts, start.at), peeled, script)
        return
    if depth >= _DEPTH:
        return
    inner = " ".join(texts[1:]) if texts[0] == "eval" else ""
    nested = script_at(texts, peeled.at)
    for found in _in_script(inner or texts[nested], at, family, depth + 1) if inner or nested >= 0 else ():
        if found.script is not None:
            inside = found.script
            script = Script(at, text, inside.words, {**sets, **inside.sets}, inside.after, is_direct=False)
            yield Found(found.start, found.reading, found.peeled, script)


def _resolved(command: Command, sets: dict[str, str | None]) -> tuple[str, ...]:
    """The words of a command; a first word that is one variable of the script (`$MPIRUN`) is its value."""
    first = command.words[0]
    value = sets.get(first.names[0]) if len(first.names) == 1 else None
    is_one = value and first.text in (f"${first.names[0]}", f"${{{first.names[0]}}}")
    return (value, *command.texts[1:]) if is_one and value else command.texts


def _remember(words: Sequence[Word], sets: dict[str, str | None]) -> None:
    """Variables given a value by these words; a name alone (`export A`, `read A`) has one from elsewhere."""
    for word in words:
        assigned = ASSIGNMENT.fullmatch(word.text)
        if assigned is not None:
            sets[assigned[1]] = None if word.is_open else assigned[2]
        elif word.text.isidentifier():
            sets.setdefault(word.text, None)


__all__ = ["SHELLS", "Found", "Script", "UnreadableError", "find", "script_at"]
