"""Find folders that a script uses on the launcher, and that only the launcher or only the ranks have.

Source: Open MPI 4.1 and PRRTE 3.0, context_fns.c (ranks start in HOME where the launcher's folder is missing).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.folders import SCRATCH_FOLDER, is_in_folder
from gangplan.model.job import Job
from gangplan.model.pods import SCRATCH_VARIABLE
from gangplan.plan.launchers import FoundLauncher, program_name_of, read_script_commands
from gangplan.plan.launchers.shell import SimpleCommand
from gangplan.rules.commands import COMMAND_FOLDER
from gangplan.rules.model import WARNING

# What names a folder without needing it, or does nothing if it is not there.
_HARMLESS = frozenset(
    {
        *(
            "[",
            "[[",
            "df",
            "du",
            "echo",
            "export",
            "local",
            "ls",
            "printf",
            "readonly",
            "rm",
            "test",
            "unset",
        ),
        *("declare", "typeset"),
    }
)
_SCRATCH = re.compile(rf"\$(?:{SCRATCH_VARIABLE}\b|\{{{SCRATCH_VARIABLE}\}})")
_REDIRECTED = re.compile(r">[>|]?[ \t]*[\"']?([^\s\"';&|()<>]+)")
_ENTERING = ("cd", "pushd")


def check_folders_of_launcher(job: Job, found: Sequence[FoundLauncher]) -> Iterator[Problem]:
    """Yield the first folder that a script needs where it is not: the scratch of ranks on the launcher, or a
    folder below /tmp, in which the script starts ranks on other pods."""
    script, commands = read_script_commands(job.command)
    starts = [one for one in found if one.script is not None and one.script.is_direct]
    if script < 0 or not starts or not job.uses_mpi or job.launcher_runs_ranks:
        return
    begins = {one.script.words[0].begin for one in starts if one.script is not None}
    programs = [one for one in commands if one.words]
    first = next((index for index, one in enumerate(programs) if one.words[0].begin in begins), 0)
    own = [
        one
        for index, one in enumerate(programs)
        if one.words[0].begin not in begins and _is_certain(one, programs[first], index == first + 1)
    ]
    missing = [one for one in job.mounts if one.single]
    for what, path in _list_needed_paths(job, job.command[script], commands, own) if missing else ():
        for mount in missing:
            if is_in_folder(path, mount.path):
                message = (
                    f"'{what}' runs on the launcher, which has no {mount.path}: only the workers, where"
                    f" {starts[0].start.name} starts the ranks, mount it"
                )
                yield Problem(
                    ("command", script),
                    message,
                    _propose_shell_of_rank(starts[0].start.name, what),
                    COMMAND_FOLDER,
                )
                return
    yield from _find_private_folder(job, script, own, starts[0].start.name, max(begins))


def _is_certain(one: SimpleCommand, launch: SimpleCommand, is_next: bool) -> bool:
    """Return whether a command runs whenever the launch of a script does, or at its success."""
    is_outside = one.block == launch.block[: len(one.block)] or (is_next and launch.after == "&&")
    return is_outside and not one.tested_by and one.after != "||"


def _list_needed_paths(
    job: Job, text: str, commands: Sequence[SimpleCommand], own: Sequence[SimpleCommand]
) -> Iterator[tuple[str, str]]:
    """Yield what a script does on the launcher, each with a path that it needs there."""
    scratch = next((one.path for one in job.mounts if one.scratch), "")
    for one in own:
        if program_name_of(one.texts[0]) in _HARMLESS:
            continue
        for word in one.words[1:]:
            what = (
                text[one.words[0].begin : word.end]
                if word is one.words[1]
                else f"{one.texts[0]} ... {word.text}"
            )
            yield what, _SCRATCH.sub(scratch, word.text).rstrip("/") if scratch else word.text.rstrip("/")
    words = [word for one in commands for word in one.words]  # in the order of the text
    begins = [word.begin for word in words]
    for said in _REDIRECTED.finditer(text):
        before = bisect_right(begins, said.start()) - 1
        if before < 0 or said.start() >= words[before].end:
            path = said[1].strip("\"'")
            yield said[0], _SCRATCH.sub(scratch, path) if scratch else path


def _propose_shell_of_rank(name: str, what: str) -> str:
    if what.startswith(_ENTERING):
        return f"Let every rank do it: {name} ... bash -c '{what} && exec PROGRAM'."
    return "Do it in setup, which runs on the workers, or use a folder of a claim."


def _find_private_folder(
    job: Job, script: int, own: Sequence[SimpleCommand], name: str, end: int
) -> Iterator[Problem]:
    """Yield a folder below /tmp that a script enters before it starts the ranks, which are on other pods."""
    entered = ""
    for one in own:
        if one.words[0].begin > end or one.texts[0] not in _ENTERING or len(one.texts) < 2:
            continue
        entered = "" if one.words[1].is_open else one.texts[1]
    folder = entered.rstrip("/")
    is_mounted = any(is_in_folder(folder, one.path) for one in job.mounts)
    if folder != SCRATCH_FOLDER and is_in_folder(folder, SCRATCH_FOLDER) and not is_mounted:
        message = (
            f"{name} starts every rank in '{entered}', which only the launcher has: the ranks are on the"
            " workers, and start elsewhere or not at all"
        )
        help = "Use a folder of a claim, which every pod mounts."
        yield Problem(("command", script), message, help, COMMAND_FOLDER, level=WARNING)
