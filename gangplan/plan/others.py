"""Check the commands and variables of other roles, steps, setup containers and sidecars."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gangplan.findings import Problem
from gangplan.model.job import EnvVar, Job, Role
from gangplan.plan.command import final_command
from gangplan.plan.downloads import download_problems
from gangplan.plan.problems import Path
from gangplan.plan.setting_problems import judged
from gangplan.plan.settings import Setting
from gangplan.plan.started_by import elsewhere_problems
from gangplan.plan.words import word_problems


def other_problems(job: Job) -> Iterator[Problem]:
    """Yield problems at the words of each command of their own and at each variable.

    Without a command of its own, a role uses the job's, which is checked once.
    """
    for other in job.others:
        for one in _of(job, other) if other.argv else ():
            if one.path[0] == "command":
                yield dataclasses.replace(one, path=(*other.place, *one.path))
        fabric = dataclasses.replace(job.fabric, networks=(), interfaces=(), access=job.access_of(other.name))
        alone = dataclasses.replace(job, gpus=_gpus(other), workers=1, slots=1, fabric=fabric)
        yield from _settings(alone, other.env, other.place, "step" if other.step else other.name)
    for container in job.containers:
        alone = dataclasses.replace(job, gpus=0, workers=1, slots=1, command=container.argv)
        for one in download_problems(alone) if container.argv else ():
            yield dataclasses.replace(one, path=(*container.place, *one.path))
        what = "sidecar" if container.is_sidecar else "setup container"
        yield from _settings(alone, container.env, container.place, what)


def _of(job: Job, other: Role) -> Iterator[Problem]:
    """Yield the problems of a role's or step's command.

    A role starts its command as workers do. A step runs alone, so any launcher may start ranks in its pod.
    """
    alone = dataclasses.replace(job, command=other.argv, gpus=_gpus(other), roles=(), steps=())
    if other.step is None:
        yield from final_command(alone).problems
    else:
        yield from word_problems(alone)
        yield from elsewhere_problems(alone)
        yield from download_problems(alone)


def _gpus(other: Role) -> int:
    return dict(other.resources.devices).get(other.pool.gpu, 0)


def _settings(alone: Job, env: tuple[EnvVar, ...], place: Path, pod: str) -> Iterator[Problem]:
    """Yield variables that contradict what is known about a pod without ranks, treated as its own job."""
    for one in env:
        if one.is_plain:
            yield from judged(alone, Setting(one.name, one.value, (*place, "env", one.name), pod=pod))
