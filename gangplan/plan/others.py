"""Check the commands and variables of other roles, steps, setup containers and sidecars."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gangplan.findings import FieldPath, Problem
from gangplan.model.job import EnvVar, Job, ResolvedRole
from gangplan.plan.command import build_final_command
from gangplan.plan.downloads import (
    check_command_downloads,
    check_packages_outlive_container,
    check_system_packages,
)
from gangplan.plan.environment import build_role_env, build_side_container_env, build_step_env
from gangplan.plan.root_home import check_paths_in_home_of_root
from gangplan.plan.setting_problems import check_setting
from gangplan.plan.settings import VariableSetting
from gangplan.plan.started_by import check_outer_launch_program
from gangplan.plan.started_files import check_files_started_as_programs
from gangplan.plan.unset import check_command_needs_no_field, check_variables_of_other_systems
from gangplan.plan.words import check_command_words


def check_role_and_step_commands(job: Job) -> Iterator[Problem]:
    """Yield problems at the words of each command of their own and at each variable.

    Without a command of its own, a role uses the job's, which is checked once.
    """
    for other in job.others:
        for one in _find_role_or_step_command_problems(job, other) if other.argv else ():
            if one.path[0] == "command":
                yield dataclasses.replace(one, path=(*other.place, *one.path))
        env = build_step_env(job, other) if other.step else build_role_env(job, other)
        yield from _find_absent_fields(other.argv, env, other.place)
        yield from check_paths_in_home_of_root(other.argv, other.env, other.place)
        yield from check_files_started_as_programs(dataclasses.replace(job, command=other.argv), other.place)
        fabric = dataclasses.replace(job.fabric, networks=(), interfaces=(), access=job.access_of(other.name))
        alone = dataclasses.replace(job, gpus=_count_requested_gpus(other), workers=1, slots=1, fabric=fabric)
        yield from _find_role_or_step_setting_problems(
            alone, other.env, other.place, "step" if other.step else other.name
        )
    for container in job.containers:
        alone = dataclasses.replace(job, gpus=0, workers=1, slots=1, command=container.argv)
        what = "sidecar" if container.is_sidecar else "setup container"
        for one in _find_package_problems(alone, "" if container.is_sidecar else what):
            yield dataclasses.replace(one, path=(*container.place, *one.path))
        env = build_side_container_env(job, container)
        yield from _find_absent_fields(container.argv, env, container.place)
        yield from check_paths_in_home_of_root(container.argv, container.env, container.place)
        yield from check_files_started_as_programs(
            dataclasses.replace(job, command=container.argv), container.place
        )
        yield from _find_role_or_step_setting_problems(alone, container.env, container.place, what)


def _find_package_problems(alone: Job, what: str) -> Iterator[Problem]:
    """Yield what is wrong with packages that a command fetches, and installs in `what` runs before the program."""
    if not alone.command:
        return
    yield from check_system_packages(alone)
    yield from check_command_downloads(alone)
    if what:
        yield from check_packages_outlive_container(alone, what)


def _find_absent_fields(
    words: tuple[str, ...], env: tuple[EnvVar, ...], place: FieldPath
) -> Iterator[Problem]:
    known = {one.name for one in env}
    for one in (
        *check_command_needs_no_field(words, env),
        *check_variables_of_other_systems(words, known),
    ):
        yield dataclasses.replace(one, path=(*place, *one.path))


def _find_role_or_step_command_problems(job: Job, other: ResolvedRole) -> Iterator[Problem]:
    """Yield the problems of a role's or step's command.

    A role starts its command as workers do. A step runs alone, so any launcher may start ranks in its pod.
    """
    alone = dataclasses.replace(
        job, command=other.argv, gpus=_count_requested_gpus(other), roles=(), steps=()
    )
    if other.step is None:
        yield from build_final_command(alone).problems
    else:
        yield from check_command_words(alone)
        yield from check_outer_launch_program(dataclasses.replace(alone, workers=1, slots=1))
        yield from _find_package_problems(alone, "step")


def _count_requested_gpus(other: ResolvedRole) -> int:
    return dict(other.resources.devices).get(other.pool.gpu, 0)


def _find_role_or_step_setting_problems(
    alone: Job, env: tuple[EnvVar, ...], place: FieldPath, pod: str
) -> Iterator[Problem]:
    """Yield variables that contradict what is known about a pod without ranks, treated as its own job."""
    for one in env:
        if one.is_plain:
            yield from check_setting(
                alone, VariableSetting(one.name, one.value, (*place, "env", one.name), pod=pod)
            )
