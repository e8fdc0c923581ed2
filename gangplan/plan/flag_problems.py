"""Check that mpi.flags, mpi.bindTo and mpi.mapBy take effect; one that does not is an error."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.flags import is_binding_option, mpi_family_of, read_mpi_flags
from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import MPI_LAUNCHERS, FoundLauncher, LauncherReading, read_launcher_words
from gangplan.plan.launchers.prefixes import StrippedPrefixes
from gangplan.plan.launchers.programs import LauncherStart
from gangplan.plan.own_launcher import check_user_launcher_options
from gangplan.plan.problems import format_flow_list, is_pasteable
from gangplan.rules.commands import (
    COMMAND_NO_PROGRAM,
    COMMAND_ONE_WORD,
    COMMAND_OPTION,
    MPI_TWICE,
    MPI_WITHOUT_EFFECT,
)
from gangplan.rules.specs import RANKS_MISMATCH


def check_mpi_options(job: Job, found: list[FoundLauncher]) -> Iterator[Problem]:
    """Yield the problems of a spec's MPI options."""
    if not job.uses_mpi or found:
        yield from _find_ineffective_mpi_options(job, found)
        return
    yield from _find_hydra_layout_problems(job)
    yield from _find_mpi_flag_problems(job)
    yield from check_second_program(job)


def check_second_program(job: Job) -> Iterator[Problem]:
    """Yield a problem of a colon in the command, which gangplan's own mpirun would take for its own."""
    if not job.uses_mpi or ":" not in job.command:
        return
    message = f"after ':', mpirun starts another program, in addition to the {job.ranks} ranks of the first"
    words = _list_programs_with_counts(job)
    help = f"Write mpirun, and ':' and -np N between its programs, so that all N add up to {job.ranks}."
    if words and is_pasteable(words):
        help = f"Write command: {format_flow_list(words)}."
    yield Problem(("command", job.command.index(":")), message, help, RANKS_MISMATCH)


def _list_programs_with_counts(job: Job) -> tuple[str, ...]:
    """Return the command behind mpirun, with a number of ranks for each program; the one without gets the rest."""
    reading = read_launcher_words(
        MPI_LAUNCHERS[mpi_family_of(job) or "OpenMPI5"], ("mpirun", *job.command), 0
    )
    counts = {use.part: use.value for use in reading.uses if use.option.role == "count"}
    numbers = {part: int(number) for part, number in counts.items() if number.isdecimal()}
    rest = job.ranks - sum(numbers.values())
    free = reading.parts - len(numbers)
    is_clear = len(numbers) == len(counts) == len(reading.uses) and len(reading.programs) == reading.parts
    if not is_clear or free > 1 or (rest < 1 if free else rest):
        return ()
    words: list[str] = []
    for part, (begin, end) in enumerate(reading.programs):
        between = (":",) if part else ("mpirun",)
        words += (*between, "-np", str(numbers.get(part, rest)), *reading.words[begin:end])
    return tuple(words)


def _find_ineffective_mpi_options(job: Job, found: list[FoundLauncher]) -> Iterator[Problem]:
    """Yield problems of options for an mpirun that gangplan does not start."""
    if not job.uses_mpi:
        by = "with torchrun" if job.image.framework == "torch" else "without MPI"
        why, help = f"image '{job.image.name}' starts its ranks {by}", "Remove it."
    else:
        name = found[0].start.name
        why = f"the command starts {name} itself"
        help = f"Remove it and give {name} the option in the command, or remove {name} from the command."
    set_ = (
        ("flags", bool(job.mpi_flags)),
        ("bindTo", job.bind_to != "none"),
        ("mapBy", job.map_by != "slot"),
    )
    for name, is_set in set_:
        if is_set:
            yield Problem(("mpi", name), f"mpi.{name} has no effect: {why}", help, MPI_WITHOUT_EFFECT)


def _find_hydra_layout_problems(job: Job) -> Iterator[Problem]:
    """Yield problems of layouts that Hydra cannot express."""
    family = mpi_family_of(job)
    if family in ("OpenMPI4", "OpenMPI5") or job.map_by in ("slot", "node"):
        return
    where = ("mpi", "mapBy")
    if family == "IntelMPI":
        message = f"Intel MPI has no option for mapBy: {job.map_by}; it lays ranks out by slot or by node"
        help = f"Remove it; bindTo: {job.map_by} binds each rank to one."
        yield Problem(where, message, help, MPI_WITHOUT_EFFECT)
    elif job.bind_to == "none" and "bind" not in {use.option.role for use in read_mpi_flags(job).uses}:
        message = f"MPICH lays ranks out by {job.map_by} only when they are bound, but bindTo is none"
        yield Problem(where, message, f"Add bindTo: {job.map_by}.", MPI_WITHOUT_EFFECT)


def _find_mpi_flag_problems(job: Job) -> Iterator[Problem]:
    """Yield problems of the entries of mpi.flags, read as the image's launcher reads them."""
    if not job.mpi_flags:
        return
    for index, flag in enumerate(job.mpi_flags):
        if flag.startswith("-") and any(mark.isspace() for mark in flag.partition("=")[0]):
            split = (*job.mpi_flags[:index], *flag.split(), *job.mpi_flags[index + 1 :])
            message = f"'{flag}' is one word with spaces, which no launcher splits"
            yield Problem(
                ("mpi", "flags", index), message, f"Write flags: {format_flow_list(split)}.", COMMAND_ONE_WORD
            )
            return
    if ":" in job.mpi_flags:
        where = ("mpi", "flags", job.mpi_flags.index(":"))
        message = "':' begins another program, but there is none before it"
        yield Problem(
            where, message, "Remove it; several programs need an mpirun in the command.", COMMAND_OPTION
        )
        return
    reading = read_mpi_flags(job)
    yield from _find_stray_mpi_flag_words(job, reading)
    families = frozenset({mpi_family_of(job) or ""})
    launch = FoundLauncher(
        LauncherStart(reading.launcher, 0, 0, reading.launcher.name, families), reading, StrippedPrefixes(0)
    )
    for one in check_user_launcher_options(LauncherCall(job, launch)):
        if one.rule == COMMAND_NO_PROGRAM and one.at == 0:
            continue
        path = ("mpi", "flags", min(max(one.at - 1, 0), len(job.mpi_flags) - 1))
        yield Problem(path, one.message, one.hint, one.rule)
    for role, name, is_set in (
        ("bind", "bindTo", job.bind_to != "none"),
        ("map", "mapBy", job.map_by != "slot"),
    ):
        for use in reading.uses:
            same = use.option.role == role or (role == "bind" and is_binding_option(use))
            if same and is_set:
                message = f"{use.spelled} repeats mpi.{name}"
                yield Problem(("mpi", "flags", use.at - 1), message, "Keep one of them.", MPI_TWICE)


def _find_stray_mpi_flag_words(job: Job, reading: LauncherReading) -> Iterator[Problem]:
    """Yield problems of words that are not options: mpirun would take the first of them for the program."""
    if reading.unknown or reading.program == ("",):
        return
    last = reading.uses[-1] if reading.uses else None
    if last is not None and last.option.role == "parameter" and "=" in last.value:
        return  # reported as a name and a value in one word
    if last is not None and last.end > len(reading.words) - 1:
        what = "a name and a value" if last.option.words == 2 else "a value"
        message = f"{last.spelled} of {reading.launcher.label} takes {what}"
        yield Problem(("mpi", "flags", last.at - 1), message, "Complete it, or remove it.", COMMAND_OPTION)
        return
    begin = reading.programs[0][0] if reading.programs else len(reading.words)
    if begin - 1 < len(job.mpi_flags):
        word = job.mpi_flags[begin - 1]
        message = f"'{word}' is not an option, so {reading.launcher.name} would start it as the program"
        yield Problem(
            ("mpi", "flags", begin - 1), message, "Remove it, or put its option before it.", COMMAND_OPTION
        )
