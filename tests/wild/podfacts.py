"""What a pod is, from the pod that a control plane made, in the words of an import's report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.generators.beside import render_script_text
from gangplan.generators.scripts import SCRIPTS_FOLDER
from gangplan.imports.images import split_source_image_reference
from gangplan.imports.pods import expand_source_variables_like_kubelet, is_gangplan_launch_command
from gangplan.imports.shapes import format_program_for_import_comparison
from gangplan.model.quantity import parse_quantity

Object = Mapping[str, Any]
# Variables and files that the controllers of both sides set, each its own.
_OF_CONTROLLERS = ("PET_", "JOB_COMPLETION_INDEX", "OMPI_MCA_")
_OF_SERVER = "/var/run/secrets/kubernetes.io/serviceaccount"
# Volumes of the hosts that ranks start on (Trainer 2.3, mpi-operator 0.8), and those of the keys for them.
_HOSTS = ("mpi-hostfile", "mpi-job-config")
_KEYS = ("mpi-ssh-auth", "ssh-auth")
_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB = "jobset.sigs.k8s.io/job-index"
_READ_ONLY = ("configMap", "secret", "projected", "downwardAPI")  # always, since Kubernetes 1.9.6
_NAMES = {"secretName", "claimName", "name", "path", "medium", "driver"}
# Fields of a pod that a source may set, and that no other fact has.
_PLAIN = (
    "serviceAccountName", "priorityClassName", "schedulerName", "hostNetwork", "hostPID", "hostIPC",
    "shareProcessNamespace", "runtimeClassName", "dnsPolicy", "activeDeadlineSeconds", "securityContext",
    "topologySpreadConstraints", "affinity", "resourceClaims", "imagePullSecrets", "hostAliases",
)  # fmt: skip
# Fields of the container that trains, likewise.
_OF_CONTAINER = (
    "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "volumeDevices", "resizePolicy", "tty",
)  # fmt: skip
# Labels and annotations that controllers write.
_WRITTEN = (
    "jobset.sigs.k8s.io/", "batch.kubernetes.io/", "training.kubeflow.org/", "trainer.kubeflow.org/",
    "kueue.x-k8s.io/", "controller-uid", "job-name",
)  # fmt: skip
# What the server fills in.
_USUAL = ("default", "default-scheduler", "ClusterFirst")


def describe_pod(pod: Object, role: str = "worker") -> dict[str, str]:
    """Return what a pod is and what its main container gets."""
    spec = pod["spec"]
    box = spec["containers"][0]
    found = {
        "image": split_source_image_reference(box["image"])[0],
        "grace": str(spec["terminationGracePeriodSeconds"]),
        "workdir": box.get("workingDir", ""),
        "program": _program_of(box),
    }
    found |= {f"{name} of a {role}": amount for name, amount in _amounts(box).items()}
    found |= _environment(box)
    found |= _mounts(box, spec)
    for one in (*spec.get("initContainers", ()), *spec["containers"][1:]):
        found |= _beside(one)
    return found


def describe_placement(pod: Object) -> dict[str, str]:
    """Return where a pod may run and as whom, by field; what the server fills in is left out."""
    spec = pod["spec"]
    found = {f"nodeSelector {key}": value for key, value in spec.get("nodeSelector", {}).items()}
    for one in spec.get("tolerations", ()):
        if not one.get("key", "").startswith("node.kubernetes.io/"):
            found[f"tolerations {one.get('key', '*')}"] = one.get("effect", "")
    for name in _PLAIN:
        if spec.get(name) not in (None, {}, *_USUAL):
            found[name] = json.dumps(spec[name], sort_keys=True)
    box, meta = spec["containers"][0], pod["metadata"]
    found |= {name: json.dumps(box[name], sort_keys=True) for name in _OF_CONTAINER if box.get(name)}
    for name, value in (box.get("securityContext") or {}).items():
        found[f"securityContext {name}"] = json.dumps(value, sort_keys=True)
    for part in ("labels", "annotations"):
        stated = {key: value for key, value in meta.get(part, {}).items() if not key.startswith(_WRITTEN)}
        found |= {f"{part} {key}": value for key, value in stated.items()}
    return found


def order_of(pod: Object) -> tuple[int, int, str]:
    """Return a pod's place among those of its replicated job; its name where the job does not count them."""
    labels, notes = pod["metadata"].get("labels", {}), pod["metadata"].get("annotations", {})
    index = notes.get(_INDEX)
    job = int(labels.get(_JOB, 0))
    return (job, int(index), "") if index is not None else (job, -1, pod["metadata"]["name"])


def _program_of(box: Object) -> str:
    return format_program_for_import_comparison(_words_of(box), {})


def _words_of(box: Object) -> tuple[str, ...]:
    """Return the command that the user knows, as the kubelet starts it, without the run's own shell."""
    command = list(box.get("command", ()))
    passes_signals = render_script_text("launch/beside.sh.j2", {}).rstrip("\n")
    if command[:2] == ["/bin/sh", "-c"] and "".join(command[2:3]).rstrip("\n") == passes_signals:
        command = command[4:]  # of a step or a sidecar, after its name
    elif is_gangplan_launch_command(command):
        command = []
    return expand_source_variables_like_kubelet([*command, *box.get("args", ())])


def _amounts(box: Object) -> dict[str, str]:
    """Return what a container may use, by resource: its limit, else its request."""
    stated = box.get("resources", {})
    amounts = {**stated.get("requests", {}), **stated.get("limits", {})}
    found = {name: parse_quantity(str(one)).nano / 10**9 for name, one in amounts.items()}
    return {name: f"{amount:.12g}" for name, amount in found.items() if amount}


def _environment(box: Object) -> dict[str, str]:
    found = {}
    for one in box.get("env", ()):
        if not one["name"].startswith(_OF_CONTROLLERS):
            found[one["name"]] = _value_of(one)
    for one in box.get("envFrom", ()):
        kind, name = next((key, one[key]["name"]) for key in ("secretRef", "configMapRef") if key in one)
        found[f"envFrom {name}"] = f"{kind} {one.get('prefix', '')}".strip()
    return found


def _value_of(variable: Object) -> str:
    source = variable.get("valueFrom", {})
    for kind, short in (("secretKeyRef", "secret"), ("configMapKeyRef", "configMap")):
        if one := source.get(kind):
            return f"{short} {one['name']}/{one['key']}"
    if one := source.get("fieldRef"):
        return f"field {one['fieldPath']}"
    if one := source.get("resourceFieldRef"):
        return f"resource {one['resource']}"
    return str(variable.get("value", "")).replace("$$", "$")


def _mounts(box: Object, spec: Object) -> dict[str, str]:
    """Return the volume at each folder."""
    volumes = {one["name"]: one for one in spec.get("volumes", ())}
    found = {}
    for mount in box.get("volumeMounts", ()):
        path = mount["mountPath"].rstrip("/") or "/"
        if mount["name"] in _KEYS:
            found["folder of the SSH keys"] = path
        elif path not in (_OF_SERVER, SCRIPTS_FOLDER) and mount["name"] not in _HOSTS:
            found[path] = " ".join(_words_of_mount(mount, volumes.get(mount["name"], {})))
    return found


def _words_of_mount(mount: Object, volume: Object) -> Iterator[str]:
    kind = next((key for key in volume if key != "name"), "")
    yield kind
    of = volume.get(kind) or {}
    yield from (str(value) for key, value in sorted(of.items()) if key in _NAMES)
    if kind == "projected":
        yield json.dumps(of["sources"], sort_keys=True)
    yield from (f"{one['key']} as {one['path']}" for one in of.get("items", ()) if one["key"] != one["path"])
    if mount.get("subPath"):
        yield f"only {mount['subPath']}"
    if (mount.get("readOnly") or of.get("readOnly")) and kind not in _READ_ONLY:
        yield "read-only"


def _beside(box: Object) -> dict[str, str]:
    """Return the facts of another container, by its name."""
    name = re.sub(r"^gangplan-", "", box["name"])
    found = {f"container {name}": str(box.get("restartPolicy", ""))}
    found[f"container {name} image"] = split_source_image_reference(box["image"])[0]
    found[f"container {name} program"] = " ".join(_words_of(box))
    found |= {f"container {name} {resource}": amount for resource, amount in _amounts(box).items()}
    found |= {f"container {name} {key}": value for key, value in _environment(box).items()}
    return found
