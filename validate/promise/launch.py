"""Checks of the command that starts the ranks, and of the variables by which MPI finds hosts and slots.

Arguments of the user's own program and values of variables are never printed because they may contain
anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.model.job import EnvVar
from gangplan.plan import RunPlan
from gangplan.plan.flags import mpi_family_of
from gangplan.plan.launchers import ParsedOption, UnreadableError, find_launchers
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun, RolePlace
from gangplan.validate.promise.words import report_broken_promise
from gangplan.validate.trainer.trainjobs import RESERVED_VARIABLES

Found = Iterator[tuple[int, Problem]]

# Roles of options that may be added to the planned ones: no role, or setting one variable or parameter.
TUNING = frozenset(("", "env", "parameter"))
# Variables that decide on hosts, slots and how they are reached (Open MPI 4.1 and 5.0 with PRRTE 3, MPICH 4
# and 5, Intel MPI 2021). Variables for tuning and messages may change.
HELD = re.compile(
    r"(OMPI_MCA_(orte|prte|plm|ras)|PRTE_MCA_(prte|plm|ras))(_.*)?"
    r"|(I_MPI_)?HYDRA_(HOST_FILE|LAUNCHER|BOOTSTRAP|RMK)(_.*)?|I_MPI_(PERHOST|HYDRA_BRANCH_COUNT)"
    r"|(SLURM|PBS|LSB|PMI|PMIX|OMPI_COMM_WORLD)_.*|CHECKPOINT_(DIR|INTERVAL|RESUME)"
)
FREE = re.compile(r".*_verbose")


def check_promised_launch_arguments(laid: ExpandedRun) -> Found:
    """Check that the launcher (for torch, each worker) runs the planned arguments."""
    role = laid.roles.get(LAUNCHER if laid.uses_mpi else WORKER)
    if role is None or role.container is None:
        return
    built = [unescape_kubelet_word(str(word)) for word in role.container.get("args") or ()]
    planned = list(laid.unit.launch.argv)
    if built == planned:
        return
    head = _count_equal_leading_words(planned, built)
    tail = _count_equal_leading_words(planned[head:][::-1], built[head:][::-1])
    gone, new = planned[head : len(planned) - tail], built[head : len(built) - tail]
    program = _find_program_start_in_planned_words(laid.unit)
    if _has_only_tuning_beyond_plan(laid.unit, built):
        return
    index, path = _locate_differing_argument(role, head)
    if head + len(gone) <= program:
        message = (
            f"the launcher would get {_quote_differing_words(built, head, new)} instead of"
            f" {_quote_differing_words(planned, head, gone)}: the plan has {laid.unit.layout.ranks} ranks"
            f" on {laid.unit.layout.workers} workers"
        )
        help = "Write workers, slots or mpi in the spec: the options of the launcher follow them."
    else:
        message = "the run would not start the command of its spec"
        help = "Write command in the spec."
    yield index, report_broken_promise(path, message, help, "command")


def _locate_differing_argument(role: ExpandedRole, head: int) -> RolePlace:
    """Return the place of the first argument that differs, or of the list if it is too short."""
    words = (role.container or {}).get("args") or ()
    index, path = role.place("args")
    return index, (*path, head) if head < len(words) else path


def _count_equal_leading_words(some: Sequence[str], others: Sequence[str]) -> int:
    """Return how many words at the start are the same."""
    count = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        count += 1
    return count


def _find_program_start_in_planned_words(unit: RunPlan) -> int:
    """Return where the user's words begin in the planned ones, or -1 if all of them are the user's."""
    if not unit.launch.is_wrapped:
        return -1
    fills = {"{ranks}": unit.job.ranks, "{workers}": unit.job.workers, "{slots}": unit.job.slots}
    words = list(unit.job.command)
    for name, value in fills.items():
        words = [word.replace(name, str(value)) for word in words]
    return len(unit.launch.argv) - _count_equal_leading_words(list(unit.launch.argv)[::-1], words[::-1])


def _has_only_tuning_beyond_plan(unit: RunPlan, built: Sequence[str]) -> bool:
    """Return whether a command only adds options to the planned one that do not affect ranks and hosts."""
    family = mpi_family_of(unit.job)
    try:
        (planned,), (found,) = find_launchers(unit.launch.argv, family), find_launchers(built, family)
    except (UnreadableError, ValueError):
        return False  # one side does not have exactly one launcher
    if found.start.launcher is not planned.start.launcher or found.reading.program != planned.reading.program:
        return False
    left = [(use.option.name, use.values) for use in planned.reading.uses]
    for use in found.reading.uses:
        if (use.option.name, use.values) in left:
            left.remove((use.option.name, use.values))
        elif not _is_tuning_option(use):
            return False
    return not left


def _is_tuning_option(use: ParsedOption) -> bool:
    """Return whether a known option has no effect on the launch or sets only free variables."""
    if not use.option.name or use.is_short or use.option.role not in TUNING:
        return False
    name = use.value.partition("=")[0]
    names = (name,) if use.option.role == "env" else (f"OMPI_MCA_{name}", f"PRTE_MCA_{name}")
    is_held = any(HELD.fullmatch(one) and not FREE.fullmatch(one) for one in names)
    return not use.option.role or not is_held


def _quote_differing_words(words: Sequence[str], head: int, part: Sequence[str]) -> str:
    """Quote the words that differ, with the option before them."""
    before = words[head - 1 : head] if head and words[head - 1].startswith("-") else []
    shown = [*before, *part[:4]]
    return f"'{' '.join(shown)}'" if part else "nothing" if not before else f"'{before[0]}' alone"


def unescape_kubelet_word(word: str) -> str:
    """Return a word as the kubelet passes it on, but leave references to variables as they are.

    `$$` becomes `$` (k8s.io/kubernetes third_party/forked/golang/expansion, v1.34).
    """
    return word.replace("$$", "$") if "$$" in word else word


def check_promised_launch_environment(laid: ExpandedRun) -> Found:
    """Check that the variables of the launch exist, and that those that affect it have the planned values."""
    unit = laid.unit
    if laid.uses_mpi:
        yield from _check_promised_launch_variables(laid, laid.roles.get(LAUNCHER), unit.launch.launcher_env)
    else:
        yield from _check_promised_launch_variables(laid, laid.roles.get(WORKER), unit.launch.worker_env)


def _check_promised_launch_variables(
    laid: ExpandedRun, role: ExpandedRole | None, planned: Sequence[EnvVar]
) -> Found:
    if role is None or role.container is None:
        return
    wanted = {one.name: one for one in planned}
    built = {one["name"]: one for one in role.container.get("env") or ()}
    index, path = role.place("env")
    gone = [name for name in wanted if name not in built]
    if gone:
        message = f"{role.title} would have no variable {', '.join(gone)}, which the launch needs"
        help = "Keep the existing variables, and add others: op: add, path: .../env/-."
        yield laid.runtime, report_broken_promise((*role.box, "env"), message, help, "command")
    for name, variable in wanted.items():
        if (
            name in built
            and HELD.fullmatch(name)
            and unescape_kubelet_word(str(built[name].get("value", ""))) != variable.value
        ):
            message = f"{role.title} would have another {name}; the plan starts the run with {variable.value}"
            yield (
                index,
                report_broken_promise(
                    _find_variable_path(path, role, name), message, _describe_variable_fix(name), "command"
                ),
            )
    for name in built:
        if (
            name in wanted
            or FREE.fullmatch(name)
            or any(name in names for names in RESERVED_VARIABLES.values())
        ):
            continue
        if HELD.fullmatch(name):
            message = (
                f"{role.title} would have {name}, which changes where or how ranks start; the plan has none"
            )
            yield (
                index,
                report_broken_promise(
                    _find_variable_path(path, role, name), message, _describe_variable_fix(name), "command"
                ),
            )


def _describe_variable_fix(name: str) -> str:
    if name.startswith("CHECKPOINT_"):
        return "Write checkpoint in the spec."
    return "Remove it; write workers, slots and mpi in the spec."


def _find_variable_path(path: tuple[str | int, ...], role: ExpandedRole, name: str) -> tuple[str | int, ...]:
    """Return the path of a variable's entry, or of the whole list if the variable is missing."""
    variables = (role.container or {}).get("env") or ()
    place = next((at for at, one in enumerate(variables) if one["name"] == name), None)
    return path if place is None or "env" in role.own else (*path, place)
