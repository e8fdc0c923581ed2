"""Insert a word before the program of a run's command that marks each line with its rank."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model.job import Job
from gangplan.plan.flags import mpi_family_of
from gangplan.plan.launchers import FoundLauncher, UnreadableError, find_launchers
from gangplan.plan.problems import WordEdit, correct_launcher_words_in_command
from gangplan.plan.unit import LaunchPlan

_TAGGED = ("mpi", "horovod")


def tag_rank_programs(job: Job, launch: LaunchPlan, word: str) -> tuple[str, ...]:
    """Return a launch's words with `word` before each program of a rank; unchanged if that is impossible.

    torchrun, which starts scripts by itself, gets an option to start `word` as a program.
    """
    argv = launch.argv
    if launch.is_wrapped:
        at = next(index for index, place in enumerate(launch.places) if place[:1] == ("command",))
        before, program = argv[:at], argv[at:]
        if launch.program == "torchrun" and before[-1] != "--no-python":
            before, program = (*before, "--no-python"), ("python", "-u", *program)
        return (*before, word, *program)
    try:
        found = find_launchers(argv, mpi_family_of(job))
    except UnreadableError:
        return argv
    for one in reversed(found):
        if one.start.launcher.kind in _TAGGED:
            argv = _insert_rank_tag(argv, one, word)
    return argv


def _insert_rank_tag(argv: Sequence[str], found: FoundLauncher, word: str) -> tuple[str, ...]:
    edits = [WordEdit(begin, begin, (word,)) for begin, _ in found.reading.programs]
    return correct_launcher_words_in_command(argv, found, edits) or tuple(argv)
