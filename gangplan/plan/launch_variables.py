"""Check the variables that a command sets or removes: a launcher and its ranks need those of the run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from gangplan.findings import FieldPath, Problem
from gangplan.model.frameworks import PADDLE_MODES, PADDLE_VARIABLES, START_VARIABLES
from gangplan.model.job import Job
from gangplan.plan.env_problems import explain_torchrun_variable
from gangplan.plan.environment import list_meeting_names
from gangplan.plan.flags import mpi_family_of
from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import FoundLauncher, read_script_commands, strip_prefixes
from gangplan.plan.launchers.prefixes import StrippedPrefixes
from gangplan.plan.launchers.shell import DECLARING, SimpleCommand
from gangplan.plan.preparation import (
    list_removed_variables,
    list_variables_exported_to_launcher,
    read_variables_before_launcher,
)
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.plan.reach import explain_broken_mpi_launch, explain_variable_of_scheduler, ssh_component_of
from gangplan.plan.reserved import (
    explain_taken_variable,
    is_launcher_variable,
    is_planned_value,
    is_reserved_variable,
)
from gangplan.rules.commands import COMMAND_RESERVED
from gangplan.rules.model import Severity

# What each rank of torch needs to meet the others (torch 2.9, distributed/rendezvous.py, _env_rendezvous_handler).
_OF_TORCH_RANKS = frozenset({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
# How the variables begin that a run sets for each MPI.
_OF_MPI = {"OpenMPI4": "OMPI_", "OpenMPI5": "PRTE_", "MPICH": "HYDRA_", "IntelMPI": "I_MPI_"}
# What torchrun takes for these without a variable and an option.
_TORCHRUN_DEFAULTS = {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "1", "PET_NODE_RANK": "0"}
# Commands whose output each host knows of itself, or that no image of a run has.
_OF_HOST = re.compile(
    r"(?:\$\(|`)\s*(?:hostname|scontrol|ip\s|ifconfig|uname|cat\s+/etc/hostname)|\$\{?HOSTNAME\b"
)
_LOADING = frozenset({"source", ".", "eval"})


def check_variables_before_launcher(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield problems of variables that a command sets or removes, and that its launcher needs as they are."""
    found, name = kept.found, kept.name
    given, removed = read_variables_before_launcher(found)
    outer = strip_prefixes(kept.job.command if found.script is not None else ())
    for words, peeled in ((kept.job.command, outer), (found.reading.words, found.peeled)):
        if peeled.clears >= 0:
            message = (
                f"env {words[peeled.clears]} clears the environment in which {name} finds the run's hosts"
            )
            edit = WordEdit(peeled.clears, peeled.clears + 1) if peeled is found.peeled else None
            yield WordProblem(COMMAND_RESERVED, peeled.clears, message, "Remove it.", edit)
    unset = (*outer.unset, *found.peeled.unset)
    unset = (*filter(is_launcher_variable, unset), *(one for one in removed if _is_told_by_run(kept, one)))
    for variable in sorted(unset):
        yield WordProblem(COMMAND_RESERVED, 0, f"{variable} is unset, but {name} needs it", "Keep it.")
    given = dict(outer.sets) | given | dict(found.peeled.sets)
    for variable in sorted(given):
        for what, hint in _explain_wrong_values(kept, variable, given):
            edit = _build_unassign_edit(found, variable)
            yield WordProblem(COMMAND_RESERVED, 0, f"{variable}{what}", hint, edit)


def _explain_wrong_values(
    kept: LauncherCall, variable: str, given: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a variable that a launcher gets, and what helps."""
    job, value = kept.job, given[variable]
    way = ssh_component_of(kept.found.start.launcher.style)
    is_parameter = value and variable.startswith(("OMPI_MCA_", "PRTE_MCA_"))
    what = explain_broken_mpi_launch(variable, value or "", job.image.ssh.port, way)
    if is_parameter and what:
        yield f" {what}", "Remove it."
    names = {*given, *(one.name for one in job.env)}
    if what := explain_variable_of_scheduler(mpi_family_of(job), variable, names):
        yield what, "Remove it, or choose another name."
    is_paddle = kept.found.start.launcher.kind == "paddle"
    more = (*PADDLE_VARIABLES, *PADDLE_MODES) if is_paddle else ()
    if (why := explain_taken_variable(job, variable, more)) and not is_planned_value(job, variable, value):
        yield f" is set before {kept.name}; {why}", "Remove it."
    elif what := _explain_option_in_variable(kept, variable, given):
        yield f" {what}", "Remove it."


def _explain_option_in_variable(kept: LauncherCall, variable: str, given: Mapping[str, str | None]) -> str:
    """Return how a variable that is an option of torchrun starts other ranks than planned; mostly an empty text."""
    value, command = given[variable], kept.job.command
    if kept.found.start.launcher.kind != "torch" or value is None or is_reserved_variable(variable):
        return ""
    if variable == "PET_RDZV_BACKEND" and "PET_RDZV_ENDPOINT" in given:
        return ""  # where all meet is said there
    what = explain_torchrun_variable(kept.job, variable, value, is_started_by_user=True)
    return what if what and variable in list_variables_exported_to_launcher(command, kept.found) else ""


def _is_told_by_run(kept: LauncherCall, variable: str) -> bool:
    """Return whether a launcher would start other ranks without a variable, which the run sets for it."""
    job, launcher = kept.job, kept.found.start.launcher
    if launcher.kind == "torch":
        option = variable.removeprefix("PET_").lower()
        is_said = any(use.option.name.replace("-", "_") == option for use in kept.found.reading.uses)
        is_default = is_planned_value(job, variable, _TORCHRUN_DEFAULTS.get(variable, ""))
        return variable.startswith("PET_") and is_reserved_variable(variable) and not (is_said or is_default)
    if launcher.kind == "paddle":
        return variable in PADDLE_VARIABLES
    beginning = _OF_MPI.get(mpi_family_of(job) or "", " ")
    return launcher.kind == "mpi" and is_reserved_variable(variable) and variable.startswith(beginning)


def _build_unassign_edit(found: FoundLauncher, variable: str) -> WordEdit | None:
    """Return an edit that removes NAME=VALUE from the words before a launcher."""
    before = found.reading.words[: found.start.begin]
    places = (index for index, word in enumerate(before) if word.startswith(f"{variable}="))
    return next((WordEdit(index, index + 1) for index in places), None)


def check_variables_removed_from_ranks(job: Job) -> Iterator[Problem]:
    """Yield a warning of a command of the ranks that removes or replaces what tells each of them of the others."""
    if job.ranks == 1:
        return
    for path, what in _list_removals(job):
        message = f"{what}, so no rank finds the others: each would train alone"
        yield Problem(path, message, "Keep it.", COMMAND_RESERVED, level=Severity.WARNING)
        return
    at, found = read_script_commands(job.command)
    for what in _describe_replacements(job, found, job.command[at]):
        message = f"{what}, so no rank finds the others"
        yield Problem(
            ("command", at), message, "Remove it: torchrun sets it.", COMMAND_RESERVED, level=Severity.WARNING
        )
        return


def _list_names_of_ranks(job: Job) -> frozenset[str]:
    """Return the variables by which the ranks of a job, or its workers, find each other."""
    framework = job.image.framework
    if framework == "torch":
        return _OF_TORCH_RANKS
    if job.workers == 1 or framework == "paddle":
        return frozenset()
    return list_meeting_names(job) | {*START_VARIABLES.get(framework, ())}


def _list_removals(job: Job) -> Iterator[tuple[FieldPath, str]]:
    """Yield each removal in the command of a rank: its place, and the words that make it."""
    names = _list_names_of_ranks(job)
    outer = strip_prefixes(job.command)
    yield from ((("command", 0), one) for one in _describe_prefix(job.command, outer, names))
    at, found = read_script_commands(job.command)
    programs = [one for one in found if one.words]
    if not programs or any(one.texts[0] in _LOADING for one in programs):
        return
    last = programs[-1]
    for one in programs[:-1]:
        for name in list_removed_variables(one) if one.block == last.block[: len(one.block)] else ():
            if name in names and not re.search(rf"\b{name}\+?=", job.command[at]):
                yield ("command", at), f"the script unsets {name}"
    offset = int(last.texts[0] in ("exec", "command"))
    inner = last.texts[offset:]
    yield from ((("command", at), one) for one in _describe_prefix(inner, strip_prefixes(inner), names))


def _describe_replacements(job: Job, found: Sequence[SimpleCommand], script: str) -> Iterator[str]:
    """Yield each variable of torch that a script of ranks sets to what every host, or every rank, finds out for itself."""
    names = {"MASTER_ADDR"} if job.workers > 1 else set[str]()
    last = found[-1] if found else None
    for one in found if job.image.framework == "torch" else ():
        words = one.words[1:] if one.texts[:1] and one.texts[0] in DECLARING else one.sets
        for word in words if last and one.block == last.block[: len(one.block)] else ():
            name, _, value = script[word.begin : word.end].partition("=")
            is_own = _OF_HOST.search(value) if name in names else name == "MASTER_PORT" and "RANDOM" in value
            if is_own and name not in word.names:
                yield f"the script sets {name} to what each {'worker' if name in names else 'rank'} finds out alone"


def _describe_prefix(words: Sequence[str], peeled: StrippedPrefixes, names: Collection[str]) -> Iterator[str]:
    """Yield what env removes before a program, if it hands on nothing of a rank itself."""
    if peeled.at >= len(words) or any("$" in value for _, value in peeled.sets):
        return
    if peeled.clears >= 0:
        yield f"env {words[peeled.clears]} clears the environment of each rank"
    for name in peeled.unset:
        if name in names and name not in dict(peeled.sets):
            yield f"env removes {name}"
