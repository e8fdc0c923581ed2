"""Build the pod that corresponds to a batch script, as a tree of origins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.made import SELF_KEY, MadeNode, OriginValue
from gangplan.imports.scripted.containers import convert_image_uri_to_reference
from gangplan.imports.scripted.variables import RUN_LABEL_FIELD
from gangplan.imports.scripted.wanted import HostMount, WantedAllocation, format_spec_memory

_GPU = "nvidia.com/gpu"
_OF_CPU = ("cpus_per_node", "cpus_per_task", "cpus_per_gpu", "least_cpus", "tasks_per_node", "tasks")
_OF_MEMORY = (
    "memory",
    "memory_per_gpu",
    "memory_per_cpu",
    "memory_of_job",
    "memory_per_task",
    "addresses_of_job",
    "addresses_per_task",
)
_OF_GPUS = ("gpus_per_node", "gpus", "gpus_per_task", "gpus_per_socket", "tasks_per_gpu")
# Folders that every container has, or that drivers and the fabric's owner put there.
_OWN = (
    "/dev",
    "/proc",
    "/sys",
    "/etc",
    "/tmp",
    "/var/run",
    "/run",
    "/usr",
    "/lib",
    "/opt/amazon",
    "/var/tmp",
)
Variables = Mapping[str, tuple[str, SourceNode]]


def build_pod_tree_of_script(
    account: Account,
    wanted: WantedAllocation,
    words: Sequence[str],
    env: Variables,
    workdir: tuple[str, SourceNode] | None,
    place: SourceNode,
) -> MadeNode:
    """Build a pod template: one container with its resources, variables, mounts and working folder."""
    container: dict[str, Any] = {
        SELF_KEY: OriginValue(None, place),
        "name": OriginValue("node"),
        "command": OriginValue(list(words), place),
    }
    image = convert_image_uri_to_reference(wanted.image)
    if image:
        container["image"] = OriginValue(image, wanted.at.get("image"))
    elif "image" in wanted.at:
        node = wanted.at["image"]
        node.asked(f"{node.text()} is a file of the old cluster; --image names the same image in the catalog")
    if folder := _choose_script_working_folder(wanted, workdir):
        container["workingDir"] = folder
    container["env"] = [_build_script_env_variable_tree(name, *one) for name, one in env.items()]
    container["resources"] = {"limits": _convert_batch_allocation_to_limits(wanted)}
    mounts, volumes = _convert_script_mounts_to_claims(wanted.mounts)
    container["volumeMounts"] = mounts
    return MadeNode(account, {"spec": {"containers": [container], "volumes": volumes}})


def _build_script_env_variable_tree(name: str, value: str, node: SourceNode) -> dict[str, Any]:
    if value == "@field":
        return {
            SELF_KEY: OriginValue(None, node),
            "name": OriginValue(name),
            "valueFrom": {"fieldRef": {"fieldPath": OriginValue(RUN_LABEL_FIELD)}},
        }
    return {
        SELF_KEY: OriginValue(None, node),
        "name": OriginValue(name, node),
        "value": OriginValue(value, node),
    }


def _choose_script_working_folder(
    wanted: WantedAllocation, workdir: tuple[str, SourceNode] | None
) -> OriginValue | None:
    node = wanted.at.get("workdir")
    if workdir is not None:
        if node is not None:
            node.dropped("the script goes to another folder")
        return OriginValue(*workdir)
    if not wanted.workdir.startswith("/") or wanted.workdir == "/":
        if node is not None:
            node.dropped(
                "the folder from which a job was submitted is the image's own in a run; workdir: names another"
            )
        return None
    return OriginValue(wanted.workdir, node)


def _convert_batch_allocation_to_limits(wanted: WantedAllocation) -> dict[str, OriginValue]:
    """Return what each node gives, by Kubernetes' names."""
    found: dict[str, OriginValue] = {}
    for name, count, options in (
        ("cpu", wanted.cpus_on_node, _OF_CPU),
        ("memory", wanted.memory_on_node, _OF_MEMORY),
        (_GPU, wanted.gpus_on_node, _OF_GPUS),
    ):
        if count:
            node = next((wanted.at[option] for option in options if option in wanted.at), None)
            found[name] = OriginValue(format_spec_memory(count) if name == "memory" else str(count), node)
            for other in (wanted.at.get(option) for option in options):
                if other is not None and other is not node:
                    other.dropped(f"another option decides {name}")
    return found


def list_mounted_folders(mounts: Sequence[HostMount]) -> list[str]:
    """Return the folders at which a run has claims in place of those of the old cluster."""
    return [one["mountPath"].value for one in _convert_script_mounts_to_claims(mounts)[0]]


def _convert_script_mounts_to_claims(mounts: Sequence[HostMount]) -> tuple[list[Any], list[Any]]:
    """Return mounts and volumes: shared folders as claims, without folders that every container has."""
    of_container: list[Any] = []
    of_pod: list[Any] = []
    taken: set[str] = set()
    for mount in mounts:
        host = mount.host.rstrip("/") or "/"
        target = mount.target.rstrip("/") or "/"
        if "$" in host + target or not host.startswith("/") or not target.startswith("/") or host == "/":
            if mount.node is not None:
                mount.node.asked(f"{host} is only known on the old cluster; mount a claim: data:")
            continue
        if any(host == one or host.startswith(f"{one}/") for one in _OWN) or target in taken:
            if mount.node is not None:
                mount.node.dropped(
                    f"{host} belongs to the node; the platform's fabric and the container have their own"
                )
            continue
        taken.add(target)
        name = re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-")[:63].strip("-")
        volume: dict[str, Any] = {
            SELF_KEY: OriginValue(None, mount.node),
            "name": OriginValue(name),
            "persistentVolumeClaim": {"claimName": OriginValue(name, mount.node)},
        }
        if not any(one["name"].value == name for one in of_pod):
            of_pod.append(volume)
        entry: dict[str, Any] = {
            SELF_KEY: OriginValue(None, mount.node),
            "name": OriginValue(name),
            "mountPath": OriginValue(target, mount.node),
        }
        if mount.read_only:
            entry["readOnly"] = OriginValue(True, mount.node)
        of_container.append(entry)
    return of_container, of_pod
