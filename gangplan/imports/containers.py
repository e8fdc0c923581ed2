"""Map init containers and sidecars to `setup` and `sidecars` of the spec."""

from __future__ import annotations

import re
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.amounts import convert_imported_cores, convert_imported_memory
from gangplan.imports.draft import SpecDraft
from gangplan.imports.environment import convert_env_value_to_spec
from gangplan.imports.images import find_catalog_name_of_image
from gangplan.imports.pods import SourceContainer
from gangplan.imports.workload import PodRole
from gangplan.spec.words import DNS_LABEL

_OWN = {
    "imagePullPolicy": "the image is pinned by its digest, so that it never changes",
    "ports": "pods of a run may use all ports among themselves",
    "terminationMessagePath": "the log of a run says how it ended",
    "terminationMessagePolicy": "the log of a run says how it ended",
    "restartPolicy": "a sidecar is started again, and ends with the program",
    "stdin": "runs have no terminal",
    "tty": "runs have no terminal",
}
_NO_DEVICES = "setup and sidecars have CPU and memory, and no devices"
_LET_PROGRAM = "Let the program use all devices of the pod, or make its part workers of another job."
_NO_ACCESS = "setup, sidecars and steps of a run have no access to the node"
_LET_NODE = "What it sets on the node (sysctl, modules, limits) is the platform's to set there."
_SHELL_MOUNT = (
    "the container mounts what the program mounts, at the same folders",
    "Mount it in the program, too.",
)


def map_containers_to_setup_and_sidecars(draft: SpecDraft, role: PodRole) -> None:
    """Map the init containers and sidecars of a role; those of a launcher without ranks become questions."""
    for field, containers in (("setup", role.pod.setup), ("sidecars", role.pod.sidecars)):
        for container in containers:
            if container.node["name"].value in draft.of_fabric:
                container.node.mapped("fabrics")
            elif role is draft.work.launcher and not draft.work.runs_on_launcher:
                why = f"'{container.name}' is in the pod of the launcher; setup and sidecars of a run are in its workers"
                draft.ask(container.node, why, "Do it in the command.")
            else:
                _map_container_to_setup_or_sidecar(draft, role, container, field)


def _map_container_to_setup_or_sidecar(
    draft: SpecDraft, role: PodRole, container: SourceContainer, field: str
) -> None:
    node = container.node
    is_same = container.image in ("", role.pod.main.image)
    if container.has_entrypoint and (container.command or is_same):
        why = f"the command of '{container.name}' is the image's own, which is not known here"
        draft.ask(node, why, "Add it yourself, with its command.")
        return
    entry: dict[str, Any] = {}
    if re.fullmatch(DNS_LABEL, container.name):
        entry["name"] = container.name
    if not is_same and (image := find_catalog_name_of_image(draft, container.image, node["image"])):
        entry["image"] = image
    if container.command:
        entry["command"] = list(container.command)
    entry |= _convert_container_env_to_spec(draft, role, container, field)
    for name, value in (("cpu", convert_imported_cores), ("memory", convert_imported_memory)):
        amount = container.resources.get(name)
        if amount and (found := value(amount)) is not None:
            entry[name] = found
            for kind in ("limits", "requests"):
                container.resources_node[kind][name].mapped(field)
    _ask_about_container_devices(draft, container)
    for name in ("name", "image", "command", "args"):
        node[name].mapped(field)
    for name, why in _OWN.items():
        node[name].dropped(why)
    account_for_container_security(draft, node, "setup and sidecars run as the program's user")
    if node["workingDir"]:
        node["workingDir"].asked("setup and sidecars start in the program's folder")
    account_for_container_mounts(draft, role, container)
    listed = draft.values.setdefault(field, [])
    if entry not in listed:
        listed.append(entry)
    draft.origins.setdefault(field, node)


def account_for_container_security(draft: SpecDraft, node: SourceNode, why: str) -> None:
    """Account for the security of a container next to the program: its user goes, access to the node is asked about."""
    context = node["securityContext"]
    added = context["capabilities"]["add"]
    rights = [context["privileged"]] if context["privileged"].value is True else []
    for one in [*rights, *([added] if added.value else [])]:
        what = "is privileged" if one in rights else f"has {', '.join(added.texts())}"
        draft.ask(one, f"'{node['name'].text()}' {what}; {_NO_ACCESS}", _LET_NODE)
    context.dropped(why)


def _ask_about_container_devices(draft: SpecDraft, container: SourceContainer) -> None:
    """Ask about devices of a container, and account for the other resources that it has no field for."""
    node = container.resources_node
    node.asked(_NO_DEVICES)
    for resource, amount in container.resources.items():
        if "/" in resource and amount.strip() not in ("0", ""):
            stated = node["limits"][resource] or node["requests"][resource]
            draft.ask(stated, f"'{container.name}' has {amount}; {_NO_DEVICES}", _LET_PROGRAM)


def _convert_container_env_to_spec(
    draft: SpecDraft, role: PodRole, container: SourceContainer, field: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in container.env:
        value = convert_env_value_to_spec(draft, one, role)
        if value is None:
            one.node.asked(
                "variables of setup and sidecars have a value, or come from a ConfigMap or the pod"
            )
        else:
            found[one.name] = value
            one.node.mapped(field)
    return {"env": found} if found else {}


def account_for_container_mounts(draft: SpecDraft, role: PodRole, container: SourceContainer) -> None:
    """Account for the mounts of a container, which sees exactly what the program of its role mounts."""
    of_program = {(mount.name, mount.path.rstrip("/")) for mount in role.pod.main.mounts}
    for mount in container.mounts:
        if (mount.name, mount.path.rstrip("/")) in of_program:
            mount.node.same("it sees what the program mounts")
        else:
            _ask_about_container_mount(draft, container, mount.node)


def _ask_about_container_mount(draft: SpecDraft, container: SourceContainer, node: SourceNode) -> None:
    message, help = _SHELL_MOUNT
    draft.ask(node, f"'{container.name}' mounts {node['mountPath'].text()}; {message}", help)
