"""The pods of a rendered run, as the cluster would start them: commands, variables, names, hostfile."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.generators.scripts import SCRIPTS_FOLDER
from gangplan.local.kubelet import expand_local_container_like_kubelet, read_config_map_for_local_mount
from gangplan.local.trainer import (
    build_host_name,
    build_local_jax_plugin_variables,
    build_local_mpi_plugin_variables,
    build_local_torch_plugin_variables,
    build_local_xgboost_plugin_variables,
    format_hostfile,
)
from gangplan.model.backend import RUNTIME_KIND, TRAINJOB
from gangplan.model.frameworks import COMPLETION_INDEX_FIELD
from gangplan.model.job import HASH_PLACEHOLDER, Job
from gangplan.objects import Body
from gangplan.records import dataclass

# The suffix of the run's name in place of its content's hash, with the same eight letters.
LOCAL = "local000"
_ADDRESS = "127.0.0.1"
# The only interface that every machine has, even without a network.
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
_INTERFACES = frozenset({"HYDRA_IFACE", "I_MPI_HYDRA_IFACE"})


@dataclass(frozen=True, slots=True)
class LocalPod:
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
class LocalPods:
    """The pods of a run, the launcher's hostfile, and the scripts that all pods start with; without MPI there is
    neither launcher nor hostfile."""

    pods: tuple[LocalPod, ...]
    hostfile: str
    scripts: Mapping[str, str]

    @property
    def launcher(self) -> LocalPod | None:
        """The pod that starts the ranks over SSH."""
        return next((pod for pod in self.pods if pod.role == "launcher"), None)


def build_local_pods(job: Job, bodies: Sequence[Body], given: Mapping[str, str], port: int) -> LocalPods:
    """Return the pods of the run among `bodies`, which hold the ConfigMap of its scripts, too.

    `given` are the values of variables that come from secrets and ConfigMaps; `port` is a free one, for the
    workers' rendezvous.
    """
    found = _replace_run_hash_in_local_pods(list(bodies))
    runtime = next(body for body in found if body["kind"] == RUNTIME_KIND)
    run = runtime["metadata"]["name"]
    roles = {one["name"]: one for one in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    workers = job.workers - (job.launcher_runs_ranks and job.uses_mpi)
    pods = [
        _build_local_pod(job, roles["node"], run, "worker", index, given, port) for index in range(workers)
    ]
    _, scripts = read_config_map_for_local_mount(
        roles["node"]["template"]["spec"]["template"]["spec"], SCRIPTS_FOLDER, found
    )
    if not job.uses_mpi:
        return LocalPods(tuple(pods), "", scripts)
    launcher = _build_local_pod(job, roles["launcher"], run, "launcher", 0, given, port)
    ranked = [*pods, launcher] if job.launcher_runs_ranks else pods
    return LocalPods((*pods, launcher), format_hostfile((pod.names[1] for pod in ranked), job.slots), scripts)


def _replace_run_hash_in_local_pods(value: Any) -> Any:
    """Return objects with the run's full name in place of the placeholder."""
    if isinstance(value, str):
        return value.replace(HASH_PLACEHOLDER, LOCAL)
    if isinstance(value, dict):
        return {key: _replace_run_hash_in_local_pods(one) for key, one in value.items()}
    return [_replace_run_hash_in_local_pods(one) for one in value] if isinstance(value, list) else value


def _build_local_pod(
    job: Job, entry: Body, run: str, role: str, index: int, given: Mapping[str, str], port: int
) -> LocalPod:
    container = entry["template"]["spec"]["template"]["spec"]["containers"][0]
    name = build_host_name(run, entry["name"], index)
    own = _resolve_downward_api_variables(job, container, run, name, index)
    container = expand_local_container_like_kubelet(container, {**given, **own})
    env: dict[str, str] = container["env"]
    if role == "launcher":
        env |= build_local_mpi_plugin_variables(job.slots)
    elif job.image.framework == "torch":
        env |= build_local_torch_plugin_variables(job.workers, job.slots, index, _ADDRESS, port)
    elif job.image.framework == "jax":
        env |= build_local_jax_plugin_variables(job.workers, index, _ADDRESS, port)
    elif job.image.framework == "xgboost":
        env |= build_local_xgboost_plugin_variables(job.workers, index, _ADDRESS, port)
    elif "MASTER_PORT" in env:
        env["MASTER_PORT"] = str(port)
    argv = (*container["command"], *container["args"])
    return LocalPod(
        name,
        run,
        role,
        index,
        argv,
        _localize_pod_environment(env, run, port),
        own,
        container.get("workingDir", ""),
    )


def _resolve_downward_api_variables(
    job: Job, container: Body, run: str, name: str, index: int
) -> dict[str, str]:
    """Return the variables whose value differs per pod."""
    fields = {
        "metadata.name": name,
        "metadata.namespace": job.namespace,
        "metadata.uid": name,
        "status.podIP": _ADDRESS,
        "status.hostIP": _ADDRESS,
        "spec.nodeName": name,
        "spec.serviceAccountName": job.service_account,
        f"metadata.labels['{TRAINJOB.run_label}']": run,
        COMPLETION_INDEX_FIELD: str(index),
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


def _localize_pod_environment(env: Mapping[str, str], run: str, port: int) -> dict[str, str]:
    """Replace values that only hold on a cluster: pod addresses, the rendezvous port, the interface."""
    found = {}
    for name, value in env.items():
        if name in _INTERFACES:
            value = LOOPBACK
        found[name] = _replace_pod_addresses(value, run, port) if f".{run}" in value else value
    return found


def _replace_pod_addresses(value: str, run: str, port: int) -> str:
    def at(match: re.Match[str]) -> str:
        return f"{_ADDRESS}:{port}" if match[1] else _ADDRESS

    return re.sub(rf"{re.escape(run)}-[a-z0-9-]+-0-\d+\.{re.escape(run)}(:\d+)?", at, value)


def list_given_variables(job: Job) -> dict[str, str]:
    """Return the variables whose values are in the cluster's secrets and ConfigMaps, with their sources."""
    found = {}
    for one in job.env:
        if one.secret or one.config_map:
            kind = f"secret {one.secret}" if one.secret else f"ConfigMap {one.config_map}"
            found[one.name] = f"key {one.key} of {kind}"
    return found
