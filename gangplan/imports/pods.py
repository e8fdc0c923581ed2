"""The parts of a pod template that an import needs, each value with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from gangplan.generators.scripts import SCRIPT_FILES, SCRIPTS_FOLDER, SCRIPTS_VOLUME
from gangplan.imports.account import SourceNode
from gangplan.imports.made import MadeNode
from gangplan.records import dataclass
from gangplan.validate.secrets import HIDDEN, RANDOM_TEXT, find_secrets

# Kinds of volumes by their field, and the field that names what is mounted (core/v1, Kubernetes 1.34).
_REFERENCES = {
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
    "configMap": "name",
    "hostPath": "path",
    "emptyDir": "medium",
    "nfs": "path",
    "csi": "driver",
    "ephemeral": "",
    "projected": "",
    "downwardAPI": "",
}

# The last word of the command of a container that gangplan rendered while its scripts were part of each run.
_SCRIPTS_INSIDE = ("gangplan-launch", "gangplan-worker")

_SCRIPTS = "gangplan mounts its launch scripts in every run"
_EXPANSION = re.compile(r"\$(\$|\(([A-Za-z_][A-Za-z0-9_]*)\))")


@dataclass(frozen=True, slots=True)
class SourceVariable:
    """A variable: its `value`, or `source` (`secret`, `configMap`, `field`, `resource`) and `reference`."""

    name: str
    node: SourceNode
    value: str | None = None
    source: str = ""
    reference: str = ""

    def shown(self) -> str:
        """Return the value or the source, for people and for comparisons; never a secret."""
        if self.is_secret():
            return HIDDEN
        return f"{self.source} {self.reference}" if self.source else self.value or ""

    def is_secret(self) -> bool:
        """Return whether the value itself is a secret, by its form or by the name of the variable."""
        text = f"{self.name}: {json.dumps(self.value or '')}\n"
        return not self.source and any(one.what != RANDOM_TEXT for one in find_secrets(text))


@dataclass(frozen=True, slots=True)
class SourceVolume:
    """A volume of a pod: its kind, as Kubernetes names the field, and what it refers to."""

    name: str
    kind: str
    reference: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class SourceMount:
    """A volume mounted in a container."""

    path: str
    volume: SourceVolume | None
    name: str
    read_only: bool
    sub_path: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class SourceContainer:
    """A container.

    `words` are its command and arguments; `has_entrypoint` is set if they are passed to the image's own
    entrypoint.
    """

    name: str
    image: str
    words: tuple[str, ...]
    has_entrypoint: bool
    env: tuple[SourceVariable, ...]
    resources: Mapping[str, str]
    mounts: tuple[SourceMount, ...]
    workdir: str
    node: SourceNode
    resources_node: SourceNode

    @property
    def command(self) -> tuple[str, ...]:
        """Return the words as the program gets them; no kubelet expands those of a batch script."""
        return (
            self.words
            if isinstance(self.node, MadeNode)
            else expand_source_variables_like_kubelet(self.words, self.env)
        )


@dataclass(frozen=True, slots=True)
class SourcePod:
    """A pod: the container that trains, init containers, sidecars, and nodes for the rest.

    `more` are further parts of its spec that are elsewhere, such as patches.
    """

    main: SourceContainer
    node: SourceNode
    setup: tuple[SourceContainer, ...] = ()
    sidecars: tuple[SourceContainer, ...] = ()
    volumes: tuple[SourceVolume, ...] = ()
    metadata: SourceNode | None = None
    more: tuple[SourceNode, ...] = ()

    @property
    def host_network(self) -> bool:
        """Whether it uses the network of its node."""
        return self.node["hostNetwork"].value is True


def read_imported_pod_template(template: SourceNode, main: str = "") -> SourcePod | None:
    """Return the pod of a template (`metadata`, `spec`); None without a container.

    `main` names the container that trains; without one of that name, it is the first.
    """
    spec = template["spec"]
    volumes = tuple(
        read_imported_pod_volume(one)
        for one in spec["volumes"].items()
        if not _is_launch_script_volume_in_source(one)
    )
    by_name = {one.name: one for one in volumes}
    containers = [_read_imported_pod_container(one, by_name) for one in spec["containers"].items()]
    if not containers:
        return None
    chosen = next((one for one in containers if main and one.name == main), containers[0])
    inits = [_read_imported_pod_container(one, by_name) for one in spec["initContainers"].items()]
    native = [one for one in inits if one.node["restartPolicy"].value == "Always"]
    return SourcePod(
        chosen,
        spec,
        tuple(one for one in inits if one not in native),
        (*native, *(one for one in containers if one is not chosen)),
        volumes,
        template["metadata"],
    )


def read_imported_pod_volume(node: SourceNode) -> SourceVolume:
    """Return a volume of a pod."""
    for kind, name in _REFERENCES.items():
        if isinstance(node.value, dict) and kind in node.value:
            return SourceVolume(node["name"].text(), kind, node[kind][name].text() if name else "", node)
    kind = next((key for key, _ in node.fields() if key != "name"), "emptyDir")
    return SourceVolume(node["name"].text(), kind, "", node)


def _read_imported_pod_container(node: SourceNode, volumes: Mapping[str, SourceVolume]) -> SourceContainer:
    command, args = node["command"].texts(), node["args"].texts()
    has_entrypoint = not command
    if is_gangplan_launch_command(command):
        node["command"].dropped("gangplan writes the script that starts the command")
        command = ()
    mounts = [one for one in node["volumeMounts"].items() if not _is_launch_script_mount_in_source(one)]
    return SourceContainer(
        node["name"].text(),
        node["image"].text(),
        (*command, *args),
        has_entrypoint,
        tuple(map(read_imported_container_variable, node["env"].items())),
        read_amounts(node["resources"]),
        tuple(read_imported_volume_mount(one, volumes) for one in mounts),
        node["workingDir"].text(),
        node,
        node["resources"],
    )


def is_gangplan_launch_command(command: Sequence[str]) -> bool:
    """Return whether the command of a container is that of a run: its arguments are what the user asked
    for."""
    if tuple(command[:2]) != ("/bin/sh", "-c"):
        return False
    is_mounted = len(command) > 3 and SCRIPTS_FOLDER in command[2] and command[3] in SCRIPT_FILES
    return is_mounted or command[-1] in _SCRIPTS_INSIDE


def _is_launch_script_volume_in_source(volume: SourceNode) -> bool:
    """Return whether a volume holds the launch scripts of runs, and account for it."""
    is_theirs = volume["configMap"]["name"].text().startswith(f"{SCRIPTS_VOLUME}-")
    if is_theirs and volume["name"].text() == SCRIPTS_VOLUME:
        volume.dropped(_SCRIPTS)
        return True
    return False


def _is_launch_script_mount_in_source(mount: SourceNode) -> bool:
    """Return whether a mount is that of the launch scripts of runs, and account for it."""
    if mount["name"].text() == SCRIPTS_VOLUME and mount["mountPath"].text() == SCRIPTS_FOLDER:
        mount.dropped(_SCRIPTS)
        return True
    return False


def expand_source_variables_like_kubelet(
    words: Sequence[str], env: Sequence[SourceVariable] = ()
) -> tuple[str, ...]:
    """Expand `$(NAME)` of static variables like the kubelet; a name that is not set stays as it is.

    `$$` becomes one dollar sign (k8s.io/kubernetes third_party/forked/golang/expansion, v1.34).
    """
    known = {one.name: one.value or "" for one in env if not one.source}
    return tuple(
        _EXPANSION.sub(lambda found: known.get(found[2], found[0]) if found[2] else "$", word)
        for word in words
    )


def read_imported_volume_mount(node: SourceNode, volumes: Mapping[str, SourceVolume]) -> SourceMount:
    """Return a volume mounted in a container."""
    name = node["name"].text()
    return SourceMount(
        node["mountPath"].text(),
        volumes.get(name),
        name,
        node["readOnly"].value is True,
        node["subPath"].text(),
        node,
    )


def read_imported_container_variable(node: SourceNode) -> SourceVariable:
    """Return a variable of a container."""
    name, source = node["name"].text(), node["valueFrom"]
    if not source:
        return SourceVariable(name, node, node["value"].text())
    for kind, short in (("secretKeyRef", "secret"), ("configMapKeyRef", "configMap")):
        if one := source[kind]:
            return SourceVariable(name, node, None, short, f"{one['name'].text()}/{one['key'].text()}")
    if one := source["fieldRef"]:
        return SourceVariable(name, node, None, "field", one["fieldPath"].text())
    if one := source["resourceFieldRef"]:
        return SourceVariable(name, node, None, "resource", one["resource"].text())
    return SourceVariable(name, node, None, "other", "")


def read_amounts(resources: SourceNode) -> dict[str, str]:
    """Return what a container may use, by resource: its limit, else its request."""
    found = {name: value.text() for name, value in resources["requests"].fields()}
    found.update({name: value.text() for name, value in resources["limits"].fields()})
    return found
