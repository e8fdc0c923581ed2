"""Map arrays of tasks to one spec each, or to a sweep for many; and name steps that are separate jobs."""

from __future__ import annotations

from gangplan.imports.account import SourceNode
from gangplan.imports.scripted.directives import BatchScript
from gangplan.imports.scripted.wanted import WantedAllocation
from gangplan.imports.trials import Trials, build_parameter_mark

# Variables with the number of a task in an array.
_NUMBERS = ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID")


def build_task_name(script: BatchScript, name: str) -> str:
    """Return the job's name, with the number of its task or step if it is one."""
    if script.task is not None:
        return f"{name}-{script.task}"
    return name if script.step is None else f"{name}-{script.step + 1}"


def map_job_array_variables(
    script: BatchScript, wanted: WantedAllocation
) -> dict[str, tuple[str, SourceNode]]:
    """Return the variables with the number of the task as a parameter, if the array becomes a sweep."""
    if not script.spreads:
        return {}
    return {
        name: (build_parameter_mark("task"), wanted.at["array"]) for name in _NUMBERS if name in script.text
    }


def build_array_trials(script: BatchScript, wanted: WantedAllocation) -> Trials | None:
    """Return what the sweep tries: every number of the array."""
    if not script.spreads:
        return None
    return Trials({"grid": {"task": wanted.array}}, wanted.at_once, wanted.at["array"])


def account_for_job_array(
    script: BatchScript, wanted: WantedAllocation, questions: list[tuple[SourceNode, str, str]]
) -> None:
    """Account for the option that requests the array."""
    node = wanted.at.get("array")
    if node is None:
        return
    if script.task is not None:
        node.mapped("a spec for each task of the array")
        if wanted.at_once < len(wanted.array):
            message = f"{wanted.at_once} of the {len(wanted.array)} tasks may run at a time; their specs may all run at once"
            node.asked(message)
            help = f"Write a sweep with maxConcurrent: {wanted.at_once}; or after: in the specs that wait."
            questions.append((node, message, help))
    elif script.spreads:
        node.mapped("parameters.grid.task")
    else:
        why = f"{len(wanted.array)} tasks start the same program; the spec starts it once"
        node.asked(why)
        help = "Where they continue each other, checkpoint: and retries: do that; else repeat it: run: 2."
        questions.append((node, why, help))
