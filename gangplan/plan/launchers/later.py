"""Find a launcher that is a later word, after a program whose own options gangplan does not know.

Most programs that are given a whole launch start it (`./entrypoint.sh mpirun -np 8 ./a`, `singularity exec
i.sif mpirun ...`). Others only mention it: `echo`, `grep`, an option's value, a script's own arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.plan.launchers.prefixes import CONTAINER_PROGRAMS, REMOTE_SHELLS, USER_CHANGING_PROGRAMS
from gangplan.plan.launchers.programs import (
    LauncherStart,
    MpiGeneration,
    find_launcher_at,
    is_python,
    program_name_of,
)
from gangplan.plan.launchers.reading import read_launcher_words
from gangplan.plan.launchers.table import OptionRole

# Programs that read, print or compare their words and start none of them.
_TALKERS = frozenset(
    [
        "echo",
        "printf",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "ls",
        "cat",
        "cp",
        "mv",
        "rm",
        "ln",
        "which",
        "type",
        "whereis",
        "man",
        "test",
        "[",
        "true",
        "false",
        "sed",
        "awk",
        "gawk",
        "jq",
        "head",
        "tail",
        "tee",
        "touch",
        "mkdir",
        "chmod",
        "stat",
        "file",
        "find",
        "readlink",
        "realpath",
        "dirname",
        "basename",
        "pip",
        "pip3",
        "apt",
        "apt-get",
        "yum",
        "dnf",
        "conda",
        "mamba",
        "pgrep",
        "pkill",
        "killall",
        "logger",
        "export",
        "ctest",
        "cmake",
        "make",
        "ninja",
        "git",
        "tar",
    ]
)
# Interpreters: words after their script are the script's own arguments.
_INTERPRETERS = frozenset(["perl", "ruby", "Rscript", "julia", "java", "node", "octave", "matlab", "lua"])
# Parts of an option's name that make a launcher its value: --launcher mpirun, --mpiexec /usr/bin/mpiexec.
_NAMING = ("mpi", "launch", "run", "exec", "cmd", "command", "backend", "prog", "pattern", "name")
_TELLING: tuple[OptionRole, ...] = ("count", "hosts", "hostfile", "per-host", "workers")


def find_nested_launcher(words: Sequence[str], at: int, family: MpiGeneration | None) -> LauncherStart | None:
    """Return the launcher that the program at index `at` would start."""
    if not can_start_nested_launcher(words, at):
        return None
    for index in range(at + 1, len(words)):
        start = find_launcher_at(words, index, family)
        if start is None and words[index] == "-m" and program_name_of(words[at]) in _RUNNERS:
            start = find_launcher_at([*words[: index - 1], "python", *words[index:]], index - 1, family)
        if (
            start is not None
            and start.launcher.kind != "foreign"
            and _is_plausible_launcher_start(words, at, index, start)
        ):
            return start
    return None


# Programs that start any program that follows their options.
_STARTERS = USER_CHANGING_PROGRAMS | CONTAINER_PROGRAMS | REMOTE_SHELLS
# Python's own tools that run a module as `python -m` does.
_RUNNERS = frozenset({"coverage", "memray", "scalene", "mprof", "kernprof", "viztracer", "debugpy"})


def can_start_nested_launcher(words: Sequence[str], at: int) -> bool:
    """Return whether the program at `at` may start a program named after it."""
    if at >= len(words):
        return False
    name = program_name_of(words[at])
    return not (name in _TALKERS or name in _INTERPRETERS or is_python(name) or name.endswith(".py"))


def _is_plausible_launcher_start(words: Sequence[str], at: int, index: int, start: LauncherStart) -> bool:
    """Return whether the launcher at `index` looks like a launch, with numbers or hosts and a program."""
    before = words[index - 1]
    is_option = before.startswith("--") and before != "--" and "=" not in before
    if is_option and any(part in before for part in _NAMING):
        return False
    reading = read_launcher_words(start.launcher, words, start.at)
    name = program_name_of(words[at])
    if name in _STARTERS or (index == at + 1 and (name.endswith(".sh") or "entrypoint" in name)):
        return bool(reading.programs or reading.unknown)
    return any(reading.of(*_TELLING)) and bool(reading.programs) and not reading.unknown
