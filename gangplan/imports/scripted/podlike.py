"""Build the pod that corresponds to a batch script, as a tree of origins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.imports.account import Account, Node
from gangplan.imports.made import SELF, Made, Origin
from gangplan.imports.scripted.containers import reference_of
from gangplan.imports.scripted.variables import RUN_LABEL
from gangplan.imports.scripted.wanted import Mount, Wanted, memory_text

_GPU = "nvidia.com/gpu"
_OF_CPU = ("cpus_per_node", "cpus_per_task", "cpus_per_gpu", "tasks_per_node", "tasks")
_OF_MEMORY = ("memory", "memory_per_gpu", "memory_per_cpu")
_OF_GPUS = ("gpus_per_node", "gpus", "gpus_per_task")
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
Variables = Mapping[str, tuple[str, Node]]


def pod_tree(
    account: Account,
    wanted: Wanted,
    words: Sequence[str],
    env: Variables,
    workdir: tuple[str, Node] | None,
    place: Node,
) -> Made:
    """Build a pod template: one container with its resources, variables, mounts and working folder."""
    container: dict[str, Any] = {
        SELF: Origin(None, place),
        "name": Origin("node"),
        "command": Origin(list(words), place),
    }
    image = reference_of(wanted.image)
    if image:
        container["image"] = Origin(image, wanted.at.get("image"))
    elif "image" in wanted.at:
        node = wanted.at["image"]
        node.asked(f"{node.text()} is a file of the old cluster; --image names the same image in the catalog")
    if folder := _workdir(wanted, workdir):
        container["workingDir"] = folder
    container["env"] = [_variable(name, *one) for name, one in env.items()]
    container["resources"] = {"limits": _limits(wanted)}
    mounts, volumes = _volumes(wanted.mounts)
    container["volumeMounts"] = mounts
    return Made(account, {"spec": {"containers": [container], "volumes": volumes}})


def _variable(name: str, value: str, node: Node) -> dict[str, Any]:
    if value == "@field":
        return {
            SELF: Origin(None, node),
            "name": Origin(name),
            "valueFrom": {"fieldRef": {"fieldPath": Origin(RUN_LABEL)}},
        }
    return {SELF: Origin(None, node), "name": Origin(name, node), "value": Origin(value, node)}


def _workdir(wanted: Wanted, workdir: tuple[str, Node] | None) -> Origin | None:
    node = wanted.at.get("workdir")
    if workdir is not None:
        if node is not None:
            node.dropped("the script goes to another folder")
        return Origin(*workdir)
    if not wanted.workdir.startswith("/") or wanted.workdir == "/":
        if node is not None:
            node.dropped(
                "the folder from which a job was submitted is the image's own in a run; workdir: names another"
            )
        return None
    return Origin(wanted.workdir, node)


def _limits(wanted: Wanted) -> dict[str, Origin]:
    """Return what each node gives, by Kubernetes' names."""
    found: dict[str, Origin] = {}
    for name, count, options in (
        ("cpu", wanted.cpus_on_node, _OF_CPU),
        ("memory", wanted.memory_on_node, _OF_MEMORY),
        (_GPU, wanted.gpus_on_node, _OF_GPUS),
    ):
        if count:
            node = next((wanted.at[option] for option in options if option in wanted.at), None)
            found[name] = Origin(memory_text(count) if name == "memory" else str(count), node)
    return found


def _volumes(mounts: Sequence[Mount]) -> tuple[list[Any], list[Any]]:
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
            SELF: Origin(None, mount.node),
            "name": Origin(name),
            "persistentVolumeClaim": {"claimName": Origin(name, mount.node)},
        }
        if not any(one["name"].value == name for one in of_pod):
            of_pod.append(volume)
        entry: dict[str, Any] = {
            SELF: Origin(None, mount.node),
            "name": Origin(name),
            "mountPath": Origin(target, mount.node),
        }
        if mount.read_only:
            entry["readOnly"] = Origin(True, mount.node)
        of_container.append(entry)
    return of_container, of_pod
