"""Checks of the working directory of pods, and of variables with a value from another source."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.job import EnvVar
from gangplan.objects import Body
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRun
from gangplan.validate.promise.words import report_broken_promise

Found = Iterator[tuple[int, Problem]]


def check_promised_variable_sources(laid: ExpandedRun) -> Found:
    """Check that variables with a value from the pod or a ConfigMap have the planned source in every role."""
    planned = [one for one in laid.unit.job.env if one.is_own or one.config_map]
    for role in laid.present if planned else ():
        index, path = role.place("env")
        built = {one["name"]: (at, one) for at, one in enumerate((role.container or {}).get("env") or ())}
        for variable in planned:
            if variable.name not in built:
                continue  # launch.py reports the ones that the launch needs; workers of MPI may lack the rest
            at, one = built[variable.name]
            if _read_built_variable_source(one.get("valueFrom") or {}) != _build_planned_source(variable):
                where = _describe_planned_source(variable)
                message = f"{role.title} would have another {variable.name}; the plan reads it from {where}"
                place = (*path, at) if "env" not in role.own else path
                yield (
                    index,
                    report_broken_promise(place, message, f"Write {variable.name} in env of the spec."),
                )


def _read_built_variable_source(source: Body) -> tuple[str, ...]:
    """Return the built source of a value."""
    if "fieldRef" in source:
        return "field", str(source["fieldRef"].get("fieldPath"))
    if "resourceFieldRef" in source:
        return "resource", str(source["resourceFieldRef"].get("resource"))
    key = source.get("configMapKeyRef") or {}
    return "configMap", str(key.get("name")), str(key.get("key"))


def _build_planned_source(variable: EnvVar) -> tuple[str, ...]:
    if variable.is_own:
        return ("field", variable.field) if variable.field else ("resource", variable.resource)
    return "configMap", variable.config_map, variable.key


def _describe_planned_source(variable: EnvVar) -> str:
    if variable.is_own:
        return f"{variable.field or variable.resource} of each pod"
    return f"key {variable.key} of ConfigMap {variable.config_map}"


def check_promised_working_folder(laid: ExpandedRun) -> Found:
    """Check that the program starts in the planned folder; without one a site may choose it."""
    planned = laid.unit.job.workdir
    for role in laid.present:
        if role.container is None or not planned:
            continue
        built = role.container.get("workingDir", "")
        if built.rstrip("/") != planned:
            message = (
                f"{role.title} would start in {built or 'the folder of the image'}; the plan has {planned}"
            )
            at = (*role.box, "workingDir")
            yield laid.runtime, report_broken_promise(at, message, "Write workdir in the spec.", "workdir")
