"""The option tables of the MPI launchers: every option exists in the real launcher and takes as many words.

An option that does not exist follows the one under test, and the program must complain about that one: if
the table had too few words, the program would stop at a word before it; if too many, it would take it for
a value.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gangplan.plan.launchers import MPI_LAUNCHERS, LauncherOption, MpiGeneration
from tests.reality.families import UnavailableError, installed

STRANGE = "gangplan-strange"
AT_ONCE = 5
NAMES: dict[MpiGeneration, str] = {
    "OpenMPI4": "openmpi4",
    "OpenMPI5": "openmpi5",
    "MPICH": "mpich",
    "IntelMPI": "intel",
}
# Values that a program checks while it reads; any other option gets 1.
VALUES = {
    "demux": "poll", "launcher": "ssh", "bootstrap": "ssh", "rmk": "user", "topolib": "hwloc", "iface": "lo",
    "order-nodes": "ascending", "membind": "none", "rankmap": "0", "s": "all", "hosts-group": "localhost",
    "memory-alloc-kinds": "system", "f": "HOSTS", "hostfile": "HOSTS", "machinefile": "HOSTS",
    "host": "localhost", "hosts": "localhost", "hostlist": "localhost", "machine": "localhost",
    "machines": "localhost", "machinelist": "localhost", "gtool": "true:0",
}  # fmt: skip
# Options that make the program exit or read something else at once: they are tested by hand.
ENDS = {
    "configfile",
    "gtoolfile",
    "help",
    "h",
    "info",
    "version",
    "V",
    "tune",
    "gdb",
    "gdb-args",
    "app",
    "file",
}


def _mpirun(family: MpiGeneration) -> Path:
    try:
        return (
            installed(NAMES[family])
            / "usr/local/bin"
            / ("mpirun" if family.startswith("Open") else "mpiexec.hydra")
        )
    except UnavailableError as why:
        pytest.skip(str(why))


def _complaint(program: Path, words: list[str]) -> str:
    allow = {f"{name}_ALLOW_RUN_AS_ROOT{end}": "1" for name in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
    done = subprocess.run(
        [program, *words, f"--{STRANGE}", "-n", "1", "true"],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env={**os.environ, **allow}, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def _words(option: LauncherOption, hosts: Path, family: MpiGeneration) -> list[str]:
    value = VALUES.get(option.name, "1").replace("HOSTS", str(hosts))
    if (family, option.name) == ("IntelMPI", "machine"):
        value = str(hosts)
    dashes = "-" if len(option.name) == 1 else "--"
    return [dashes + option.name, *[value] * option.words]


@pytest.mark.real_tool("mpi")
@pytest.mark.parametrize("family", sorted(MPI_LAUNCHERS))
def test_every_option_exists_and_takes_as_many_words(family: MpiGeneration, tmp_path: Path) -> None:
    program, hosts = _mpirun(family), tmp_path / "hosts"
    hosts.write_text("localhost\n")
    options = [one for one in MPI_LAUNCHERS[family].options.values() if one.name not in ENDS]
    words = [_words(one, hosts, family) for one in options]
    wrong = []
    for begin in range(
        0, len(words), AT_ONCE
    ):  # several together, and one by one where they do not go together
        some = words[begin : begin + AT_ONCE]
        if STRANGE not in _complaint(program, [word for one in some for word in one]):
            wrong += [one for one in some if STRANGE not in _complaint(program, one)]
    assert wrong == []
