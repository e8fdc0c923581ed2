"""Map arrays of tasks to one spec each, or to a sweep for many; and name steps that are separate jobs."""

from __future__ import annotations

from gangplan.imports.account import Node
from gangplan.imports.scripted.directives import Script
from gangplan.imports.scripted.wanted import Wanted
from gangplan.imports.trials import Trials, mark

# Variables with the number of a task in an array.
_NUMBERS = ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID")


def full_name(script: Script, name: str) -> str:
    """Return the job's name, with the number of its task or step if it is one."""
    if script.task is not None:
        return f"{name}-{script.task}"
    return name if script.step is None else f"{name}-{script.step + 1}"


def task_numbers(script: Script, wanted: Wanted) -> dict[str, tuple[str, Node]]:
    """Return the variables with the number of the task as a parameter, if the array becomes a sweep."""
    if not script.spreads:
        return {}
    return {name: (mark("task"), wanted.at["array"]) for name in _NUMBERS if name in script.text}


def trials_of(script: Script, wanted: Wanted) -> Trials | None:
    """Return what the sweep tries: every number of the array."""
    if not script.spreads:
        return None
    return Trials({"grid": {"task": wanted.array}}, wanted.at_once, wanted.at["array"])


def told_of_array(script: Script, wanted: Wanted, questions: list[tuple[Node, str, str]]) -> None:
    """Account for the option that requests the array."""
    node = wanted.at.get("array")
    if node is None:
        return
    if script.task is not None:
        node.mapped("a spec for each task of the array")
    elif script.spreads:
        node.mapped("parameters.grid.task")
    else:
        why = f"{len(wanted.array)} tasks start the same program; the spec starts it once"
        node.asked(why)
        help = "Where they continue each other, checkpoint: and retries: do that; else repeat it: run: 2."
        questions.append((node, why, help))
