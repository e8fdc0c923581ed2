"""Read a batch script as a workload: options, the walk through statements, the launch and what is around."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gangplan.findings import Finding
from gangplan.imports.account import Account
from gangplan.imports.refused import RefusedSourceError
from gangplan.imports.scripted import idioms, variables
from gangplan.imports.scripted.assemble import find_rank_framework
from gangplan.imports.scripted.background import refuse_launches_at_once
from gangplan.imports.scripted.directives import BatchScript, ScriptOption, read_batch_directive_lines
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.job import ScriptJob
from gangplan.imports.scripted.launch import skip_job_step_launcher
from gangplan.imports.scripted.pieces import (
    ShellValue,
    build_text_of_submission_folder,
    fill_script_variables,
    find_variable_names,
)
from gangplan.imports.scripted.positional import fill_script_arguments, find_arguments_of_user
from gangplan.imports.scripted.statements import parse_shell_statements
from gangplan.imports.scripted.subshells import unwrap_last_subshells
from gangplan.imports.scripted.walk import ScriptWalk
from gangplan.imports.scripted.wanted import WantedAllocation
from gangplan.imports.workload import SourceJob
from gangplan.plan.launchers.shell import UnreadableError
from gangplan.records import dataclass
from gangplan.rules.imports import IMPORT_SCRIPT

Words = Sequence[tuple[str, int, int]]
# Options of launchers that choose the hosts of a step.
_CHOSEN = re.compile(r"-w$|-r$|--?(?:nodelist|relative|hosts?|hostfile|machinefile|H)\b")
_OTHER_LANGUAGE = re.compile(r"#!.*?\b(t?csh|zsh|fish|python|perl|Rscript|julia|ruby|lua)")
# The name or the parent of the folder from which the job was submitted.
_NAME_OF_FOLDER = re.compile(
    r"(basename|dirname|realpath|readlink -f)\s+[\"']?(?:\.|\$\(pwd\)|`pwd`)/?[\"']?"
)
_ARGUMENT = re.compile(r"\$\{?([1-9])\b")


@dataclass(frozen=True, slots=True)
class BatchScheduler:
    """A scheduler whose scripts can be imported: how to read its option lines.

    It has the mark of the lines, how their words become options, and what these request.
    """

    label: str
    mark: str
    options: Callable[[Words, Callable[[str, int, int, str], ScriptOption]], list[ScriptOption]]
    apply: Callable[[list[ScriptOption], WantedAllocation, Account], None]


def read_batch_script(scheduler: BatchScheduler, account: Account) -> SourceJob:
    """Return the workload of a script.

    Raises RefusedError if only running it would show what it does.
    """
    script: BatchScript = account.root().value
    _refuse_other_language(script)
    wanted = WantedAllocation()
    walk, name, known = _walk_batch_script(scheduler, script, account, wanted)
    numbers = _select_script_launch_items(walk)
    refusals = [_build_script_finding(script, one.begin, one.message, one.help) for one in walk.refusals]
    refusals += [Finding(IMPORT_SCRIPT, node.where, message, help) for node, message, help in wanted.refusals]
    if not numbers and not refusals:
        refusals = [_build_finding_for_script_without_launch(script, walk)]
    if refusals:
        raise RefusedSourceError(refusals)
    return ScriptJob(scheduler.label, script, account, wanted, walk, numbers, name, known).workload()


def count_parallel_job_steps(scheduler: BatchScheduler, script: BatchScript) -> int:
    """Return how many steps of a script run in parallel, each as a separate job; 0 for any other script.

    They start the same program, on hosts that the script does not choose.
    """
    account = Account(script.file, script.leaves, script)
    try:
        walk, _, _ = _walk_batch_script(scheduler, script, account, WantedAllocation())
    except RefusedSourceError:
        return 0
    found = [item for item in walk.items if item.kind == "launch"]
    programs = {tuple(skip_job_step_launcher([one.text for one in item.fields])) for item in found}
    is_plain = len(programs) == 1 and not find_rank_framework(next(iter(programs))) and not walk.refusals
    chooses = any(_CHOSEN.match(one.text) for item in found for one in item.fields)
    is_beside = len(found) > 1 and all(item.is_background for item in found)
    return len(found) if is_beside and is_plain and not chooses else 0


def _walk_batch_script(
    scheduler: BatchScheduler, script: BatchScript, account: Account, wanted: WantedAllocation
) -> tuple[ScriptWalk, str, dict[str, ShellValue]]:
    """Walk through a script; return the walk, its name, and the variables known before it runs."""
    _read_batch_scheduler_options(scheduler, script, account, wanted)
    name = (
        str(wanted.settings["name"].value) if "name" in wanted.settings else _derive_script_name(script.file)
    )
    counts = wanted.counts()
    scope = ScriptScope(dict(script.filled), given=script.filled)
    about = variables.JobVariableFacts(name, script.task, len(wanted.array) or None)
    known = variables.find_slurm_and_pbs_variables(counts, about)
    known |= fill_script_arguments(script.filled)
    scope.present = variables.list_present_variables(scheduler.mark, bool(wanted.array))
    scope.values = {**dict.fromkeys(scope.present), **known, **scope.values}
    scope.values.setdefault("PWD", ".")
    scope.output = lambda command: _determine_command_substitution_output(command, scope, wanted)
    walk = ScriptWalk(script, scope)
    if (given := find_arguments_of_user(scope.values)) is not None:
        walk.items.append(given)
    try:
        walk.all()
    except UnreadableError as error:
        message = f"the script cannot be read: {error} is not closed"
        at = _find_unreadable_place(script.text)
        raise RefusedSourceError([_build_script_finding(script, at, message, "Close it.")]) from None
    unwrap_last_subshells(walk.items)
    return walk, name, known


def _find_unreadable_place(text: str) -> int:
    """Return where that begins which is not closed; the beginning if this is inside of a word."""
    try:
        parse_shell_statements(text)
    except UnreadableError as error:
        return error.at
    return 0


def _determine_command_substitution_output(
    command: str, scope: ScriptScope, wanted: WantedAllocation
) -> ShellValue:
    """Return what a command prints, with its known variables filled in."""
    if command.strip() == "pwd":
        return scope.values["PWD"]
    scope.used |= find_variable_names([command])
    static = {name: one for name, one in scope.values.items() if isinstance(one, str) and name.isidentifier()}
    filled = fill_script_variables(command, static) if "$" in command else command
    if found := _NAME_OF_FOLDER.fullmatch(filled.strip()):
        return build_text_of_submission_folder(f'$({found[1]} "$PWD")')
    return idioms.determine_command_substitution_output(filled, wanted.counts())


def _read_batch_scheduler_options(
    scheduler: BatchScheduler, script: BatchScript, account: Account, wanted: WantedAllocation
) -> None:
    for _, words, counts in read_batch_directive_lines(script, scheduler.mark):

        def leaf(name: str, begin: int, end: int, value: str) -> ScriptOption:
            return ScriptOption(
                name, value, script.leaf(f"--{name}" if len(name) > 1 else f"-{name}", begin, end, value)
            )

        texts = [(fill_script_variables(text, dict(script.filled)), begin, end) for text, begin, end in words]
        found = scheduler.options(texts, leaf)
        if counts:
            scheduler.apply(found, wanted, account)
        else:
            for option in found:
                option.node(account).dropped(f"{scheduler.label} reads no options behind the first command")


def _refuse_other_language(script: BatchScript) -> None:
    """Raise RefusedSourceError for a script that no shell like bash reads."""
    if found := _OTHER_LANGUAGE.match(script.text):
        message = f"the script is for {found[1]}, and scripts for sh, bash and ksh are read here"
        help = "Write its launch in a script for bash, and import that."
        raise RefusedSourceError([_build_script_finding(script, 0, message, help)])


def _derive_script_name(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0] or "job"


def _build_finding_for_script_without_launch(script: BatchScript, walk: ScriptWalk) -> Finding:
    """Return the finding for a script without a launch or program: it ends early, or they are elsewhere."""
    ended = next((one for one in walk.items if one.why == idioms.SCRIPT_ENDED_REASON), None)
    numbers = sorted(set(_ARGUMENT.findall(script.text)))
    if ended is None:
        help = "Name the script that holds the launch; or leave the file out."
        return _build_script_finding(script, 0, "nothing in the script starts a program", help)
    help = "Give what its conditions look at: --set NAME=VALUE."
    if numbers:
        help = f"Give its arguments: {' '.join(f'--set {number}=VALUE' for number in numbers)}."
    return _build_script_finding(
        script, ended.begin, "the script ends before this, and nothing before starts a program", help
    )


def _build_script_finding(script: BatchScript, begin: int, message: str, help: str) -> Finding:
    return Finding(IMPORT_SCRIPT, script.where(begin), message, help)


def _select_script_launch_items(walk: ScriptWalk) -> list[int]:
    """Return the indices of items that start the ranks; without any, of the last program of the script."""
    items = walk.items
    found = [number for number, item in enumerate(items) if item.kind == "launch"]
    if walk.script.step is not None:
        for number in found:
            if number != found[walk.script.step]:
                items[number].kind, items[number].why = "drop", "another step, which is a spec of its own"
        found = found[walk.script.step :][:1]
    walk.refusals += refuse_launches_at_once(items, found)
    if not found:
        programs = [number for number, item in enumerate(items) if item.kind == "program"]
        whole = [number for number, item in enumerate(items) if item.kind == "keep" and item.has_program]
        found = programs[-1:] or whole[-1:]
        for number in found:
            items[number].parts = [] if items[number].has_program else items[number].parts
    for number, item in enumerate(items):
        if item.kind == "program" and number not in found:
            item.kind = "keep"
    return found
