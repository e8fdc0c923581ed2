"""What is wrong with commands of roles beside the workers, and of steps before them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gangplan.model.job import Job, Role
from gangplan.plan.command import final_command
from gangplan.plan.problems import CommandProblem
from gangplan.plan.started_by import elsewhere_problems
from gangplan.plan.words import word_problems


def other_problems(job: Job) -> Iterator[CommandProblem]:
    """Problems at the words of each command of its own; without one, the job's command is judged once."""
    for other in job.others:
        for one in _of(job, other) if other.argv else ():
            if one.path[0] == "command":
                yield dataclasses.replace(one, path=(*other.place, *one.path))


def _of(job: Job, other: Role) -> Iterator[CommandProblem]:
    """A role starts its command as workers do. A step is alone: a launcher may start what it likes in its pod."""
    gpus = job.gpus if other.resources.devices else 0
    alone = dataclasses.replace(job, command=other.argv, gpus=gpus, roles=(), steps=())
    if other.step is None:
        yield from final_command(alone).problems
    else:
        yield from word_problems(alone)
        yield from elsewhere_problems(alone)
