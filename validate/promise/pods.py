"""What pods have beside image, command and devices: their folder, and variables read from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.job import EnvVar
from gangplan.validate.apiserver.forms import Body
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import Laid
from gangplan.validate.promise.words import broken

Found = Iterator[tuple[int, Problem]]


def variables(laid: Laid) -> Found:
    """Variables that are read from the pod, or from a ConfigMap, are read from there in every role."""
    planned = [one for one in laid.unit.job.env if one.is_own or one.config_map]
    for role in laid.present if planned else ():
        index, path = role.place("env")
        built = {one["name"]: (at, one) for at, one in enumerate((role.container or {}).get("env") or ())}
        for variable in planned:
            if variable.name not in built:
                continue  # told with the others that the launch needs, or a worker's for people alone
            at, one = built[variable.name]
            if _read(one.get("valueFrom") or {}) != _wanted(variable):
                where = _where(variable)
                message = f"{role.title} would have another {variable.name}; the plan reads it from {where}"
                place = (*path, at) if "env" not in role.own else path
                yield index, broken(place, message, f"Write {variable.name} in env of the spec.")


def _read(source: Body) -> tuple[str, ...]:
    """Where a value comes from, as built."""
    if "fieldRef" in source:
        return "field", str(source["fieldRef"].get("fieldPath"))
    if "resourceFieldRef" in source:
        return "resource", str(source["resourceFieldRef"].get("resource"))
    key = source.get("configMapKeyRef") or {}
    return "configMap", str(key.get("name")), str(key.get("key"))


def _wanted(variable: EnvVar) -> tuple[str, ...]:
    if variable.is_own:
        return ("field", variable.field) if variable.field else ("resource", variable.resource)
    return "configMap", variable.config_map, variable.key


def _where(variable: EnvVar) -> str:
    if variable.is_own:
        return f"{variable.field or variable.resource} of each pod"
    return f"key {variable.key} of ConfigMap {variable.config_map}"


def folder(laid: Laid) -> Found:
    """The program starts in the planned folder; where none is planned, a site may choose one."""
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
            yield laid.runtime, broken(at, message, "Write workdir in the spec.", "workdir")
