"""The final command: a plain program is wrapped so that every rank runs; an explicit launcher is checked.

What stands in `command` is read with the table of launchers (gangplan.plan.launchers) and then

- wrapped, when it starts no ranks by itself: mpirun or torchrun starts it once on every rank;
- kept, when it starts the ranks with a launcher that the image has; it gets what only the run knows;
- refused, when it would start other ranks than the plan has, on other hosts, or none.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from gangplan.findings import Problem
from gangplan.model.job import Elastic, Job
from gangplan.plan.downloads import download_problems
from gangplan.plan.env_problems import env_problems, own_problems
from gangplan.plan.flag_problems import flag_problems
from gangplan.plan.flags import carried, family_of, forwarded, own_options
from gangplan.plan.launch import Kept
from gangplan.plan.launchers import FoundLauncher, UnreadableError, find
from gangplan.plan.names import HOSTFILE as HOSTFILE
from gangplan.plan.names import HYDRA_HOSTFILE as HYDRA_HOSTFILE
from gangplan.plan.own_launcher import problems
from gangplan.plan.problems import Path, WordProblem, corrected, is_pasteable, listed
from gangplan.plan.setting_problems import setting_problems
from gangplan.plan.started_by import elsewhere_problems
from gangplan.plan.starts import start_problems
from gangplan.plan.words import length_problems, word_problems
from gangplan.records import dataclass
from gangplan.rules.commands import COMMAND_LAUNCHER, COMMAND_SCRIPT
from gangplan.rules.model import Severity
from gangplan.rules.specs import COMMAND_NESTED

_PYTHON = re.compile(r"python(3(\.[0-9]+)?)?")


@dataclass(frozen=True, slots=True)
class Final:
    """The argument vector that the launcher runs, who starts the ranks, and what is wrong.

    `places` names for each word the field of the spec that it stands in, as ("command", 2) or
    ("mpi", "flags", 0); empty for a word of gangplan's own.
    """

    argv: tuple[str, ...]
    launcher: str
    is_wrapped: bool
    places: tuple[Path, ...]
    problems: tuple[Problem, ...] = ()


def final_command(job: Job) -> Final:
    """The command of the launcher (of every worker for torch), with all that is wrong with it."""
    command = tuple(_fill(word, job) for word in job.command)
    if command != job.command:
        job = dataclasses.replace(job, command=command)
    final, found, script_problem = _final(job)
    problems = [
        *script_problem,
        *word_problems(job, is_sound),
        *_launch_problems(job, found),
        *(() if found else elsewhere_problems(job)),
        *flag_problems(job, found),
        *env_problems(job),
        *own_problems(job, found),
        *setting_problems(job, found, is_sound),
        *download_problems(job),
    ]
    problems += length_problems(job, final.argv, final.places)
    return dataclasses.replace(final, problems=tuple(dict.fromkeys(problems))) if problems else final


def is_sound(job: Job, command: tuple[str, ...]) -> bool:
    """Whether a command that a help proposes is right itself."""
    job = dataclasses.replace(job, command=command)
    _, found, script_problem = _final(job)
    elsewhere = () if found else elsewhere_problems(job)
    wrong = [one.severity for one in (*script_problem, *word_problems(job), *elsewhere)]
    wrong += [one.severity for launch in found for one in _all_problems(job, launch)]
    return Severity.ERROR not in wrong


def _final(job: Job) -> tuple[Final, list[FoundLauncher], list[Problem]]:
    """The final command as far as it can be told, and the launchers in it."""
    try:
        found = find(job.command, family_of(job))
    except UnreadableError as error:
        message = f"the script cannot be read: {error} is not closed"
        return _wrapped(job), [], [Problem(("command",), message, "Close it.", COMMAND_SCRIPT)]
    if job.image.framework == "plain":
        # What a worker starts on itself is the program's own affair; only a launcher with hosts is not.
        found = [one for one in found if one.start.launcher.kind in ("mpi", "horovod", "deepspeed")]
    return (_kept(job, found) if found else _wrapped(job)), found, []


def _fill(word: str, job: Job) -> str:
    """{ranks}, {workers} and {slots} in a word; other braces stay."""
    for name, value in (("{ranks}", job.ranks), ("{workers}", job.workers), ("{slots}", job.slots)):
        word = word.replace(name, str(value))
    return word


def _wrapped(job: Job) -> Final:
    """The command on every rank."""
    words = job.command
    own = tuple(("command", index) for index in range(len(words)))
    if job.image.framework == "torch":
        return _under_torchrun(words, own, job.elastic)
    if not job.uses_mpi:
        return Final(words, "", True, own)
    options = own_options(job)
    flags = tuple(("mpi", "flags", index) for index in range(len(job.mpi_flags)))
    places: tuple[Path, ...] = ((), *(() for _ in options), *flags, *own)
    return Final(("mpirun", *options, *job.mpi_flags, *words), "mpirun", True, places)


def _under_torchrun(words: tuple[str, ...], own: tuple[Path, ...], elastic: Elastic | None) -> Final:
    """torchrun reads node count, rank and address from the PET_* variables that Trainer sets.

    It starts scripts and modules with the interpreter beside it. Another interpreter, one with options of its
    own (torchrun would take them for its own) and any other program are started as they are.
    """
    added: tuple[str, ...] = ()
    if elastic is not None:
        from gangplan.plan.elastic import options  # few runs are elastic

        added = options(elastic)
    takes_over = _PYTHON.fullmatch(words[0]) and len(words) > 1
    if takes_over and (not words[1].startswith("-") or (words[1] == "-m" and len(words) > 2)):
        places = ((), *(() for _ in added), *own[1:])
        return Final(("torchrun", *added, *words[1:]), "torchrun", True, places)
    added = (*added, "--no-python")
    return Final(("torchrun", *added, *words), "torchrun", True, ((), *(() for _ in added), *own))


def _kept(job: Job, found: list[FoundLauncher]) -> Final:
    """The user's own launchers, each given what only the run knows."""
    words = list(job.command)
    places: list[Path] = [("command", index) for index in range(len(words))]
    for launch in found:
        added = tuple(_added(job, launch))
        if not added:
            continue
        if launch.script is None:
            behind = launch.start.at + 1
            words[behind:behind] = added
            places[behind:behind] = [()] * len(added)
    ends = [(one.script.words[one.start.at].end, one) for one in found if one.script and one.script.is_direct]
    for end, launch in sorted(ends, key=lambda one: -one[0]):  # from the end, so that places stay
        assert launch.script is not None
        options, text = " ".join(_added(job, launch)), words[launch.script.at]
        words[launch.script.at] = f"{text[:end]} {options}{text[end:]}" if options else text
    return Final(tuple(words), found[0].start.launcher.name, False, tuple(places))


def _added(job: Job, launch: FoundLauncher) -> Iterator[str]:
    """What a kept launcher needs to be told: variables to carry, hosts, the port of SSH."""
    kind, reading = launch.start.launcher.kind, launch.reading
    if kind == "mpi":
        own = tuple(name for name, _ in launch.peeled.sets)
        names = (*forwarded(job), *own)
        yield from carried(job, reading, names)
    elif kind in ("horovod", "deepspeed"):
        # horovodrun runs on its own host only unless it is given hosts, and asks port 22 unless told.
        if not any(reading.of("hostfile", "hosts")):
            yield from ("--hostfile", HOSTFILE)
        if kind == "horovod" and not any(reading.of("port")):
            yield from ("--ssh-port", str(job.image.ssh.port))


def _all_problems(job: Job, launch: FoundLauncher) -> list[WordProblem]:
    """Everything wrong with one launcher: where it cannot work at all, only that."""
    kept = Kept(job, launch)
    wrong = list(start_problems(kept))
    if any(one.rule in (COMMAND_LAUNCHER, COMMAND_NESTED) for one in wrong):
        return wrong
    return [*wrong, *problems(kept)]


def _launch_problems(job: Job, found: list[FoundLauncher]) -> Iterator[Problem]:
    """Problems of the launchers, each with the whole command as it would be right."""
    for launch in found:
        wrong = _all_problems(job, launch)
        right = _right(job, launch, wrong)
        for one in wrong:
            index = one.at if launch.script is None else launch.script.at
            path: Path = ("command", min(index, len(job.command) - 1))
            help = f"{one.hint} {right}".strip()
            if one.command and is_pasteable(one.command) and is_sound(job, one.command):
                help = f"Write command: {listed(one.command)}."
            yield Problem(path, one.message, help, one.rule)


def _right(job: Job, launch: FoundLauncher, wrong: list[WordProblem]) -> str:
    """The command with everything corrected, as a sentence; empty where that is not known to be right."""
    edits = [one.edit for one in wrong if one.edit is not None]
    if not edits or len(edits) < sum(one.severity is Severity.ERROR for one in wrong):
        return ""
    right = corrected(job.command, launch, list(dict.fromkeys(edits)))
    if right is None or not is_pasteable(right) or not is_sound(job, right):
        return ""
    return f"Write command: {listed(right)}."
