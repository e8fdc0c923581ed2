"""The program that a launcher starts, as a command of its own."""

from __future__ import annotations

import re

from gangplan.plan.launchers import (
    OPAQUE_LAUNCHERS,
    FoundLauncher,
    find_launcher_at,
    is_python,
    program_name_of,
    read_launcher_words,
)
from gangplan.plan.launchers.foreign import MEANINGFUL_OPTIONS
from gangplan.plan.launchers.prefixes import ASSIGNMENT_PATTERN
from gangplan.plan.launchers.training import TORCHRUN


def extract_launched_program(found: FoundLauncher) -> tuple[str, ...]:
    """Return the program that a launcher starts, as a command of its own; empty if it is unknown."""
    reading, kind = found.reading, found.start.launcher.kind
    words = reading.program
    if kind == "foreign":
        words = (
            _find_likely_program_of_foreign_launcher(found)
            if found.start.name not in OPAQUE_LAUNCHERS
            else _find_opaque_launched_program(found)
        )
        return ("python", *words) if words and words[0].endswith(".py") else words
    if not words or kind in ("mpi", "horovod"):
        return words
    if any(reading.of("module")):
        return ("python", "-m", *words)
    return words if any(reading.of("no-python")) or not words[0].endswith(".py") else ("python", *words)


def find_meaningful_option(found: FoundLauncher) -> str:
    """Return the first word of a foreign launcher without which its program is another job, or an empty text.

    A colon behind the program begins another one.
    """
    name, begin, words = found.start.name, found.start.at + 1, found.reading.words
    if name not in MEANINGFUL_OPTIONS:
        return ""
    end = len(words) - len(_find_likely_program_of_foreign_launcher(found))
    for word in words[begin:end]:
        option = word[2:].partition("=")[0] if word.startswith("--") else word[1:2]
        is_usual = word.partition("=")[2] in ("ALL", "all")
        if word.startswith("-") and option in MEANINGFUL_OPTIONS[name] and not is_usual:
            return word
        if ASSIGNMENT_PATTERN.fullmatch(word) and name == "mpirun_rsh":
            return word
    return ":" if ":" in words[end:] else ""


def _find_likely_program_of_foreign_launcher(found: FoundLauncher) -> tuple[str, ...]:
    """Return the words from the first certain program on: tables of foreign launchers are incomplete."""
    words = found.reading.words
    if begin := _find_program_behind_known_options(found):
        return words[begin:]
    ends = {use.end for use in found.reading.uses if use.option.name}
    for index in range(found.start.at + 1, len(words)):
        word = words[index]
        if (
            is_python(word)
            or program_name_of(word) in ("bash", "sh")
            or word.startswith(("./", "/"))
            or find_launcher_at(words, index, None)
        ):
            before = words[index - 1]
            is_value = before.startswith("-") and "=" not in before and word.startswith("/")
            is_behind_options = index == found.start.at + 1 or before[:1] in ("-", "+") or index in ends
            if word.startswith("/") and not is_behind_options:
                return ()  # a program, or a file for the program before it
            if not is_value:
                return words[index:]
    return found.reading.program


def _find_program_behind_known_options(found: FoundLauncher) -> int:
    """Return the index of a program by its mere name (`srun -n 4 namd2 /data/in`); 0 if it may be an option's value."""
    reading, at = found.reading, found.start.at + 1
    begin = reading.programs[0][0] if reading.programs else 0
    if found.start.name == "charmrun":  # +p4 and ++ppn 2
        begin = next((index for index in range(at, len(reading.words)) if reading.words[index][:1] != "+"), 0)
        return 0 if any(word.startswith("++") for word in reading.words[at:begin]) else begin
    is_name = begin and re.fullmatch(r"[A-Za-z][\w.+-]*", reading.words[begin])
    return begin if is_name and not any(use.end == begin for use in reading.unknown) else 0


def _find_opaque_launched_program(found: FoundLauncher) -> tuple[str, ...]:
    """Return torchtune's command without torchrun's options, or the script that Lightning's launchers start.

    The script is the first Python file that is certainly not an option's value.
    """
    words = found.reading.words
    if found.start.name == "tune":
        rest = read_launcher_words(TORCHRUN, words, found.start.at).program
        return ("tune", "run", *rest) if rest else ()
    if found.start.name not in ("fabric", "lightning"):
        return ()
    for index in range(found.start.at + 1, len(words)):
        before = words[index - 1]
        if words[index].endswith(".py") and (not before.startswith("-") or "=" in before):
            return ("python", *words[index:])
    return ()
