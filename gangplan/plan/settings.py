"""Find what a spec sets by name: in env, in a launcher's options, in a script or before a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gangplan.findings import FieldPath
from gangplan.model.job import Job
from gangplan.plan.flags import read_mpi_flags
from gangplan.plan.launchers import FoundLauncher, LauncherReading, read_script_commands
from gangplan.plan.launchers.prefixes import ASSIGNMENT_PATTERN, strip_prefixes
from gangplan.plan.launchers.shell import SimpleCommand
from gangplan.records import dataclass

# Shell words that only start what follows them.
_PASSING = frozenset({"exec", "command"})
# Shell words whose assignments last.
_KEEPING = frozenset({"export", "declare", "typeset", "readonly"})
# Those that start no program.
_TALKING = frozenset({"echo", "printf", ":", "true", "cd", "set"})

# Options that name interfaces, with the variables that set the same (Horovod 0.28.1, MPICH 5.0.2).
_INTERFACES = {
    **dict.fromkeys(("network-interface", "network-interfaces"), "HOROVOD_GLOO_IFACE"),
    "iface": "HYDRA_IFACE",
}
# The option of horovodrun with options of mpirun, in one word.
_MPI_ARGS = "mpi-args"


@dataclass(frozen=True, slots=True)
class VariableSetting:
    """A variable with a value that is known before the run, and the spec field that sets it.

    `in_rank` marks one that a script of the user's sets, which a launcher around it cannot undo. `spelled` is
    the name as written, `word` its place in a script: the indexes of its first letter and after its last.
    `pod` is the kind of pod that it is set in, as the spec calls it. `is_maybe` marks one of a branch whose end
    comes before a program does: the script may keep a value that it was given.
    """

    name: str
    value: str
    path: FieldPath
    in_rank: bool = False
    spelled: str = ""
    word: tuple[int, int] | None = None
    pod: str = "worker"
    is_maybe: bool = False

    @property
    def is_env(self) -> bool:
        """Whether the container has the variable from its start."""
        return self.path[-2:-1] == ("env",)

    @property
    def called(self) -> str:
        """The name as the user wrote it."""
        return self.spelled or self.name


def find_launch_variable_settings(job: Job, found: Sequence[FoundLauncher]) -> Iterator[VariableSetting]:
    """Yield all settings that a job makes itself, in the order of the fields."""
    for variable in job.env:
        if variable.is_plain:
            yield VariableSetting(variable.name, variable.value, ("env", variable.name))
    if job.uses_mpi and not found:
        yield from _find_launcher_option_settings(read_mpi_flags(job), ("mpi", "flags"), -1)
    for launch in found:
        if launch.script is None:
            yield from _find_launcher_option_settings(launch.reading, ("command",), 0)
        else:
            for one in _find_launcher_option_settings(launch.reading, (), 0):
                yield replace(one, path=("command", launch.script.at))
    yield from _find_command_variable_settings(job.command, bool(found))


def _find_launcher_option_settings(
    reading: LauncherReading, at: FieldPath, shift: int
) -> Iterator[VariableSetting]:
    """Yield the variables and parameters in a launcher's options; parameters get their names as variables."""
    for use in reading.uses:
        path = (*at, use.at + shift) if at else ()
        if use.option.name in _INTERFACES:
            spelled = f"--{use.option.name}"
            yield VariableSetting(_INTERFACES[use.option.name], use.value, path, spelled=spelled)
        elif use.option.name == _MPI_ARGS:
            words = use.value.split()
            for flag, name, value in zip(words, words[1:], words[2:], strict=False):
                if flag.lstrip("-") == "mca":
                    yield VariableSetting(f"OMPI_MCA_{name}", value, path, spelled=name)
    for use in reading.of("env", "parameter"):
        name, value = use.value, " ".join(use.values[1:])
        path = (*at, use.at + shift) if at else ()
        if use.option.role == "parameter":
            prefix = "PRTE_MCA_" if use.option.name == "prtemca" else "OMPI_MCA_"
            if len(use.values) > 1:
                yield VariableSetting(prefix + name, value, path, spelled=name)
        elif "=" in name:
            yield VariableSetting(*_split_assignment(name), path)
        elif len(use.values) > 1:
            yield VariableSetting(name, value, path)


def _split_assignment(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _find_command_variable_settings(words: Sequence[str], has_launcher: bool) -> Iterator[VariableSetting]:
    """Yield the variables set before a program as `env NAME=value`, and those that a script sets.

    If gangplan starts the launcher, each rank reads them; if the user does, the launcher reads them.
    """
    peeled = strip_prefixes(words)
    for name, value in peeled.sets:
        index = next((place for place, word in enumerate(words) if word == f"{name}={value}"), 0)
        yield VariableSetting(name, value, ("command", index), not has_launcher)
    at, found = read_script_commands(words)
    for number, command in enumerate(found):
        texts = command.texts
        assigned, is_maybe = list(command.sets), _is_over_before_program(command, found[number + 1 :])
        if texts[:1] and texts[0] in _KEEPING:
            assigned += command.words[1:]
        elif texts:
            start = 1 if texts[0] in _PASSING else 0
            end = start + strip_prefixes(texts[start:]).at
            assigned += [one for one in command.words[start:end] if ASSIGNMENT_PATTERN.fullmatch(one.text)]
        for word in assigned:
            found_there = ASSIGNMENT_PATTERN.fullmatch(word.text)
            if found_there is not None and not word.is_open:
                place = word.begin, word.end
                name, value = found_there[1], found_there[2]
                yield VariableSetting(
                    name, value, ("command", at), not has_launcher, word=place, is_maybe=is_maybe
                )


def _is_over_before_program(command: SimpleCommand, later: Sequence[SimpleCommand]) -> bool:
    """Return whether the branch that a command sets variables in has ended where each later program starts."""
    if command.texts and command.texts[0] not in _KEEPING:
        return False  # for this program alone
    programs = [one for one in later if one.words and one.texts[0] not in _KEEPING | _TALKING]
    return bool(programs) and all(one.block[: len(command.block)] != command.block for one in programs)
