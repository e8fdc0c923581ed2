"""Suggest a pool for workers that are larger than any node of a cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.amounts import convert_imported_memory
from gangplan.imports.draft import SpecDraft
from gangplan.model.quantity import parse_quantity
from gangplan.spec.cluster import Cluster
from gangplan.spec.machines import INSTANCES, find_gpu_model
from gangplan.spec.nodes import NodePool

# What a node has in addition to a worker, for a launcher, sidecars and daemons.
_MORE_CPU, _MORE_MEMORY = 4, 16 << 30
# A label that keeps pods of other pools away, for sources that select nodes by no label.
POOL_LABEL = "node.example.com/pool"
OF_EVERY_NODE = frozenset(
    {"kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"}
)
_USUAL_GPU = "nvidia.com/gpu"  # what a pool's GPUs are called if its file does not say it
_OF_GPU = "gpu"  # the model if the source does not name one


def has_room_for_imported_worker(draft: SpecDraft, pool: NodePool) -> bool:
    """Return whether a node has the cores and memory of a worker, and is spot or not as the source wants it."""
    cpu, memory = draft.values.get("cpu"), draft.values.get("memory")
    if draft.values.get("placement", {}).get("capacity") not in (None, pool.capacity):
        return False
    return (cpu is None or parse_quantity(str(cpu)).nano <= pool.cpu.nano) and (
        memory is None or parse_quantity(str(memory)).value() <= pool.memory.value()
    )


def has_slices_of_imported_worker(draft: SpecDraft, pool: NodePool) -> bool:
    """Return whether a pool offers what the source asks for: whole GPUs, or the same MIG slices."""
    return pool.gpu is not None and pool.gpu.mig == draft.values.get("gpu", {}).get("mig")


def _has_devices_of_imported_worker(draft: SpecDraft, pool: NodePool) -> bool:
    """Return whether a pool may be the one whose devices the source asks for, such as slices of TPUs.

    A pool that states none of them may have them all the same, unless the source selects nodes by other labels.
    """
    wanted = draft.values.get("devices", {})
    if not wanted or wanted.keys() <= set(pool.offered):
        return True
    labels = draft.work.workers.pod.node["nodeSelector"]
    return all(
        pool.labels.get(key) == node.text() for key, node in labels.fields() if key not in OF_EVERY_NODE
    )


def is_pool_for_imported_worker(draft: SpecDraft, pool: NodePool) -> bool:
    """Return whether a node of a pool has the GPUs, the devices and the room of a worker."""
    gpus, model = draft.values.get("gpus", 0), draft.values.get("gpu", {}).get("model")
    if pool.gpu is not None and model not in (None, pool.gpu.model):
        return False
    has_gpus = not gpus or (pool.gpu is not None and pool.gpu.count >= gpus)
    return (
        has_gpus
        and _has_devices_of_imported_worker(draft, pool)
        and has_room_for_imported_worker(draft, pool)
    )


def suggest_pool_for_imported_job(
    draft: SpecDraft, cluster: str, spec: Cluster
) -> tuple[str, NodePool] | None:
    """Suggest a pool if no node of a cluster has room for a worker, and return its name and values.

    Return None if a node has room, the source names a pool of the cluster, or the platform gives the team
    only pools by name (`quota`).
    """
    gpus = draft.values.get("gpus", 0)
    chosen = draft.values.get("gpu", {})
    is_named = "nodePool" in draft.values.get("placement", {}) or "mig" in chosen
    if is_named or spec.teams[draft.home.team].quota:
        return None
    if any(is_pool_for_imported_worker(draft, pool) for pool in spec.node_pools.values()):
        return None
    cpu = -(-parse_quantity(str(draft.values.get("cpu", 1))).milli() // 1000) + _MORE_CPU
    memory = parse_quantity(str(draft.values.get("memory", "1Gi"))).value() + _MORE_MEMORY
    memory = -(-memory >> 30) << 30
    model = chosen.get("model") or _find_gpu_model_in_source(draft)
    value: dict[str, Any] = {
        "count": draft.values.get("workers") or draft.values.get("elastic", {}).get("max", 1),
        "cpu": cpu,
        "memory": convert_imported_memory(str(memory)),
    }
    if capacity := draft.values.get("placement", {}).get("capacity"):
        value["capacity"] = capacity
    if gpus:
        value["gpu"] = {"model": model, "count": gpus}
        if draft.gpu_resource not in ("", _USUAL_GPU):
            value["gpu"]["resource"] = draft.gpu_resource
    name = f"migrated-{f'{gpus}-{model}-' if gpus else ''}{cpu}cpu-{memory >> 30}gi"[:40].rstrip("-")
    file, node = (
        f"overlays/{cluster}/cluster.yaml",
        next((draft.origins[key] for key in ("cpu", "gpus", "devices") if key in draft.origins), None),
    )
    value["labels"] = _read_source_node_selector_labels(draft) | {
        _choose_pool_label_for_imported_job(draft, spec, file, node): name
    }
    draft.suggest(file, ("nodePools", name), value, "no node of the cluster has room for a worker", node)
    draft.wonder(
        node or draft.work.account.root(),
        f"no node of cluster {cluster} has room for a worker; pool {name} keeps the place of nodes that have it",
        f"Correct nodePools.{name} in {file}, or leave it out and request less.",
    )
    return name, NodePool.model_validate(value)


def _read_source_node_selector_labels(draft: SpecDraft) -> dict[str, str]:
    """Return the labels by which the source selects nodes."""
    found = {}
    for key, node in draft.work.workers.pod.node["nodeSelector"].fields():
        if key not in OF_EVERY_NODE:
            found[key] = node.text()
            node.mapped("nodePools.labels")
    return found


def _choose_pool_label_for_imported_job(
    draft: SpecDraft, spec: Cluster, file: str, node: SourceNode | None
) -> str:
    """Return the key of a label that every pool has with its own value; suggest it to pools without it.

    Kueue compares a pod's selector with a flavor by the keys that the flavor has (v0.15 to v0.19,
    flavorassigner.go, flavorSelector), so a pool without the key would take the pod by its quota, and has no
    room for it.
    """
    counts = Counter(key for pool in spec.node_pools.values() for key in pool.labels)
    key = counts.most_common(1)[0][0] if counts else POOL_LABEL
    for name, pool in spec.node_pools.items():
        if key not in pool.labels:
            path = ("nodePools", name, "labels")
            at, value = ((*path, key), name) if pool.labels else (path, {key: name})
            draft.suggest(
                file, at, value, "a label that tells the pools apart; its nodes have to have it", node
            )
    return key


def _find_gpu_model_in_source(draft: SpecDraft) -> str:
    """Return the GPU model that the source names, or that of its machines or its node selectors; else a placeholder."""
    for hint in draft.work.hints:
        machine = INSTANCES.get(hint.text.lower()) if hint.kind == "machine" else None
        named = machine.model if machine else find_gpu_model(hint.text) if hint.kind == "model" else ""
        if named:
            return named
    for entry in draft.work.account.entries():
        is_label = {"nodeSelector", "affinity"} & {str(part) for part in entry.path}
        if is_label and isinstance(entry.value, str) and (found := find_gpu_model(entry.value)):
            return found
    return _OF_GPU
