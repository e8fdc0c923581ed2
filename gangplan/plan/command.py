"""The final command: a plain program is wrapped so that it runs on every rank; an explicit launcher is
checked.

The words of `command` are read with the table of launchers (gangplan.plan.launchers), and the command is then

- wrapped, if it starts no ranks itself: mpirun or torchrun starts it once per rank;
- kept, if it starts the ranks with a launcher that the image contains; gangplan adds what only the run knows;
- refused, if it would start other ranks than planned, on other hosts, or no ranks at all.
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
    """The argument vector that the launcher runs, the program that starts the ranks, and the problems found.

    `places` names the spec field that each word comes from, such as ("command", 2) or ("mpi", "flags", 0); it
    is empty for a word that gangplan added.
    """

    argv: tuple[str, ...]
    launcher: str
    is_wrapped: bool
    places: tuple[Path, ...]
    problems: tuple[Problem, ...] = ()


def final_command(job: Job) -> Final:
    """Return the command of the launcher (for torch, of every worker) with all problems found in it."""
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
    """Return whether a command that a help proposes has no errors itself."""
    job = dataclasses.replace(job, command=command)
    _, found, script_problem = _final(job)
    elsewhere = () if found else elsewhere_problems(job)
    wrong = [one.severity for one in (*script_problem, *word_problems(job), *elsewhere)]
    wrong += [one.severity for launch in found for one in _all_problems(job, launch)]
    return Severity.ERROR not in wrong


def _final(job: Job) -> tuple[Final, list[FoundLauncher], list[Problem]]:
    """Return the final command as far as it can be determined, and the launchers found in it."""
    try:
        found = find(job.command, family_of(job))
    except UnreadableError as error:
        message = f"the script cannot be read: {error} is not closed"
        return _wrapped(job), [], [Problem(("command",), message, "Close it.", COMMAND_SCRIPT)]
    if job.image.framework == "plain":
        # What a worker starts on itself is up to the program; only launchers that use hosts are checked.
        found = [one for one in found if one.start.launcher.kind in ("mpi", "horovod", "deepspeed")]
    return (_kept(job, found) if found else _wrapped(job)), found, []


def _fill(word: str, job: Job) -> str:
    """Replace {ranks}, {workers} and {slots} in a word; leave other braces alone."""
    for name, value in (("{ranks}", job.ranks), ("{workers}", job.workers), ("{slots}", job.slots)):
        word = word.replace(name, str(value))
    return word


def _wrapped(job: Job) -> Final:
    """Return the command wrapped so that it runs on every rank."""
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
    """Return the command under torchrun.

    torchrun reads node count, rank and address from the PET_* variables that Trainer sets. It starts scripts
    and modules with the interpreter next to it; another interpreter, one with options (torchrun would take
    them for its own) and any other program are started unchanged.
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
    """Return the user's command, with what only the run knows added to each launcher."""
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
    for end, launch in sorted(ends, key=lambda one: -one[0]):  # backwards, so that offsets stay valid
        assert launch.script is not None
        options, text = " ".join(_added(job, launch)), words[launch.script.at]
        words[launch.script.at] = f"{text[:end]} {options}{text[end:]}" if options else text
    return Final(tuple(words), found[0].start.launcher.name, False, tuple(places))


def _added(job: Job, launch: FoundLauncher) -> Iterator[str]:
    """Yield the options that a user's launcher needs: variables to pass on, hosts, the SSH port."""
    kind, reading = launch.start.launcher.kind, launch.reading
    if kind == "mpi":
        own = tuple(name for name, _ in launch.peeled.sets)
        names = (*forwarded(job), *own)
        yield from carried(job, reading, names)
    elif kind in ("horovod", "deepspeed"):
        # horovodrun runs only on its own host unless it gets a list of hosts, and it uses port 22 by default.
        if not any(reading.of("hostfile", "hosts")):
            yield from ("--hostfile", HOSTFILE)
        if kind == "horovod" and not any(reading.of("port")):
            yield from ("--ssh-port", str(job.image.ssh.port))


def _all_problems(job: Job, launch: FoundLauncher) -> list[WordProblem]:
    """Return the problems of one launcher; if it cannot work at all, only those that say so."""
    kept = Kept(job, launch)
    wrong = list(start_problems(kept))
    if any(one.rule in (COMMAND_LAUNCHER, COMMAND_NESTED) for one in wrong):
        return wrong
    return [*wrong, *problems(kept)]


def _launch_problems(job: Job, found: list[FoundLauncher]) -> Iterator[Problem]:
    """Yield the problems of the launchers, each with the whole corrected command."""
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
    """Return a sentence with the corrected command, or an empty text if no sound correction is known."""
    edits = [one.edit for one in wrong if one.edit is not None]
    if not edits or len(edits) < sum(one.severity is Severity.ERROR for one in wrong):
        return ""
    right = corrected(job.command, launch, list(dict.fromkeys(edits)))
    if right is None or not is_pasteable(right) or not is_sound(job, right):
        return ""
    return f"Write command: {listed(right)}."
