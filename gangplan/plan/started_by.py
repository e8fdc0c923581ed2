"""Check programs that start a launcher: some cannot, some see only part of a run, some are unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import FoundLauncher, program_name_of, read_script_commands
from gangplan.plan.launchers.prefixes import (
    ASSIGNMENT_PATTERN,
    CONTAINER_PROGRAMS,
    ONE_HOST_PROFILERS,
    REMOTE_SHELLS,
    USER_CHANGING_PROGRAMS,
    strip_prefixes,
)
from gangplan.plan.own_processes import check_programs_with_own_processes
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.rules.commands import COMMAND_BEHIND, COMMAND_HOSTS, COMMAND_PREFIX, COMMAND_UNREADABLE
from gangplan.rules.model import Severity

_PLAIN = frozenset({"script", "coverage", "memray", "scalene", "mprof", "kernprof", "viztracer"})


# Programs that need a daemon, or rights, that no pod of a run has to start containers.
_BY_DAEMON = frozenset({"docker", "podman", "nerdctl"})
# Others need a namespace of users, which the seccomp profile of the runtime mostly denies (containerd 2.1, CRI-O 1.34).
_BY_NAMESPACE = frozenset({"apptainer", "singularity", "enroot", "shifter", "sarus", "ch-run"})
# Subcommands that start a container, and programs that need none.
_STARTING = frozenset({"run", "exec", "start", "shell", "compose"})
_ALWAYS_STARTING = frozenset({"shifter", "ch-run"})


def check_outer_launch_program(job: Job) -> Iterator[Problem]:
    """Yield problems of a program that would run on another host, in a container that cannot start, or too often."""
    at = strip_prefixes(job.command).at
    name = program_name_of(job.command[at]) if at < len(job.command) else ""
    yield from check_container_programs(job, ())
    if name in REMOTE_SHELLS:
        message = (
            f"{name} names a host to start the program on, but the run's hosts are only known when it starts"
        )
        yield Problem(
            ("command", at),
            message,
            "Write only the program; gangplan starts it on every rank.",
            COMMAND_HOSTS,
        )
    yield from check_programs_with_own_processes(job)


def check_container_programs(job: Job, found: Sequence[FoundLauncher]) -> Iterator[Problem]:
    """Yield the first program that would start a container inside that of a worker, or of the launcher.

    Those that start a launcher are reported there.
    """
    begins = {one.script.words[0].begin for one in found if one.script is not None and one.script.is_direct}
    programs = [] if any(one.script is None for one in found) else [*_list_programs(job.command, begins)]
    for one in found:
        for begin, end in one.reading.programs:
            at = one.script.at if one.script is not None else None
            inner = _list_programs(one.reading.words[begin:end])
            programs += [(begin + index if at is None else at, words, sure) for index, words, sure in inner]
    for index, words, is_sure in programs:
        name = program_name_of(words[0]) if words else ""
        is_whole = name in _BY_DAEMON and [*words] == [*job.command[index:]]
        is_started = is_whole or name in _ALWAYS_STARTING or bool(_STARTING & {*words[1:4]})
        if name not in _BY_DAEMON | _BY_NAMESPACE or not is_started:
            continue
        message = f"{name} needs a daemon, or rights, that no container of a run has"
        if name in _BY_NAMESPACE:
            message = f"{name} needs a user namespace, which most clusters deny to the containers of a run"
        help = "Use its image as the run's image, and write only the program."
        level = None if is_sure and name in _BY_DAEMON else Severity.WARNING
        yield Problem(("command", index), message, help, COMMAND_PREFIX, level=level)
        return


def _list_programs(
    command: Sequence[str], without: Collection[int] = ()
) -> Iterator[tuple[int, Sequence[str], bool]]:
    """Yield the programs of a command, or of its script: the index of their word, their words, and if they surely run.

    `without` are the places where commands begin in the script that are left out.
    """
    script, found = read_script_commands(command)
    if script < 0:
        at = strip_prefixes(command).at
        yield at, command[at:], True
    for one in found:
        if one.words and one.words[0].begin not in without:
            texts = one.texts[one.texts[0] in ("exec", "command") :]
            yield script, texts[strip_prefixes(texts).at :], not one.block and one.after != "||"


def _is_outer_launch_program(kept: LauncherCall, name: str) -> bool:
    """Return whether the command itself starts with this program, which then has a finding of its own."""
    return any(
        program_name_of(word) == name
        for word in kept.job.command[: kept.found.script.at if kept.found.script else 0]
    )


def check_programs_starting_launcher(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield problems of a launcher that other programs start."""
    found, name = kept.found, kept.name
    at = found.peeled.at if found.script is None else 0
    if found.script is not None and found.start.begin < len(found.script.words):
        first = found.script.words[found.start.begin]
        whole = first.text in [form for name in first.names for form in (f"${name}", f"${{{name}}}")]
        given = {one.name: one.value for one in kept.job.env if one.is_plain} | found.script.sets
        if whole and not given.get(first.names[0]):
            message = f"what {first.text} starts is only known when the script runs"
            yield WordProblem(COMMAND_UNREADABLE, at, message, "Write the launcher itself, such as mpirun.")
    for one in found.through:
        if (
            one in USER_CHANGING_PROGRAMS
            and found.script is not None
            and not _is_outer_launch_program(kept, one)
        ):
            message = f"{one} changes the user, which no container of a run may do: {name} would not start"
            yield WordProblem(COMMAND_PREFIX, at, message, f"Start {name} without {one}.")
        elif one in CONTAINER_PROGRAMS:
            message = (
                f"{one} would start {name} in a container inside the run's, without its hosts and its SSH"
            )
            yield WordProblem(
                COMMAND_PREFIX,
                at,
                message,
                f"Use that image as the run's image, and start {name} without {one}.",
            )
        elif one in REMOTE_SHELLS:
            message = (
                f"{one} names a host to start {name} on, but the run's hosts are only known when it starts"
            )
            edit = WordEdit(found.peeled.at, found.start.begin) if found.script is None else None
            yield WordProblem(COMMAND_HOSTS, at, message, f"Start {name} without {one}.", edit)
        elif one in ONE_HOST_PROFILERS and kept.job.uses_mpi and kept.job.workers > 1:
            message = (
                f"{one} starts {name}, so it sees {name} and the ranks next to it, but none on other workers"
            )
            hint = f"To see the ranks, put {one} after the options of {name}, before the program."
            yield WordProblem(COMMAND_BEHIND, at, message, hint)
        elif found.script is None and ASSIGNMENT_PATTERN.fullmatch(kept.job.command[found.peeled.at]):
            continue  # an assignment before the launcher has an error of its own
        elif one == found.guessed and one not in _PLAIN and one not in USER_CHANGING_PROGRAMS:
            message = f"gangplan does not know {one}; it assumes that {one} starts {name} once, with the words after it"
            hint = f"Start {name} itself if {one} is not needed."
            yield WordProblem(COMMAND_BEHIND, at, message, hint)
