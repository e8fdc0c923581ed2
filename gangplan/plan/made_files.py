"""Find files that a script makes in many ranks at once, or on the launcher alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.folders import is_in_folder
from gangplan.model.job import Job
from gangplan.plan.downloads import KEPT_PACKAGES, describe_installation
from gangplan.plan.launchers import FoundLauncher, read_script_commands
from gangplan.plan.launchers.prefixes import strip_prefixes
from gangplan.plan.launchers.programs import read_started_program
from gangplan.plan.launchers.shell import SimpleCommand
from gangplan.plan.operators import SoundnessCheck, propose_sound_command_help
from gangplan.plan.scripts import is_stopping_at_failure
from gangplan.rules.commands import COMMAND_REPEATED, PACKAGES_LOST

# What makes a folder or a link that may not be there yet: only the first of many succeeds.
_CLONES = re.compile(r"git (?:-[cC] \S+ )*clone\b(?! --help)")
_CREATES = re.compile(
    r"mkdir (?!(?:.* )?(?:-\w*p\w*|--parents)(?: |$))|ln (?!(?:.* )?(?:-\w*f\w*|--force)(?: |$))"
)
_BUILDS = re.compile(
    r"(?:g?make|ninja)(?: (?!-n\b|--version)|$)|cmake (?!-E |--version|--help)|setup\.py (?:build|install|develop)"
    r"|(?:gcc|g\+\+|clang|clang\+\+|nvcc|hipcc|gfortran|icx|icpx|ifx|mpi(?:cc|cxx|CC|c\+\+|fort|f77|f90|icc|icx|icpx|ifx)) "
    r"(?:.* )?-o(?: |\S)"
)
# What writes into files that all ranks of a worker share.
_WRITES = re.compile(
    r"(?:pip3?|conda|mamba|micromamba|poetry|npm|uv) (?:pip |env )?(?:install|sync|create|update|add|ci)\b"
    r"|tar (?:(?:.* )?(?:--extract|-\w*x\w*)(?: |$)|\w*x\w*(?: |$))|unzip (?!-[ltvZp])"
    r"|wget (?!.*(?:-q?O ?-(?: |$)|--spider|--version))|curl (?:.* )?(?:-\w*[oO]|--output|--remote-name)(?: |=)(?!/dev/null|-(?: |$))"
)
# Words of scripts that know which rank they are, and names of files that differ from rank to rank.
_OF_ONE_RANK = re.compile(r"RANK|LOCALID|PROCID|RANDOM|\$\$|\bmktemp\b|\bflock\b")
_STARTED_BY_PYTHON = re.compile(r"(?:exec )?python3?(?: -u)? (?=-m \S|[^\s-])")
_READ = 500  # letters of a command: these patterns look again and again into long words
_DOES_NOT_END = ("&", "||")
_ELSEWHERE = "Put it into the image, or make it on a claim, in a step that runs before the workers."
_KEPT_FILES = "Put it into the image, or make it in a folder of a claim, which every worker mounts."
# Commands of a shell that change which environment packages go to.
_ACTIVATING = (".", "source", "conda", "mamba", "micromamba")


def check_made_files(
    job: Job, found: Sequence[FoundLauncher], is_wrapped: bool, is_sound: SoundnessCheck
) -> Iterator[Problem]:
    """Yield the first thing that a script makes where many ranks do it at once, or none of them finds it."""
    script, commands = read_script_commands(job.command)
    programs = [one for one in commands if one.words]
    if script < 0 or not programs:
        return
    starts = [one for one in found if one.script is not None and one.script.is_direct]
    if job.uses_mpi and starts:
        yield from _find_files_of_launcher(job, script, programs, starts)
        return
    last = programs[-1]
    if starts:
        begin = max(one.script.words[0].begin for one in starts if one.script is not None)
        last = next((one for one in programs if one.words[-1].end > begin), last)
    if (is_wrapped or starts) and not _OF_ONE_RANK.search(job.command[script]):
        yield from _find_files_of_all_ranks(job, script, programs, last, bool(starts), is_sound)


def _find_files_of_all_ranks(
    job: Job,
    script: int,
    programs: Sequence[SimpleCommand],
    last: SimpleCommand,
    is_once_a_worker: bool,
    is_sound: SoundnessCheck,
) -> Iterator[Problem]:
    """Yield the first thing that ranks make next to each other, or workers on a volume."""
    is_shared = _is_on_volume(job, job.workdir)
    is_stopping = is_stopping_at_failure(job.command[:script], programs)
    for one in programs[: programs.index(last)]:
        if one.texts[0] in ("cd", "pushd"):
            target = one.texts[-1]
            if "$" in target or "`" in target:
                return
            is_shared = _is_on_volume(job, target) or (is_shared and not target.startswith(("/", "~")))
        is_certain = (
            one.block == last.block[: len(one.block)] and not one.tested_by and one.after not in _DOES_NOT_END
        )
        what, makes = _describe_making(one.texts, is_stopping or one.after == "&&")
        if not what or not is_certain:
            continue
        is_everywhere = is_shared or any(_is_on_volume(job, word) for word in one.texts)
        alone, many = (1, job.workers) if is_once_a_worker else (job.slots, job.ranks)
        if (many if is_everywhere else alone) < 2:
            continue
        unit = "workers" if is_once_a_worker else "ranks"
        who = (
            f"all {many} {unit}" if is_everywhere or job.workers == 1 else f"the {alone} ranks of each worker"
        )
        help = _ELSEWHERE
        if job.image.framework == "torch" and not is_everywhere:
            help = _propose_torchrun(job, script, last, is_sound)
        message = f"'{what}' runs in {who} at the same time, in one folder: {makes}"
        yield Problem(("command", script), message, help, COMMAND_REPEATED)
        return


def _propose_torchrun(job: Job, script: int, last: SimpleCommand, is_sound: SoundnessCheck) -> str:
    """Return a help that lets the script run once on each worker, and start its ranks there."""
    text, begin = job.command[script], last.words[0].begin
    found = _STARTED_BY_PYTHON.match(text, begin)
    if found is None:
        return _ELSEWHERE
    right = f"{text[:begin]}torchrun {text[found.end() :]}"
    words = (*job.command[:script], right, *job.command[script + 1 :])
    return propose_sound_command_help(job, words, _ELSEWHERE, is_sound)


def _describe_making(words: Sequence[str], is_failure_noticed: bool) -> tuple[str, str]:
    """Return the words of a program that makes files, and what becomes of them if many do so; empty if it is none."""
    at = strip_prefixes(words).at
    name = read_started_program(words, at)[:_READ] if at < len(words) else ""
    if (_CREATES.match(name) and is_failure_noticed) or _CLONES.match(name):
        return _shorten(name), "it fails in all but the first"
    if _BUILDS.match(name) or _WRITES.match(name):
        return _shorten(name), "they write the same files, and some read what others have half written"
    return "", ""


def _shorten(name: str) -> str:
    """Return the first words of a program, as many as say what it does."""
    first = name.split()
    return " ".join(first[:3] if first[0] in ("uv", "tar") else first[:2])


def _find_files_of_launcher(
    job: Job, script: int, programs: Sequence[SimpleCommand], starts: Sequence[FoundLauncher]
) -> Iterator[Problem]:
    """Yield the first thing that a script makes before it starts ranks: the script runs on the launcher alone.

    What goes to a volume, into an environment there or into a named folder is not lost.
    """
    if job.launcher_runs_ranks and job.workers == 1:
        return
    end = max(one.script.words[0].begin for one in starts if one.script is not None)
    name = starts[0].start.name
    before = [one for one in programs if one.words[0].begin <= end]
    is_kept = any(_may_lead_to_volume(job, one) for one in before) or _is_on_volume(job, job.workdir)
    for one in before:
        words = one.texts[strip_prefixes(one.texts).at :]
        if words[:1] and words[0] in _ACTIVATING and any(_is_on_volume(job, word) for word in words[1:]):
            return
        what, help = describe_installation(words), KEPT_PACKAGES
        if what and _is_on_volume(job, words[0]):
            continue
        made = read_started_program(words, 0)[:_READ] if words else ""
        if not what and not is_kept and (_CLONES.match(made) or _BUILDS.match(made)) and _start_files(starts):
            what, help = _shorten(made), _KEPT_FILES
        if what:
            message = f"'{what}' runs on the launcher alone: the workers, where {name} starts the ranks, get nothing of it"
            yield Problem(("command", script), message, help, PACKAGES_LOST)
            return


def _start_files(starts: Sequence[FoundLauncher]) -> bool:
    """Return whether what launchers start names a file that is not said to be in the image."""
    words = [
        word for one in starts for begin, end in one.reading.programs for word in one.reading.words[begin:end]
    ]
    return any(word[:1] not in ("/", "-") and ("/" in word or word.endswith(".py")) for word in words)


def _may_lead_to_volume(job: Job, one: SimpleCommand) -> bool:
    """Return whether a command names a folder of a volume, or goes to one that is only known when it runs."""
    is_open = one.texts[0] in ("cd", "pushd") and any("$" in word or "`" in word for word in one.texts)
    return is_open or any(_is_on_volume(job, word) for word in one.texts)


def _is_on_volume(job: Job, path: str) -> bool:
    """Return whether a path is on a volume that all pods of the run share."""
    return any(is_in_folder(path, one.path) for one in job.mounts if not (one.scratch or one.own_claim))
