"""Read Volcano's Job: batch.volcano.sh/v1alpha1 (Volcano v1.8 to v1.14)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.groups import SourcePodGroup, group_imported_pods_into_roles
from gangplan.imports.layers import LayeredNode
from gangplan.imports.mpijob import MPI_OPERATOR_VARIABLES
from gangplan.imports.pods import SourceMount, SourcePod, SourceVolume, read_imported_pod_template
from gangplan.imports.policies import POD_GROUP_REASON
from gangplan.imports.sources import OtherObject
from gangplan.imports.volcano_plugins import (
    PluginFlags,
    account_for_volcano_plugins,
    group_tensorflow_tasks,
    read_volcano_plugins,
)
from gangplan.imports.workload import SourceError, SourceJob, SourceSetting

_POLICY = "a failed worker fails the run; retries restart it as a whole"
_WHOLE = (
    "schedulerName",
    "queue",
    "minAvailable",
    "minSuccess",
    "runningEstimate",
    "ttlSecondsAfterFinished",
)
# What the plugins set besides VC_<TASK>_HOSTS and VC_<TASK>_NUM (volcano pkg/controllers/job/plugins: env,
# svc, distributed-framework/pytorch and tensorflow).
_INDEXES = ("VC_TASK_INDEX", "VK_TASK_INDEX")
_OF_PLUGINS = {
    "pytorch": ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"),
    "tensorflow": ("TF_CONFIG",),
    "mpi": ("MPI_HOST",),
}


def read_volcano(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a Job of Volcano. Raises SourceError for one without a pod."""
    root = account.root()
    spec = root["spec"]
    name = root.at("metadata", "name").text() or root.at("metadata", "generateName").text()
    groups = [
        one
        for number, task in enumerate(spec["tasks"].items())
        if (one := _read_volcano_task_pod_group(task, number, spec))
    ]
    if not groups:
        raise SourceError("no task of it has a container (spec.tasks[].template)")
    plugins = read_volcano_plugins(spec["plugins"])
    found = group_imported_pods_into_roles(groups, *_find_volcano_mpi_tasks(plugins, groups))
    if "tensorflow" in plugins and found.start == "plain":
        found = group_tensorflow_tasks(groups, plugins["tensorflow"], found)
    start, framework = found.start, found.framework
    if "pytorch" in plugins and start == "plain":
        start, framework = "torch", "torch"
    work = SourceJob(
        "VolcanoJob", name, start, account, found.roles, framework=framework or "", aside=found.aside
    )
    work.mpi = "OpenMPI" if start == "mpi" else ""
    _set_volcano_hosts_and_env(work, groups, plugins)
    workers = next(one for one in groups if one.pod is found.roles[-1].pod)
    work.settings["workers"] = SourceSetting(workers.count, workers.node["replicas"] or workers.node)
    _map_volcano_job_policies(spec, work)
    for group in groups:
        _map_volcano_task_fields(group.node)
    return work


def _read_volcano_task_pod_group(task: SourceNode, number: int, spec: SourceNode) -> SourcePodGroup | None:
    """Return the pods of a task; None if there are none."""
    pod = read_imported_pod_template(task["template"])
    replicas = task["replicas"].count()
    count = 1 if replicas is None else replicas
    if pod is None or count < 1:
        task.dropped("it has no pods")
        return None
    return SourcePodGroup(
        task["name"].text() or f"task{number}", count, _add_volcano_job_volumes(pod, spec), task
    )


def _add_volcano_job_volumes(pod: SourcePod, spec: SourceNode) -> SourcePod:
    """Return a pod with the volumes of the job, which all of its containers mount."""
    main = pod.main
    for node in spec["volumes"].items():
        claim = node["volumeClaimName"]
        if not claim:
            continue  # one that Volcano creates for the job
        source = LayeredNode(node, {"persistentVolumeClaim": LayeredNode(node, {"claimName": claim})})
        volume = SourceVolume(claim.text(), "persistentVolumeClaim", claim.text(), source)
        mount = SourceMount(node["mountPath"].text(), volume, claim.text(), False, "", node)
        main = replace(main, mounts=(*main.mounts, mount))
    return replace(pod, main=main)


def _find_volcano_mpi_tasks(plugins: PluginFlags, groups: Sequence[SourcePodGroup]) -> tuple[str, str]:
    """Return the tasks that start the MPI ranks, and have them, if the plugin names them."""
    if "mpi" not in plugins:
        return "", ""
    names = {one.name for one in groups}
    lead, workers = (plugins["mpi"].get(kind, kind) for kind in ("master", "worker"))
    return (lead, workers if workers in names else "") if lead in names else ("", "")


def _set_volcano_hosts_and_env(
    work: SourceJob, groups: Sequence[SourcePodGroup], plugins: PluginFlags
) -> None:
    """Set the names of pods, and the variables that plugins set."""
    names = set(_INDEXES) | (MPI_OPERATOR_VARIABLES if work.start == "mpi" else set())
    is_merged = len(work.roles) > 1
    for group in groups:
        bare = group.name.upper().replace("-", "_")
        names |= {f"VC_{bare}_HOSTS", f"VC_{bare}_NUM"}
        is_all = group.pod is work.workers.pod and not is_merged
        work.renames[f"VC_{bare}_NUM"] = "count" if is_all else str(group.count)
    work.renames |= dict.fromkeys(_INDEXES, "index")
    for plugin, of_plugin in _OF_PLUGINS.items():
        names |= set(of_plugin if plugin in plugins else ())
    work.sets = frozenset(names)
    tasks = "|".join(re.escape(one.name) for one in groups)
    first = next(one for one in groups if one.pod is work.roles[0].pod)
    domain = rf"(?:\.{re.escape(work.name)})?"
    work.hosts = rf"\b{re.escape(work.name)}-(?:{tasks})-[0-9]+\b{domain}"
    work.first_host = rf"\b{re.escape(work.name)}-{re.escape(first.name)}-0\b{domain}"


def _map_volcano_job_policies(spec: SourceNode, work: SourceJob) -> None:
    for name in _WHOLE:
        spec[name].dropped(POD_GROUP_REASON)
    account_for_volcano_plugins(spec["plugins"], work)
    tries = spec["maxRetry"]
    if (count := tries.number()) is not None:
        work.settings["retries"] = SourceSetting(count, tries)
    if spec["priorityClassName"]:
        work.settings["priority"] = SourceSetting(spec["priorityClassName"].text(), spec["priorityClassName"])
    for one in spec["policies"].items():
        one.dropped(
            "a run is complete once the program is" if one["action"].value == "CompleteJob" else _POLICY
        )
    spec["networkTopology"].asked("placement.topology keeps workers close together")
    for node in spec["volumes"].items():
        for name in ("volumeClaim", "generateName"):
            node[name].asked(
                "Volcano makes this claim for the job; a run mounts claims that exist, and scratch is room of its own"
            )


def _map_volcano_task_fields(task: SourceNode) -> None:
    """Map a task whose pods are workers or the launcher."""
    task["replicas"].mapped("workers")
    task["name"].dropped("Trainer names the pods of a run")
    task["minAvailable"].dropped(POD_GROUP_REASON)
    task["maxRetry"].dropped(_POLICY)
    for one in task["policies"].items():
        one.dropped(
            "a run is complete once the program is" if one["action"].value == "CompleteJob" else _POLICY
        )
    task["dependsOn"].dropped("gangplan starts workers first, and the launcher once all are ready")
    task["topologyPolicy"].asked("no field of a spec chooses NUMA nodes")
    task["partitionPolicy"].asked("placement.topology keeps workers close together")
