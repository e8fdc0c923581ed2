"""Find what a script sets up for its launcher alone: limits, files that it loads, variables that deepspeed keeps."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import (
    SHELL_NAMES,
    FoundLauncher,
    UnreadableError,
    find_script_index,
    program_name_of,
    strip_prefixes,
)
from gangplan.plan.launchers.shell import SimpleCommand, read_shell_commands
from gangplan.plan.preparation import (
    is_exporting_all,
    list_variables_exported_to_launcher,
    read_commands_up_to_launcher,
)
from gangplan.plan.problems import WordEdit, WordProblem, correct_launcher_words_in_command
from gangplan.plan.settings import find_launch_variable_settings
from gangplan.rules.commands import ENVIRONMENT_LOST
from gangplan.spec.flow import format_flow_style

# Programs that change the environment of the shell that starts them, with the words that make them do so.
_ACTIVATING = {
    "module": ("load", "add", "swap", "switch"),
    "spack": ("load", "env"),
}
# First letters of what deepspeed hands on without .deepspeed_env (launcher/runner.py and
# accelerator/cuda_accelerator.py, 0.17), and of what is for itself.
_KEPT = ("MLFLOW", "NCCL", "PYTHON", "MV2", "UCX", "LD_LIBRARY", "PATH", "PDSH_", "DS_ENV_FILE", "HOSTNAME")
_DEEPSPEED_FILE = ".deepspeed_env"


def check_lost_environment(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of each kind of setting that a launcher gets and its ranks do not, which SSH starts."""
    job, launcher = kept.job, kept.found.start.launcher
    is_deepspeed = launcher.kind == "deepspeed"
    if launcher.kind not in ("mpi", "horovod", "deepspeed"):
        return
    if is_deepspeed and job.workers == 1:
        return  # deepspeed starts the ranks of a single host itself
    limits, loads = _list_settings_before_launcher(kept.found)
    if limits:
        yield from _find_lost_settings(kept, limits, _is_limit)
    by_hydra = any(use.value.lower() in ("mpich", "impi") for use in kept.found.reading.of("agent"))
    if launcher.kind == "horovod" or launcher.style == "hydra" or (is_deepspeed and by_hydra):
        return  # these hand on the whole environment
    if loads:
        yield from _find_lost_settings(kept, loads, _is_load)
    if is_deepspeed:
        yield from _find_variables_lost_by_deepspeed(kept)


def _list_settings_before_launcher(
    found: FoundLauncher,
) -> tuple[Sequence[SimpleCommand], Sequence[SimpleCommand]]:
    """Return what a launcher's script sets before it: limits, and variables whose names are not known."""
    script = found.script
    if script is None or not script.is_direct:
        return (), ()
    limits, loads = (
        [one for one in of_script if one.words[0].begin < script.words[0].begin]
        for of_script in _list_limits_and_loads(script.text)
    )
    return limits, loads


@lru_cache(maxsize=4)  # asked for each launcher of a script
def _list_limits_and_loads(text: str) -> tuple[tuple[SimpleCommand, ...], tuple[SimpleCommand, ...]]:
    commands = [one for one in read_shell_commands(text) if one.words]
    return tuple(filter(_is_limit, commands)), tuple(filter(_is_load, commands))


def _is_limit(command: SimpleCommand) -> bool:
    """Return whether a command sets a limit; without a value, ulimit prints one."""
    return command.texts[0] == "ulimit" and command.texts[-1] != "ulimit" and command.texts[-1][:1] != "-"


def _is_load(command: SimpleCommand) -> bool:
    """Return whether a command sets variables whose names are only known when it runs.

    An environment of Python or Conda mostly matters for PATH, which Open MPI and deepspeed hand on.
    """
    head, *rest = command.texts
    if any(one.endswith(("bin/activate", "conda.sh")) or "conda shell" in one for one in rest):
        return False
    if head in ("source", "."):
        return bool(rest)
    if head in ("eval", "export"):
        return bool(rest) and rest[0].startswith(("$(", "`"))
    return head == "ml" or rest[:1] in [[one] for one in _ACTIVATING.get(program_name_of(head), ())]


def _find_lost_settings(
    kept: LauncherCall,
    lost: Sequence[SimpleCommand],
    is_same: Callable[[SimpleCommand], bool],
) -> Iterator[WordProblem]:
    """Yield a problem of commands of a script that ranks do not run themselves."""
    if _is_left_to_ranks(kept, is_same) or (is_same is _is_load and _has_names_of_unknown_variables(kept)):
        return
    script, name = kept.found.script, kept.name
    assert script is not None  # only scripts have commands before the launcher
    shown = script.text[lost[-1].words[0].begin : lost[-1].words[-1].end]
    who = "ranks on other workers" if kept.job.launcher_runs_ranks else "ranks"
    by_rank = f"et every rank do it: {name} ... bash -c '{shown}; exec PROGRAM'."
    is_deepspeed = kept.found.start.launcher.kind == "deepspeed"
    if is_same is _is_limit:
        message = (
            f"'{shown}' sets a limit for {name} alone: SSH starts {who} with the limits of their own pods"
        )
        hint = "Set it in the program, with Python's resource.setrlimit." if is_deepspeed else f"L{by_rank}"
    elif is_deepspeed:
        message = (
            f"'{shown}' sets variables for {name} alone: {who} get what env in the spec sets, and few others"
        )
        hint = "Write the variables that ranks need under env."
    else:
        message = f"'{shown}' sets variables for {name} alone: {who} get PATH, LD_LIBRARY_PATH and those that -x names"
        hint = f"Name each variable that ranks need, as -x NAME; or l{by_rank}"
    before = [one for one in read_commands_up_to_launcher(kept.found) if one.words][:-1]
    right = _start_shell_on_every_rank(kept, before)
    yield WordProblem(ENVIRONMENT_LOST, kept.found.start.at, message, hint, command=right)


def _is_left_to_ranks(kept: LauncherCall, is_same: Callable[[SimpleCommand], bool]) -> bool:
    """Return whether what a launcher starts does such a thing itself, or may do so in a file of its own."""
    reading = kept.found.reading
    return bool(reading.programs) and all(
        _may_do_itself(reading.words[begin:end], is_same) for begin, end in reading.programs
    )


def _may_do_itself(words: Sequence[str], is_same: Callable[[SimpleCommand], bool]) -> bool:
    at = strip_prefixes(words).at
    name = program_name_of(words[at]) if at < len(words) else ""
    if name not in SHELL_NAMES:
        return name.endswith((".sh", ".bash"))
    script = find_script_index(words, at)
    try:
        return script < 0 or any(one.words and is_same(one) for one in read_shell_commands(words[script]))
    except UnreadableError:
        return True


def _has_names_of_unknown_variables(kept: LauncherCall) -> bool:
    """Return whether -x names variables that neither the spec nor the script sets, so only what it loads does."""
    known = {"PATH", "LD_LIBRARY_PATH", *(one.name for one in kept.job.env)}
    known.update(list_variables_exported_to_launcher(kept.job.command, kept.found))
    uses = kept.found.reading.of("env")
    return any("=" not in use.value and use.value not in known for use in uses)


def _start_shell_on_every_rank(kept: LauncherCall, before: Sequence[SimpleCommand]) -> tuple[str, ...]:
    """Return the command with a shell on every rank that does what the script does before its launcher.

    It is empty if the words depend on variables that a rank may not have.
    """
    reading, script, command = kept.found.reading, kept.found.script, kept.job.command
    if script is None or reading.launcher.kind == "deepspeed" or len(reading.programs) != 1:
        return ()
    begin, end = reading.programs[0]
    own = [one for one in before if _is_limit(one) or _is_load(one) or _switches_exports(one)]
    if any(word.is_open for word in script.words[begin:end]) or any(
        w.names for one in own for w in one.words
    ):
        return ()
    texts = [script.text[one.words[0].begin : one.words[-1].end] for one in own]
    inner = "; ".join([*texts, f"exec {shlex.join(reading.words[begin:end])}"])
    shell = command[strip_prefixes(command).at : script.at]
    edit = WordEdit(begin, end, (*shell, inner))
    return correct_launcher_words_in_command(command, kept.found, [edit]) or ()


def _switches_exports(command: SimpleCommand) -> bool:
    """Return whether a command is `set -a` or `set +a`, so that it does not matter what was before."""
    texts = command.texts
    return texts[0] == "set" and is_exporting_all(texts, False) == is_exporting_all(texts, True)


def _find_variables_lost_by_deepspeed(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of variables that a command sets for deepspeed, which hands ranks only some by itself.

    gangplan writes those of the spec into the file with those for ranks, which win (templates/launch/launcher.sh).
    """
    job, found = kept.job, kept.found
    if found.script is not None and _DEEPSPEED_FILE in found.script.text:
        return
    settings = find_launch_variable_settings(job, [found])
    values = {one.name: one.value for one in settings if one.path[0] == "command"}
    given = {one.name: values.get(one.name) if one.is_own else one.value for one in job.env}
    names = list_variables_exported_to_launcher(job.command, found)
    lost = [
        name
        for name in names
        if (given[name] != values.get(name) if name in given else not name.startswith(_KEPT))
    ]
    if not lost:
        return
    message = f"no rank gets the command's {', '.join(lost)}: deepspeed hands on what env in the spec sets, and few others"
    is_known = all("$" not in values.get(name, "$") and values[name][:1] != "~" for name in lost)
    hint = f"Run env | grep -E '^({'|'.join(lost)})=' >>~/{_DEEPSPEED_FILE} before deepspeed."
    if is_known or found.script is None:
        hint = f"Write env: {format_flow_style({name: values[name] for name in lost})} instead."
    words = found.reading.words if found.script is None else ()
    at = next((index for index, word in enumerate(words) if word.startswith(f"{lost[0]}=")), found.start.at)
    yield WordProblem(ENVIRONMENT_LOST, at, message, hint)
