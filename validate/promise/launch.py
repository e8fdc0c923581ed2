"""Checks of the command that starts the ranks, and of the variables by which MPI finds hosts and slots.

Arguments of the user's own program and values of variables are never printed because they may contain
anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.model.job import EnvVar
from gangplan.plan import Unit
from gangplan.plan.flags import family_of
from gangplan.plan.launchers import UnreadableError, Use, find
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import Laid, LaidRole, Place
from gangplan.validate.promise.words import broken
from gangplan.validate.trainer.trainjobs import RESERVED

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


def arguments(laid: Laid) -> Found:
    """Check that the launcher (for torch, each worker) runs the planned arguments."""
    role = laid.roles.get(LAUNCHER if laid.uses_mpi else WORKER)
    if role is None or role.container is None:
        return
    built = [expanded(str(word)) for word in role.container.get("args") or ()]
    planned = list(laid.unit.launch.argv)
    if built == planned:
        return
    head = _same(planned, built)
    tail = _same(planned[head:][::-1], built[head:][::-1])
    gone, new = planned[head : len(planned) - tail], built[head : len(built) - tail]
    program = _program_at(laid.unit)
    if _only_tunes(laid.unit, built):
        return
    index, path = _where(role, head)
    if head + len(gone) <= program:
        message = (
            f"the launcher would get {_told(built, head, new)} instead of {_told(planned, head, gone)}:"
            f" the plan has {laid.unit.layout.ranks} ranks on {laid.unit.layout.workers} workers"
        )
        help = "Write workers, slots or mpi in the spec: the options of the launcher follow them."
    else:
        message = "the run would not start the command of its spec"
        help = "Write command in the spec."
    yield index, broken(path, message, help, "command")


def _where(role: LaidRole, head: int) -> Place:
    """Return the place of the first argument that differs, or of the list if it is too short."""
    words = (role.container or {}).get("args") or ()
    index, path = role.place("args")
    return index, (*path, head) if head < len(words) else path


def _same(some: Sequence[str], others: Sequence[str]) -> int:
    """Return how many words at the start are the same."""
    count = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        count += 1
    return count


def _program_at(unit: Unit) -> int:
    """Return where the user's words begin in the planned ones, or -1 if all of them are the user's."""
    if not unit.launch.is_wrapped:
        return -1
    fills = {"{ranks}": unit.job.ranks, "{workers}": unit.job.workers, "{slots}": unit.job.slots}
    words = list(unit.job.command)
    for name, value in fills.items():
        words = [word.replace(name, str(value)) for word in words]
    return len(unit.launch.argv) - _same(list(unit.launch.argv)[::-1], words[::-1])


def _only_tunes(unit: Unit, built: Sequence[str]) -> bool:
    """Return whether a command only adds options to the planned one that do not affect ranks and hosts."""
    family = family_of(unit.job)
    try:
        (planned,), (found,) = find(unit.launch.argv, family), find(built, family)
    except (UnreadableError, ValueError):
        return False  # one side does not have exactly one launcher
    if found.start.launcher is not planned.start.launcher or found.reading.program != planned.reading.program:
        return False
    left = [(use.option.name, use.values) for use in planned.reading.uses]
    for use in found.reading.uses:
        if (use.option.name, use.values) in left:
            left.remove((use.option.name, use.values))
        elif not _tunes(use):
            return False
    return not left


def _tunes(use: Use) -> bool:
    """Return whether a known option has no effect on the launch or sets only free variables."""
    if not use.option.name or use.is_short or use.option.role not in TUNING:
        return False
    name = use.value.partition("=")[0]
    names = (name,) if use.option.role == "env" else (f"OMPI_MCA_{name}", f"PRTE_MCA_{name}")
    is_held = any(HELD.fullmatch(one) and not FREE.fullmatch(one) for one in names)
    return not use.option.role or not is_held


def _told(words: Sequence[str], head: int, part: Sequence[str]) -> str:
    """Quote the words that differ, with the option before them."""
    before = words[head - 1 : head] if head and words[head - 1].startswith("-") else []
    shown = [*before, *part[:4]]
    return f"'{' '.join(shown)}'" if part else "nothing" if not before else f"'{before[0]}' alone"


def expanded(word: str) -> str:
    """Return a word as the kubelet passes it on, but leave references to variables as they are.

    `$$` becomes `$` (k8s.io/kubernetes third_party/forked/golang/expansion, v1.34).
    """
    return word.replace("$$", "$") if "$$" in word else word


def environment(laid: Laid) -> Found:
    """Check that the variables of the launch exist, and that those that affect it have the planned values."""
    unit = laid.unit
    if laid.uses_mpi:
        yield from _variables(laid, laid.roles.get(LAUNCHER), unit.launch.launcher_env)
    else:
        yield from _variables(laid, laid.roles.get(WORKER), unit.launch.worker_env)


def _variables(laid: Laid, role: LaidRole | None, planned: Sequence[EnvVar]) -> Found:
    if role is None or role.container is None:
        return
    wanted = {one.name: one for one in planned}
    built = {one["name"]: one for one in role.container.get("env") or ()}
    index, path = role.place("env")
    gone = [name for name in wanted if name not in built]
    if gone:
        message = f"{role.title} would have no variable {', '.join(gone)}, which the launch needs"
        help = "Keep the existing variables, and add others: op: add, path: .../env/-."
        yield laid.runtime, broken((*role.box, "env"), message, help, "command")
    for name, variable in wanted.items():
        if (
            name in built
            and HELD.fullmatch(name)
            and expanded(str(built[name].get("value", ""))) != variable.value
        ):
            message = f"{role.title} would have another {name}; the plan starts the run with {variable.value}"
            yield index, broken(_at(path, role, name), message, _right_place(name), "command")
    for name in built:
        if name in wanted or FREE.fullmatch(name) or any(name in names for names in RESERVED.values()):
            continue
        if HELD.fullmatch(name):
            message = (
                f"{role.title} would have {name}, which changes where or how ranks start; the plan has none"
            )
            yield index, broken(_at(path, role, name), message, _right_place(name), "command")


def _right_place(name: str) -> str:
    if name.startswith("CHECKPOINT_"):
        return "Write checkpoint in the spec."
    return "Remove it; write workers, slots and mpi in the spec."


def _at(path: tuple[str | int, ...], role: LaidRole, name: str) -> tuple[str | int, ...]:
    """Return the path of a variable's entry, or of the whole list if the variable is missing."""
    variables = (role.container or {}).get("env") or ()
    place = next((at for at, one in enumerate(variables) if one["name"] == name), None)
    return path if place is None or "env" in role.own else (*path, place)
