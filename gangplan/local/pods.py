"""The pods of a rendered run, as the cluster would start them: commands, variables, names, hostfile."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.generators.scripts import SCRIPTS_FOLDER
from gangplan.local.kubelet import mounted_map, started
from gangplan.local.trainer import host, hostfile, jax_variables, launcher_variables, torch_variables
from gangplan.model.backend import RUNTIME
from gangplan.model.frameworks import NUMBER
from gangplan.model.job import PLACEHOLDER, Job
from gangplan.objects import Body
from gangplan.records import dataclass

# The suffix of the run's name in place of its content's hash, with the same eight letters.
LOCAL = "local000"
_ADDRESS = "127.0.0.1"
# The only interface that every machine has, even without a network.
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
_INTERFACES = frozenset({"HYDRA_IFACE", "I_MPI_HYDRA_IFACE"})


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a run: its host name, its number among the workers, its command and its variables.

    `own` are the variables that only this pod has. `folder` is the working directory that its container asks
    for; empty if it asks for none.
    """

    name: str
    run: str
    role: str  # launcher or worker
    index: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    own: Mapping[str, str]
    folder: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which other pods reach it."""
        return self.name, f"{self.name}.{self.run}"


@dataclass(frozen=True, slots=True)
class Cast:
    """The pods of a run, the launcher's hostfile, and the scripts that all pods start with; without MPI there is
    neither launcher nor hostfile."""

    pods: tuple[Pod, ...]
    hostfile: str
    scripts: Mapping[str, str]

    @property
    def launcher(self) -> Pod | None:
        """The pod that starts the ranks over SSH."""
        return next((pod for pod in self.pods if pod.role == "launcher"), None)


def cast_of(job: Job, bodies: Sequence[Body], given: Mapping[str, str], port: int) -> Cast:
    """Return the pods of the run among `bodies`, which hold the ConfigMap of its scripts, too.

    `given` are the values of variables that come from secrets and ConfigMaps; `port` is a free one, for the
    workers' rendezvous.
    """
    found = _named(list(bodies))
    runtime = next(body for body in found if body["kind"] == RUNTIME)
    run = runtime["metadata"]["name"]
    roles = {one["name"]: one for one in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    workers = job.workers - (job.launcher_runs_ranks and job.uses_mpi)
    pods = [_pod(job, roles["node"], run, "worker", index, given, port) for index in range(workers)]
    _, scripts = mounted_map(roles["node"]["template"]["spec"]["template"]["spec"], SCRIPTS_FOLDER, found)
    if not job.uses_mpi:
        return Cast(tuple(pods), "", scripts)
    launcher = _pod(job, roles["launcher"], run, "launcher", 0, given, port)
    ranked = [*pods, launcher] if job.launcher_runs_ranks else pods
    return Cast((*pods, launcher), hostfile((pod.names[1] for pod in ranked), job.slots), scripts)


def _named(value: Any) -> Any:
    """Return objects with the run's full name in place of the placeholder."""
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, LOCAL)
    if isinstance(value, dict):
        return {key: _named(one) for key, one in value.items()}
    return [_named(one) for one in value] if isinstance(value, list) else value


def _pod(job: Job, entry: Body, run: str, role: str, index: int, given: Mapping[str, str], port: int) -> Pod:
    container = entry["template"]["spec"]["template"]["spec"]["containers"][0]
    name = host(run, entry["name"], index)
    own = _own(job, container, name, index)
    container = started(container, {**given, **own})
    env: dict[str, str] = container["env"]
    if role == "launcher":
        env |= launcher_variables(job.slots)
    elif job.image.framework == "torch":
        env |= torch_variables(job.workers, job.slots, index, _ADDRESS, port)
    elif job.image.framework == "jax":
        env |= jax_variables(job.workers, index, _ADDRESS, port)
    elif "MASTER_PORT" in env:
        env["MASTER_PORT"] = str(port)
    argv = (*container["command"], *container["args"])
    return Pod(name, run, role, index, argv, _here(env, run, port), own, container.get("workingDir", ""))


def _own(job: Job, container: Body, name: str, index: int) -> dict[str, str]:
    """Return the variables whose value differs per pod."""
    fields = {
        "metadata.name": name,
        "metadata.namespace": job.namespace,
        "metadata.uid": name,
        "status.podIP": _ADDRESS,
        "status.hostIP": _ADDRESS,
        "spec.nodeName": name,
        "spec.serviceAccountName": job.service_account,
        NUMBER: str(index),
    }
    found = {}
    for one in container.get("env", ()):
        source = one.get("valueFrom", {})
        if "fieldRef" in source:
            found[one["name"]] = fields.get(source["fieldRef"]["fieldPath"], "")
        elif "resourceFieldRef" in source:
            side, _, resource = source["resourceFieldRef"]["resource"].partition(".")
            found[one["name"]] = str(container["resources"][side].get(resource, ""))
    return found


def _here(env: Mapping[str, str], run: str, port: int) -> dict[str, str]:
    """Replace values that only hold on a cluster: pod addresses, the rendezvous port, the interface."""
    found = {}
    for name, value in env.items():
        if name in _INTERFACES:
            value = LOOPBACK
        found[name] = _addresses(value, run, port) if f".{run}" in value else value
    return found


def _addresses(value: str, run: str, port: int) -> str:
    def at(match: re.Match[str]) -> str:
        return f"{_ADDRESS}:{port}" if match[1] else _ADDRESS

    return re.sub(rf"{re.escape(run)}-[a-z0-9-]+-0-\d+\.{re.escape(run)}(:\d+)?", at, value)


def given_names(job: Job) -> dict[str, str]:
    """Return the variables whose values are in the cluster's secrets and ConfigMaps, with their sources."""
    found = {}
    for one in job.env:
        if one.secret or one.config_map:
            kind = f"secret {one.secret}" if one.secret else f"ConfigMap {one.config_map}"
            found[one.name] = f"key {one.key} of {kind}"
    return found
