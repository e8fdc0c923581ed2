"""The facts of a job on a cluster, for a source or a rendered run: pods, ranks, environment, volumes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.generators.scripts import SCRIPTS_FOLDER
from gangplan.imports.account import SourceNode
from gangplan.imports.command import UnreadableError, convert_command
from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourcePod, expand_source_variables_like_kubelet, is_gangplan_launch_command
from gangplan.imports.volumes import find_renamed_keys_of_imported_volume, list_imported_mounts
from gangplan.imports.workload import PodRole
from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB, role_of
from gangplan.objects import Body
from gangplan.records import dataclass

# Variables that a run passes to ranks of a script's own launchers, as the source's scheduler does.
_CARRIED = re.compile(
    r"\b(mpirun|mpiexec)((?: -x [A-Za-z_]\w*(?![\w=]))+| -genvlist [\w,]+| -envlist [\w,]+)"
)
_SHELL_OF_STEP = "gangplan-step"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact: its area, what it is about, its value, and its node in the source."""

    area: str
    what: str
    value: str
    node: SourceNode | None = None


@dataclass(slots=True)
class JobShape:
    """All facts of one job, by area and what they are about.

    `by_role` are variables, mounts and access of the launcher and of workers, each with its role. Pods of the
    roles in `privileged` have every capability.
    """

    facts: dict[tuple[str, str], Fact] = field(default_factory=dict)
    privileged: set[str] = field(default_factory=set)
    by_role: list[tuple[str, Fact]] = field(default_factory=list)

    def add(self, area: str, what: str, value: object, node: SourceNode | None = None) -> None:
        """Add a fact; the first one of its kind stays."""
        self.facts.setdefault((area, what), Fact(area, what, str(value), node))

    def add_of_role(
        self, role: str, area: str, what: str, value: str, node: SourceNode | None = None
    ) -> None:
        """Add a fact that each role may have differently."""
        self.add(area, what, value, node)
        self.by_role.append((role, Fact(area, what, value, node)))


def describe_source_for_import_comparison(draft: SpecDraft) -> JobShape:
    """Return the facts of the source, as its own controller would run it."""
    work, shape = draft.work, JobShape()
    groups: dict[str, list[PodRole]] = {}
    for role in work.roles:
        groups.setdefault("launcher" if role is work.launcher else "worker", []).append(role)
    for name, roles in groups.items():
        shape.add("pods", name, sum(role.count for role in roles), roles[0].pod.node)
        for role in roles:
            _add_source_pod_resources(shape, name, role.pod)
    for role in work.aside:
        shape.add("pods", role.name, role.count, role.pod.main.node)
        _add_source_pod_resources(shape, role.name, role.pod)
    steps = draft.values.get("steps", ())
    for number, step in enumerate(steps):
        name = f"step {step.get('name', '')}"
        shape.add("pods", name, 1)
        pod = work.before[number].pod if len(work.before) == len(steps) else None
        if pod is not None:
            _add_source_pod_resources(shape, name, pod)
    shape.add("ranks", "ranks", work.ranks)
    lead = work.lead.pod.main
    env = {one.name: one.value or "" for one in lead.env if one.source == ""}
    shape.add(
        "command",
        "program",
        format_program_for_import_comparison(draft.given_command or lead.command, env),
        lead.node["command"],
    )
    shape.add("image", "image", work.workers.pod.main.image, work.workers.pod.main.node["image"])
    for role in work.roles:
        name = "launcher" if role is work.launcher else "worker"
        for one in role.pod.main.env:
            if one.name not in work.sets:
                shape.add_of_role(name, "environment", one.name, one.shown(), one.node)
        _add_devices_of_other_source_containers(shape, role.pod)
        for mount in role.pod.main.mounts:
            held = list_imported_mounts(role.pod.main).get(mount.path, "")
            is_renamed = mount.volume and find_renamed_keys_of_imported_volume(mount.volume)
            node = mount.volume.node if mount.volume and is_renamed and not mount.sub_path else mount.node
            shape.add_of_role(name, "volumes", mount.path.rstrip("/") or "/", held, node)
        _add_node_access_of_source(shape, name, role.pod)
    if limit := work.settings.get("timeout"):
        shape.add("policy", "deadline in seconds", limit.value, limit.node)
    return shape


def _add_source_pod_resources(shape: JobShape, name: str, pod: SourcePod) -> None:
    for resource, amount in pod.main.resources.items():
        if amount.strip() in ("0", ""):
            continue  # as if it were absent
        node = pod.main.resources_node["limits"][resource] or pod.main.resources_node["requests"][resource]
        shape.add("devices" if "/" in resource else "resources", f"{resource} of a {name}", amount, node)


def _add_node_access_of_source(shape: JobShape, name: str, pod: SourcePod) -> None:
    for what in ("hostNetwork", "hostIPC", "hostPID"):
        for part in (pod.node, *pod.more):
            if part[what].value is True:
                area = "network" if what == "hostNetwork" else "access"
                shape.add_of_role(name, area, what, "true", part[what])
    context = pod.main.node["securityContext"]
    if context["privileged"].value is True:
        shape.add("access", f"privileged of a {name}", "true", context["privileged"])
    for added in context["capabilities"]["add"].items():
        shape.add_of_role(name, "access", f"capability {added.text()}", "added", added)


def _add_devices_of_other_source_containers(shape: JobShape, pod: SourcePod) -> None:
    for container in (*pod.setup, *pod.sidecars):
        for resource, amount in container.resources.items():
            if "/" in resource and amount.strip() not in ("0", ""):
                node = container.resources_node
                stated = node["limits"][resource] or node["requests"][resource]
                shape.add("devices", f"{resource} of container {container.name}", amount, stated)


def describe_run_for_import_comparison(objects: Sequence[Body]) -> JobShape:
    """Return the facts of a rendered run: its MPIJob, or its TrainJob with its TrainingRuntime."""
    shape = JobShape()
    if mpi_job := next((one for one in objects if one["kind"] == MPIJOB.kind), None):
        return _add_facts_of_compared_mpi_job(shape, mpi_job["spec"])
    job = next(one for one in objects if one["kind"] == TRAINJOB.kind)
    runtime = next(one for one in objects if one["kind"] == RUNTIME_KIND)
    trainer = job["spec"].get("trainer", {})
    nodes, slots = int(trainer.get("numNodes", 1)), trainer.get("numProcPerNode", 1)
    entries = {one["name"]: one for one in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    mpi = runtime["spec"]["mlPolicy"].get("mpi", {})
    runs_ranks = bool(mpi.get("runLauncherAsNode"))
    for name, entry in entries.items():
        role = role_of(name) or name
        pod = entry["template"]["spec"]["template"]["spec"]
        if _SHELL_OF_STEP in pod["containers"][0].get("command", ()):
            shape.add("pods", f"step {role}", 1)
            _add_compared_resources(shape, f"step {role}", pod["containers"][0])
            continue
        count = (
            1 if role == "launcher" else nodes - runs_ranks if role == "worker" else _count_role_pods(entry)
        )
        shape.add("pods", role, count)
        _add_facts_of_compared_container(shape, role, pod)
    shape.add("ranks", "ranks", nodes * int(slots) if str(slots).isdigit() else nodes)
    lead = entries.get("launcher") or entries["node"]
    container = lead["template"]["spec"]["template"]["spec"]["containers"][0]
    shape.add(
        "command",
        "program",
        format_program_for_import_comparison(
            expand_source_variables_like_kubelet(_extract_user_command(container)), {}
        ),
    )
    shape.add("image", "image", container["image"])
    if (limit := job["spec"].get("activeDeadlineSeconds")) is not None:
        shape.add("policy", "deadline in seconds", limit)
    return shape


def _add_facts_of_compared_mpi_job(shape: JobShape, spec: Mapping[str, Any]) -> JobShape:
    roles = spec["mpiReplicaSpecs"]
    for name, role in (("Launcher", "launcher"), ("Worker", "worker")):
        if name in roles:
            shape.add("pods", role, roles[name].get("replicas", 1))
            _add_facts_of_compared_container(shape, role, roles[name]["template"]["spec"])
    pods = int(roles.get("Worker", {}).get("replicas", 0)) + bool(spec.get("runLauncherAsWorker"))
    shape.add("ranks", "ranks", pods * int(spec.get("slotsPerWorker", 1)))
    container = roles["Launcher"]["template"]["spec"]["containers"][0]
    shape.add(
        "command",
        "program",
        format_program_for_import_comparison(
            expand_source_variables_like_kubelet(_extract_user_command(container)), {}
        ),
    )
    shape.add("image", "image", container["image"])
    if (limit := spec.get("runPolicy", {}).get("activeDeadlineSeconds")) is not None:
        shape.add("policy", "deadline in seconds", limit)
    return shape


def _count_role_pods(entry: Mapping[str, Any]) -> int:
    """Return the number of pods of a role other than the workers."""
    return int(entry.get("replicas", 1)) * int(entry["template"]["spec"].get("parallelism", 1))


def _extract_user_command(container: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command that the user knows, without the run's own shell."""
    command = tuple(map(str, container.get("command", ())))
    return (*(() if is_gangplan_launch_command(command) else command), *map(str, container.get("args", ())))


def _add_facts_of_compared_container(shape: JobShape, role: str, pod: Mapping[str, Any]) -> None:
    container = pod["containers"][0]
    volumes = {one["name"]: one for one in pod.get("volumes", ())}
    _add_compared_resources(shape, role, container)
    for other in (*pod.get("initContainers", ()), *pod["containers"][1:]):
        for resource, amount in other.get("resources", {}).get("limits", {}).items():
            if "/" in resource:
                shape.add("devices", f"{resource} of container {other['name']}", amount)
    for one in container.get("env", ()):
        shape.add_of_role(role, "environment", one["name"], _describe_compared_env_value(one))
    for mount in container.get("volumeMounts", ()):
        if mount["mountPath"] != SCRIPTS_FOLDER:
            held = _describe_volume_source(volumes.get(mount["name"], {}))
            if part := mount.get("subPath"):
                held = f"{held} only {part}"
            shape.add_of_role(role, "volumes", mount["mountPath"], held)
    if pod.get("hostNetwork"):
        shape.add_of_role(role, "network", "hostNetwork", "true")
    if container.get("securityContext", {}).get("privileged") is True:
        shape.privileged.add(role)
        shape.add("access", f"privileged of a {role}", "true")
    for one in container.get("securityContext", {}).get("capabilities", {}).get("add", ()):
        shape.add_of_role(role, "access", f"capability {one}", "added")


def _add_compared_resources(shape: JobShape, role: str, container: Mapping[str, Any]) -> None:
    for resource, amount in container["resources"]["limits"].items():
        shape.add("devices" if "/" in resource else "resources", f"{resource} of a {role}", amount)


def _describe_compared_env_value(variable: Mapping[str, Any]) -> str:
    source = variable.get("valueFrom", {})
    if one := source.get("secretKeyRef"):
        return f"secret {one['name']}/{one['key']}"
    if one := source.get("configMapKeyRef"):
        return f"configMap {one['name']}/{one['key']}"
    if one := source.get("fieldRef"):
        return f"field {one['fieldPath']}"
    if one := source.get("resourceFieldRef"):
        return f"resource {one['resource']}"
    return str(variable.get("value", "")).replace("$$", "$")


def _describe_volume_source(volume: Mapping[str, Any]) -> str:
    if one := volume.get("persistentVolumeClaim"):
        return f"persistentVolumeClaim {one['claimName']}"
    if one := volume.get("secret"):
        return f"secret {one['secretName']}"
    if one := volume.get("configMap"):
        return f"configMap {one['name']}"
    if "emptyDir" in volume:
        return f"emptyDir {volume['emptyDir'].get('medium', '')}".strip()
    if one := volume.get("hostPath"):
        return f"hostPath {one['path']}"
    return next((key for key in volume if key != "name"), "")


def format_program_for_import_comparison(words: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the program that ranks run, without what starts it: commands with equal programs are equal."""
    if not words:
        return "(the image's entrypoint)"
    for family in ("OpenMPI5", "MPICH"):
        try:
            found = convert_command(words, family, env)
        except UnreadableError:
            break
        if not found.questions and not found.why:
            return _CARRIED.sub(r"\1", " ".join(_normalise_compared_program_words(found.command)))
    return " ".join(words)


def _normalise_compared_program_words(words: Sequence[str]) -> Iterator[str]:
    """Yield a program's words; a Python program is the same whichever way the interpreter is found."""
    rest = list(words)
    if rest and rest[0].rpartition("/")[2] == "torchrun":
        rest = rest[1:]
        while rest and rest[0].startswith(("--nnodes=", "--max-restarts=")):  # of an elastic run
            rest = rest[1:]
        rest = rest[1:] if rest[:1] == ["--no-python"] else ["python", *rest]
    if rest and rest[0].rpartition("/")[2].startswith("python"):
        rest = ["python", *rest[1:]]
    return (word.strip() for word in rest)
