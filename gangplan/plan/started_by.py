"""Check programs that start a launcher: some cannot, some see only part of a run, some are unknown."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import program_name_of
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

_PLAIN = frozenset({"script", "coverage", "memray", "scalene", "mprof", "kernprof", "viztracer"})


# Programs that need a daemon, or rights, that no pod of a run has to start containers. Apptainer and similar
# programs may work without, if nodes let users create namespaces.
_BY_DAEMON = frozenset({"docker", "podman", "nerdctl"})


def check_outer_launch_program(job: Job) -> Iterator[Problem]:
    """Yield problems of a program that would run on another host, in a container that cannot start, or too often."""
    at = strip_prefixes(job.command).at
    name = program_name_of(job.command[at]) if at < len(job.command) else ""
    if name in _BY_DAEMON:
        message = f"{name} needs a daemon, or rights, that no container of a run has"
        help = "Use its image as the run's image, and write only the program."
        yield Problem(("command", at), message, help, COMMAND_PREFIX)
    elif name in REMOTE_SHELLS:
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
