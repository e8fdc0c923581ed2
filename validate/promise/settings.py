"""Checks of variables that a patch adds to pods: they must not contradict the plan, like those of a spec."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.plan.setting_problems import check_setting
from gangplan.plan.settings import VariableSetting
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRun


def check_patched_variables(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Check each variable with an unplanned value by the rules for variables of a spec."""
    launch = laid.unit.launch
    planned = {
        (one.name, one.value) for one in (*launch.launcher_env, *launch.worker_env, *laid.unit.job.env)
    }
    for role in laid.present:
        index, path = role.place("env")
        for at, one in enumerate((role.container or {}).get("env") or ()):
            if "value" not in one or (one["name"], one["value"]) in planned:
                continue
            place = (*path, at) if "env" not in role.own else path
            for problem in check_setting(
                laid.unit.job, VariableSetting(one["name"], one["value"], ("env", one["name"]))
            ):
                message = f"{problem.message} ({role.title})"
                yield index, Problem(place, message, "Take it out of the patch.", problem.rule)
