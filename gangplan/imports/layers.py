"""Apply a TrainJob's changes to a pod of its runtime: its `trainer`, and patches of the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gangplan.imports.account import SourceNode
from gangplan.imports.pods import (
    SourcePod,
    SourceVariable,
    is_gangplan_launch_command,
    read_amounts,
    read_imported_container_variable,
    read_imported_pod_volume,
    read_imported_volume_mount,
)

REPLACED_REASON = "the TrainJob has another one"
_KUEUE = "kueue.x-k8s.io/manager"


class LayeredNode(SourceNode):
    """A node some of whose fields are elsewhere: a container of a runtime, as a TrainJob changes it."""

    __slots__ = ("_over",)

    def __init__(self, below: SourceNode, over: Mapping[str, SourceNode]) -> None:
        super().__init__(below.account, below.path, below.value)
        self._over = over

    def __getitem__(self, key: str | int) -> SourceNode:
        """Return the field of the upper layer if it has one."""
        return self._over.get(str(key)) or super().__getitem__(key)


def apply_trainer_to_imported_pod(
    pod: SourcePod, trainer: SourceNode, starts: bool, works: bool
) -> SourcePod:
    """Return a pod of the runtime with the values of `trainer`.

    Image, command and variables apply where the program starts, resources where the ranks run (Trainer
    v2.3.0, plugins/jobset/builder.go).
    """
    main, over = pod.main, {}
    for name in ("image", "command", "args") if starts else ():
        if trainer[name]:
            over[name] = trainer[name]
            main.node[name].dropped(REPLACED_REASON)
    command = over.get("command", main.node["command"]).texts()
    args = over.get("args", main.node["args"]).texts()
    words = args if is_gangplan_launch_command(command) else (*command, *args)
    env = {one.name: one for one in main.env}
    for node in trainer["env"].items() if starts else ():
        if (old := env.get(node["name"].text())) is not None:
            old.node.dropped(REPLACED_REASON)
        env[node["name"].text()] = read_imported_container_variable(node)
    resources = trainer["resourcesPerNode"] if works and trainer["resourcesPerNode"] else main.resources_node
    if resources is not main.resources_node:
        main.resources_node.dropped(REPLACED_REASON)
    main = replace(
        main,
        image=over["image"].text() if "image" in over else main.image,
        words=words,
        has_entrypoint=not command,
        env=tuple(env.values()),
        resources=read_amounts(resources),
        resources_node=resources,
        node=LayeredNode(main.node, over),
    )
    return replace(pod, main=main)


def apply_runtime_patches_to_imported_pod(pod: SourcePod, spec: SourceNode, name: str) -> SourcePod:
    """Return the pod with the TrainJob's patches for a job.

    They are `podTemplateOverrides` up to v2.1, `runtimePatches` since.
    """
    for patch in spec["podTemplateOverrides"].items():
        targets = [one["name"] for one in patch["targetJobs"].items()]
        if name in [one.text() for one in targets]:
            patch["targetJobs"].dropped("it is for the pods of the run")
            pod = _apply_template_patch_to_source_pod(pod, patch)
    for patch in spec["runtimePatches"].items():
        patch["time"].dropped("the server sets it")
        if patch["manager"].text() == _KUEUE:
            patch.dropped("Kueue places the pods of a run")
            continue
        patch["manager"].dropped("a run has its patches from overlays/")
        template = patch.at("trainingRuntimeSpec", "template")
        for one in template.at("spec", "replicatedJobs").items():
            one["name"].dropped("it is for the pods of the run")
            if one["name"].text() == name:
                pod = _apply_template_patch_to_source_pod(pod, one.at("template", "spec", "template"))
    return pod


def _apply_template_patch_to_source_pod(pod: SourcePod, template: SourceNode) -> SourcePod:
    """Return a pod with one patch of its template applied."""
    spec = template["spec"]
    for _, node in template["metadata"]["labels"].fields():
        node.dropped("labels of pods belong to the controllers; labels: in the spec adds more")
    volumes = {
        one.name: one for one in (*pod.volumes, *map(read_imported_pod_volume, spec["volumes"].items()))
    }
    spec["schedulingGates"].dropped("Kueue admits a run as a whole")
    main = pod.main
    for one in spec["containers"].items():
        if one["name"].text() not in (main.name, "trainer"):
            continue
        one["name"].dropped("the container of a run is called node")
        env: dict[str, SourceVariable] = {
            each.name: each
            for each in (*main.env, *map(read_imported_container_variable, one["env"].items()))
        }
        mounts = {each.path: each for each in main.mounts}
        mounts |= {
            each["mountPath"].text(): read_imported_volume_mount(each, volumes)
            for each in one["volumeMounts"].items()
        }
        main = replace(main, env=tuple(env.values()), mounts=tuple(mounts.values()))
    return replace(pod, main=main, volumes=tuple(volumes.values()), more=(*pod.more, spec))
