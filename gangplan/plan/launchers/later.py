"""Find a launcher that is a later word, after a program whose own options gangplan does not know.

Most programs that are given a whole launch start it (`./entrypoint.sh mpirun -np 8 ./a`, `singularity exec
i.sif mpirun ...`). Others only mention it: `echo`, `grep`, an option's value, a script's own arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.plan.launchers.prefixes import BECOMES, CONTAINERS, ELSEWHERE
from gangplan.plan.launchers.programs import Mpi, Start, base, is_python, start_at
from gangplan.plan.launchers.reading import read
from gangplan.plan.launchers.table import Role

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
_TELLING: tuple[Role, ...] = ("count", "hosts", "hostfile", "per-host", "workers")


def later(words: Sequence[str], at: int, family: Mpi | None) -> Start | None:
    """Return the launcher that the program at index `at` would start."""
    if not may_start(words, at):
        return None
    for index in range(at + 1, len(words)):
        start = start_at(words, index, family)
        if start is None and words[index] == "-m" and base(words[at]) in _RUNNERS:
            start = start_at([*words[: index - 1], "python", *words[index:]], index - 1, family)
        if start is not None and start.launcher.kind != "foreign" and _is_launch(words, at, index, start):
            return start
    return None


# Programs that start any program that follows their options.
_STARTERS = BECOMES | CONTAINERS | ELSEWHERE
# Python's own tools that run a module as `python -m` does.
_RUNNERS = frozenset({"coverage", "memray", "scalene", "mprof", "kernprof", "viztracer", "debugpy"})


def may_start(words: Sequence[str], at: int) -> bool:
    """Return whether the program at `at` may start a program named after it."""
    if at >= len(words):
        return False
    name = base(words[at])
    return not (name in _TALKERS or name in _INTERPRETERS or is_python(name) or name.endswith(".py"))


def _is_launch(words: Sequence[str], at: int, index: int, start: Start) -> bool:
    """Return whether the launcher at `index` looks like a launch, with numbers or hosts and a program."""
    before = words[index - 1]
    is_option = before.startswith("--") and before != "--" and "=" not in before
    if is_option and any(part in before for part in _NAMING):
        return False
    reading = read(start.launcher, words, start.at)
    name = base(words[at])
    if name in _STARTERS or (index == at + 1 and (name.endswith(".sh") or "entrypoint" in name)):
        return bool(reading.programs or reading.unknown)
    return any(reading.of(*_TELLING)) and bool(reading.programs) and not reading.unknown
