"""Find shell operators in commands without a shell, and prefixes that no container of a run may use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.launchers import program_name_of, strip_prefixes
from gangplan.plan.launchers.prefixes import USER_CHANGING_PROGRAMS
from gangplan.plan.problems import format_flow_list, is_pasteable, join_shell_words
from gangplan.rules.commands import COMMAND_PREFIX, COMMAND_SHELL

SoundnessCheck = Callable[[Job, tuple[str, ...]], bool]

# Shell operators and redirections that no program takes as an argument of its own, and those that may be an
# option's value (`--delimiter "|"`).
_SURE = re.compile(r"&&|\|\||[0-9]*>>|[0-9]?>&[0-9-]|&>>?(?:[\w./-]+)?|[0-9]>{1,2}(?:[\w./-]+)?")
_LIKELY = re.compile(r"[|;&<>]|\|&|>{1,2}[A-Za-z./][\w./-]*")
# Programs that take these words as arguments of their own.
_OWN = frozenset(
    {"find", "expr", "test", "[", "fd", "parallel", "echo", "printf", "psql", "sqlite3", "zstdgrep"}
)


def propose_sound_command_help(
    job: Job, words: Sequence[str], otherwise: str, is_sound: SoundnessCheck | None
) -> str:
    """Return a help that proposes these words as the command if that is sound, and the other text if not."""
    right = tuple(words)
    if is_sound is not None and is_pasteable(right) and is_sound(job, right):
        return f"Write command: {format_flow_list(right)}."
    return otherwise


def check_command_shell_operators(
    job: Job, code: set[int], is_sound: SoundnessCheck | None = None
) -> Iterator[Problem]:
    """Yield the first operator that is a word of its own; `code` are indexes of words that are code."""
    words = job.command
    if program_name_of(words[min(strip_prefixes(words).at, len(words) - 1)]) in _OWN:
        return
    found = [index for index in range(1, len(words)) if index not in code and _is_operator(words, index)]
    if not found:
        return
    script = " ".join(
        word if index in found or not word else join_shell_words([word]) for index, word in enumerate(words)
    )
    if "|" in [words[index] for index in found]:
        script = f"set -o pipefail; {script}"  # a pipeline ends with the code of its last program
    message = f"'{words[found[0]]}' is a shell operator, but no shell runs the command: the program would get it as an argument"
    otherwise = "Run it with a shell: bash, -c, and the script as one word."
    help = propose_sound_command_help(job, ("bash", "-c", script), otherwise, is_sound)
    yield Problem(("command", found[0]), message, help, COMMAND_SHELL)


def _is_operator(words: Sequence[str], index: int) -> bool:
    word, before = words[index], words[index - 1]
    if _SURE.fullmatch(word):
        return not (before.startswith("--") and index + 1 == len(words))
    return _LIKELY.fullmatch(word) is not None and not before.startswith("-")


def check_command_privilege_prefixes(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield problems of sudo and similar prefixes, which need rights that no container of a run may gain."""
    words, peeled = job.command, strip_prefixes(job.command)
    places = [*peeled.via, peeled.at]
    for number, place in enumerate(places):
        if place >= len(words) or program_name_of(words[place]) not in USER_CHANGING_PROGRAMS:
            continue
        name = program_name_of(words[place])
        message = (
            f"{name} changes the user or its rights, which no container of a run may do: nothing would start"
        )
        right = (*words[:place], *words[places[number + 1] :]) if number + 1 < len(places) else ()
        help = propose_sound_command_help(
            job, right, f"Start the program without {name}.", is_sound if right else None
        )
        yield Problem(("command", place), message, help, COMMAND_PREFIX)
