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
from collections.abc import Callable, Iterator
from functools import cache

from gangplan.findings import FieldPath, Problem
from gangplan.model.frameworks import PADDLE_LOGS
from gangplan.model.job import ElasticLimits, Job
from gangplan.plan.counts import explain_smaller_launch
from gangplan.plan.downloads import check_command_downloads, check_system_packages
from gangplan.plan.env_problems import (
    check_env_values,
    check_meeting_names_in_env,
    check_paddle_options_in_env,
    check_per_pod_variables_on_launcher,
    check_torchrun_options_in_env,
    check_unstated_amounts_in_env,
)
from gangplan.plan.flag_problems import check_mpi_options, check_second_program
from gangplan.plan.flags import (
    build_open_mpi_export_options,
    build_own_mpirun_options,
    build_unbinding_options,
    find_launchers_of_job,
    is_pinned_by_user,
    list_open_mpi_forwarded_variables,
)
from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import FoundLauncher, UnreadableError, find_script_index, strip_prefixes
from gangplan.plan.names import HOSTFILE_PATH as HOSTFILE_PATH
from gangplan.plan.names import HYDRA_HOSTFILE_PATH as HYDRA_HOSTFILE_PATH
from gangplan.plan.operators import SoundnessCheck
from gangplan.plan.own_launcher import check_user_launcher_options
from gangplan.plan.problems import (
    WordProblem,
    correct_launcher_words_in_command,
    format_flow_list,
    is_pasteable,
)
from gangplan.plan.scripts import (
    check_exit_code_of_script,
    check_shell_script,
    check_waiting_command,
    check_words_after_script,
)
from gangplan.plan.setting_problems import check_launch_variable_settings
from gangplan.plan.started_by import check_container_programs, check_outer_launch_program
from gangplan.plan.starts import check_launcher_start, needs_hosts
from gangplan.plan.words import check_command_word_lengths, check_command_words
from gangplan.records import dataclass
from gangplan.rules.commands import COMMAND_LAUNCHER, COMMAND_SCRIPT
from gangplan.rules.model import Severity
from gangplan.rules.specs import COMMAND_NESTED

_PYTHON = re.compile(r"python(3(\.[0-9]+)?)?")


@dataclass(frozen=True, slots=True)
class FinalCommand:
    """The argument vector that the launcher runs, the program that starts the ranks, and the problems found.

    `places` names the spec field that each word comes from, such as ("command", 2) or ("mpi", "flags", 0); it
    is empty for a word that gangplan added.
    """

    argv: tuple[str, ...]
    launcher: str
    is_wrapped: bool
    places: tuple[FieldPath, ...]
    problems: tuple[Problem, ...] = ()


def build_final_command(job: Job) -> FinalCommand:
    """Return the command of the launcher (for torch, of every worker) with all problems found in it."""
    command = tuple(_fill_rank_placeholders(word, job) for word in job.command)
    if command != job.command:
        job = dataclasses.replace(job, command=command)
    final, found, script_problem = _resolve_final_command(job)
    problems = [
        *script_problem,
        *_find_workers_training_alone(job),
        *check_command_words(job, is_proposed_command_sound),
        *_find_launcher_problems(job, found),
        *(check_container_programs(job, found) if found else check_outer_launch_program(job)),
        *(() if found else _find_removed_variables(job)),
        *_check_scripts(job, found, is_proposed_command_sound),
        *check_mpi_options(job, found),
        *check_env_values(job),
        *check_meeting_names_in_env(job),
        *check_torchrun_options_in_env(job, found),
        *check_paddle_options_in_env(job),
        *check_unstated_amounts_in_env(job),
        *check_per_pod_variables_on_launcher(job, found),
        *check_launch_variable_settings(job, found, is_proposed_command_sound),
        *check_system_packages(job),
        *check_command_downloads(job),
        *_find_made_files(job, found, final.is_wrapped),
    ]
    problems += check_command_word_lengths(job, final.argv, final.places)
    return dataclasses.replace(final, problems=tuple(dict.fromkeys(problems))) if problems else final


def _find_workers_training_alone(job: Job) -> Iterator[Problem]:
    if job.image.framework == "plain" and job.workers > 1:
        from gangplan.plan.own_processes import check_workers_training_alone  # few runs are of this kind

        try:
            found = find_launchers_of_job(job)
        except UnreadableError:  # reported already
            return
        yield from check_workers_training_alone(job, found)


def _find_removed_variables(job: Job) -> Iterator[Problem]:
    """Yield a problem of a command of the ranks that removes their variables; a mere program removes none."""
    if strip_prefixes(job.command).at or find_script_index(job.command, 0) >= 0:
        from gangplan.plan.launch_variables import check_variables_removed_from_ranks

        yield from check_variables_removed_from_ranks(job)


def _find_made_files(job: Job, found: list[FoundLauncher], is_wrapped: bool) -> Iterator[Problem]:
    if find_script_index(job.command, 0) >= 0:
        # Few commands are scripts.
        from gangplan.plan.launcher_folders import check_folders_of_launcher
        from gangplan.plan.made_files import check_made_files

        yield from check_made_files(job, found, is_wrapped, is_proposed_command_sound)
        yield from check_folders_of_launcher(job, found)


def is_proposed_command_sound(job: Job, command: tuple[str, ...]) -> bool:
    """Return whether a command that a help proposes has no errors itself."""
    job = dataclasses.replace(job, command=command)
    _, found, script_problem = _resolve_final_command(job)
    elsewhere = () if found else (*check_outer_launch_program(job), *check_second_program(job))
    scripts = _check_scripts(job, found)
    parts = check_second_program(job) if job.uses_mpi and not found else ()
    wrong = [
        one.severity for one in (*script_problem, *check_command_words(job), *elsewhere, *scripts, *parts)
    ]
    wrong += [one.severity for launch in found for one in _list_launcher_word_problems(job, launch)]
    return Severity.ERROR not in wrong


def _check_scripts(
    job: Job, found: list[FoundLauncher], is_sound: SoundnessCheck | None = None
) -> Iterator[Problem]:
    """Yield the problems of a shell's script; what launchers in it lack, they report themselves."""
    yield from check_words_after_script(job, is_sound) if found else check_shell_script(job, is_sound)
    yield from check_exit_code_of_script(job, is_sound)
    yield from check_waiting_command(job)
    if find_script_index(job.command, 0) >= 0:
        from gangplan.plan import script_lines  # few commands are scripts

        yield from script_lines.check_lines_of_script(job)
        yield from script_lines.check_shell_of_script(job, is_sound)
        yield from script_lines.check_commands_after_exec(job, is_sound)
        yield from script_lines.check_modules_of_script(job)


def _resolve_final_command(job: Job) -> tuple[FinalCommand, list[FoundLauncher], list[Problem]]:
    """Return the final command as far as it can be determined, and the launchers found in it."""
    try:
        found = find_launchers_of_job(job)
    except UnreadableError as error:
        message = f"the script cannot be read: {error} is not closed"
        return _wrap_command_for_ranks(job), [], [Problem(("command",), message, "Close it.", COMMAND_SCRIPT)]
    if job.image.framework == "plain":
        # What a worker starts on itself is up to the program; only launchers that use hosts are checked.
        found = [one for one in found if needs_hosts(one, job.workers)]
    return (_extend_user_launchers(job, found) if found else _wrap_command_for_ranks(job)), found, []


# A brace before it is Jinja's, and a dollar sign makes it a variable of a shell or of Hydra.
_PLACEHOLDER = re.compile(r"(?<![${])\{(ranks|workers|slots)\}(?!\})")


def _fill_rank_placeholders(word: str, job: Job) -> str:
    """Replace {ranks}, {workers} and {slots} in a word; leave other braces alone, such as ${workers}."""
    values = {"ranks": job.ranks, "workers": job.workers, "slots": job.slots}
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), word) if "{" in word else word


def _wrap_command_for_ranks(job: Job) -> FinalCommand:
    """Return the command wrapped so that it runs on every rank."""
    words = job.command
    own = tuple(("command", index) for index in range(len(words)))
    if job.image.framework == "torch":
        return _wrap_command_in_torchrun(words, own, job.elastic)
    if job.image.framework == "paddle":
        return _wrap_command_in_paddle_launch(words, own)
    if not job.uses_mpi:
        return FinalCommand(words, "", True, own)
    options = build_own_mpirun_options(job)
    flags = tuple(("mpi", "flags", index) for index in range(len(job.mpi_flags)))
    places: tuple[FieldPath, ...] = ((), *(() for _ in options), *flags, *own)
    return FinalCommand(("mpirun", *options, *job.mpi_flags, *words), "mpirun", True, places)


def _wrap_command_in_torchrun(
    words: tuple[str, ...], own: tuple[FieldPath, ...], elastic: ElasticLimits | None
) -> FinalCommand:
    """Return the command under torchrun.

    torchrun reads node count, rank and address from the PET_* variables that Trainer sets. It starts scripts
    and modules with the interpreter next to it; another interpreter, one with options (torchrun would take
    them for its own) and any other program are started unchanged.
    """
    added: tuple[str, ...] = ()
    if elastic is not None:
        from gangplan.plan.elastic import build_elastic_options  # few runs are elastic

        added = build_elastic_options(elastic)
    takes_over = _PYTHON.fullmatch(words[0]) and len(words) > 1
    if takes_over and (not words[1].startswith("-") or (words[1] == "-m" and len(words) > 2)):
        places = ((), *(() for _ in added), *own[1:])
        return FinalCommand(("torchrun", *added, *words[1:]), "torchrun", True, places)
    added = (*added, "--no-python")
    return FinalCommand(("torchrun", *added, *words), "torchrun", True, ((), *(() for _ in added), *own))


def _wrap_command_in_paddle_launch(words: tuple[str, ...], own: tuple[FieldPath, ...]) -> FinalCommand:
    """Return the command under Paddle's launcher, which reads hosts and counts from the PADDLE_* variables.

    It starts a script that ends in .py with its own interpreter, and any other first word as a program
    (paddlepaddle 3.3.1, distributed/launch/controllers/controller.py, _get_entrypoint).
    """
    is_script = _PYTHON.fullmatch(words[0]) and words[1:2] and words[1].endswith(".py")
    is_script = is_script and not words[1].startswith("-")
    begin = (words[0] if is_script else "python", "-m", "paddle.distributed.launch", "--log_dir", PADDLE_LOGS)
    rest = 1 if is_script else 0
    return FinalCommand(
        (*begin, *words[rest:]), "paddle.distributed.launch", True, (*(() for _ in begin), *own[rest:])
    )


def _extend_user_launchers(job: Job, found: list[FoundLauncher]) -> FinalCommand:
    """Return the user's command, with what only the run knows added to each launcher."""
    words = list(job.command)
    places: list[FieldPath] = [("command", index) for index in range(len(words))]
    is_pinned = cache(lambda: is_pinned_by_user(job))
    added = [(one, *more) for one in found for more in _list_needed_launcher_options(job, one, is_pinned)]
    for launch, begin, options in reversed(added):  # backwards, so that places stay valid
        if launch.script is None:
            words[begin:begin] = options
            places[begin:begin] = [()] * len(options)
        elif launch.script.is_direct and options:
            text, end = words[launch.script.at], launch.script.words[begin - 1].end
            words[launch.script.at] = " ".join((text[:end], *options)) + text[end:]
    return FinalCommand(tuple(words), found[0].start.launcher.name, False, tuple(places))


def _list_needed_launcher_options(
    job: Job, launch: FoundLauncher, is_pinned: Callable[[], bool]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the options that a user's launcher needs, each time with the index of the word that they go before.

    These are variables to pass on, hosts and the SSH port. In Open MPI 4, -x is for one of the programs that
    colons separate; in 5, those of the first are for all (tried with 4.1.8 and 5.0.11).
    """
    reading = launch.reading
    begins = [launch.start.at + 1]
    if reading.launcher.kind != "mpi":
        yield begins[0], tuple(_list_other_launcher_options(job, launch))
        return
    from gangplan.plan.preparation import list_variables_exported_to_launcher  # few commands start mpirun

    if reading.launcher.style == "openmpi":
        begins += [end + 1 for _, end in reading.programs if end < len(reading.words)]
    names = list_open_mpi_forwarded_variables(job, list_variables_exported_to_launcher(job.command, launch))
    for part, begin in enumerate(begins):
        unbound = build_unbinding_options(job, reading, is_pinned) if not part else ()
        yield begin, (*build_open_mpi_export_options(job, reading, names, part), *unbound)


def _list_other_launcher_options(job: Job, launch: FoundLauncher) -> Iterator[str]:
    """Yield the options that a user's launcher needs if it is not one of an MPI."""
    kind, reading = launch.start.launcher.kind, launch.reading
    if kind == "paddle" and not any(reading.of("logs")):
        yield from ("--log_dir", PADDLE_LOGS)
    elif kind in ("horovod", "deepspeed"):
        # horovodrun runs only on its own host unless it gets a list of hosts, and it uses port 22 by default.
        if not any(reading.of("hostfile", "hosts")):
            yield from ("--hostfile", HOSTFILE_PATH)
        if kind == "horovod" and not any(reading.of("port")):
            yield from ("--ssh-port", str(job.image.ssh.port))


def _list_launcher_word_problems(job: Job, launch: FoundLauncher) -> list[WordProblem]:
    """Return the problems of one launcher; if it cannot work at all, only those that say so."""
    kept = LauncherCall(job, launch)
    wrong = list(check_launcher_start(kept))
    if any(one.rule in (COMMAND_LAUNCHER, COMMAND_NESTED) for one in wrong):
        return wrong
    return [*wrong, *check_user_launcher_options(kept)]


def _find_launcher_problems(job: Job, found: list[FoundLauncher]) -> Iterator[Problem]:
    """Yield the problems of the launchers; those that an edit corrects propose the whole command."""
    for launch in found:
        wrong = explain_smaller_launch(job, launch, found, _list_launcher_word_problems(job, launch))
        right = _format_corrected_launch_command(job, launch, wrong)
        for one in wrong:
            index = one.at if launch.script is None else launch.script.at
            path: FieldPath = ("command", min(index, len(job.command) - 1))
            help = f"{one.hint} {right}".strip() if one.edit is not None else one.hint
            if one.command and is_pasteable(one.command) and is_proposed_command_sound(job, one.command):
                help = f"Write command: {format_flow_list(one.command)}."
            yield Problem(path, one.message, help, one.rule)


def _format_corrected_launch_command(job: Job, launch: FoundLauncher, wrong: list[WordProblem]) -> str:
    """Return a sentence with the corrected command, or an empty text if no sound correction is known."""
    edits = [one.edit for one in wrong if one.edit is not None]
    if not edits or len(edits) < sum(one.severity is Severity.ERROR for one in wrong):
        return ""
    right = correct_launcher_words_in_command(job.command, launch, list(dict.fromkeys(edits)))
    if right is None or not is_pasteable(right) or not is_proposed_command_sound(job, right):
        return ""
    return f"Write command: {format_flow_list(right)}."
