"""Map node selectors, tolerations and affinities to the pools of the team's clusters."""

from __future__ import annotations

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourcePod
from gangplan.imports.pools import has_slices_of_imported_worker
from gangplan.imports.workload import PodRole
from gangplan.spec.machines import INSTANCES, find_gpu_model
from gangplan.spec.nodes import NodePool

# Labels for the type of a machine or its GPU: of Kubernetes, GKE, NVIDIA's GPU feature discovery, EKS
# Karpenter.
_MACHINE = (
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-type",
)
_MODEL = (
    "cloud.google.com/gke-accelerator",
    "nvidia.com/gpu.product",
    "karpenter.k8s.aws/instance-gpu-name",
    "accelerator",
)
_CAPACITY = {
    ("karpenter.sh/capacity-type", "spot"): "spot",
    ("karpenter.sh/capacity-type", "on-demand"): "on-demand",
    ("cloud.google.com/gke-spot", "true"): "spot",
    ("cloud.google.com/gke-preemptible", "true"): "spot",
    ("eks.amazonaws.com/capacityType", "SPOT"): "spot",
    ("eks.amazonaws.com/capacityType", "ON_DEMAND"): "on-demand",
    ("kubernetes.azure.com/scalesetpriority", "spot"): "spot",
}
_OS = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}


def map_imported_placement(draft: SpecDraft, pod: SourcePod) -> None:
    """Choose the pool of the run, from the source's constraints on nodes."""
    left = {}
    for part in (pod.node, *pod.more):
        for key, node in part["nodeSelector"].fields():
            value = node.text()
            if _OS.get(key) == value:
                node.same("runs go to Linux nodes")
            elif (key, value) in _CAPACITY:
                draft.put("placement.capacity", _CAPACITY[key, value], node)
            else:
                left[key] = node
        _account_for_tolerations(draft, part["tolerations"])
        _map_pod_anti_affinity_to_spread(draft, part["affinity"]["podAntiAffinity"])
        part["affinity"]["podAntiAffinity"].asked("placement.spread: spread puts workers on many nodes")
        part["affinity"]["podAffinity"].asked("placement.topology keeps workers close together")
        part["affinity"].asked("pools and placement decide which nodes a run may use")
        part["topologySpreadConstraints"].asked("placement.spread decides how workers spread over nodes")
    if left:
        _choose_pool_by_node_labels(draft, left)


def _map_pod_anti_affinity_to_spread(draft: SpecDraft, node: SourceNode) -> None:
    """Map pods that avoid each other's nodes to `placement.spread`."""
    terms = [
        *node["requiredDuringSchedulingIgnoredDuringExecution"].items(),
        *(one["podAffinityTerm"] for one in node["preferredDuringSchedulingIgnoredDuringExecution"].items()),
    ]
    if terms and all(one["topologyKey"].text() == "kubernetes.io/hostname" for one in terms):
        draft.put("placement.spread", "spread", node)


def _choose_pool_by_node_labels(draft: SpecDraft, left: dict[str, SourceNode]) -> None:
    """Choose the pool that has these labels; else the model of its GPUs."""
    pools = {name: pool for one in draft.home.clusters.values() for name, pool in one.node_pools.items()}
    wanted = {key: node.text() for key, node in left.items()}
    fitting = [name for name, pool in pools.items() if _matches_pool_labels(pool, wanted)]
    if len(fitting) == 1:
        for node in left.values():
            draft.put("placement.nodePool", fitting[0], node)
        return
    for key, node in left.items():
        model = _find_gpu_model_in_label(key, node.text())
        offers = [
            pool.gpu.model
            for pool in pools.values()
            if pool.gpu and has_slices_of_imported_worker(draft, pool)
        ]
        if model and model in offers:
            draft.put("gpu.model", model, node)
        else:
            node.asked(f"no pool of the team's clusters is labelled {key}: {node.text()}")


def _matches_pool_labels(pool: NodePool, wanted: dict[str, str]) -> bool:
    return all(pool.labels.get(key) == value for key, value in wanted.items())


def _find_gpu_model_in_label(key: str, value: str) -> str:
    if key in _MACHINE:
        machine = INSTANCES.get(value.lower())
        return machine.model if machine else ""
    if key in _MODEL:
        return find_gpu_model(value)
    return ""


def _account_for_tolerations(draft: SpecDraft, tolerations: SourceNode) -> None:
    """Account for tolerations: pods of a run tolerate the taints of their pool, and no others."""
    taints = {
        taint.key
        for one in draft.home.clusters.values()
        for pool in one.node_pools.values()
        for taint in pool.taints
    }
    for node in tolerations.items():
        key = node["key"].text()
        if key in taints:
            node.same("a run tolerates the taints of its pool")
        else:
            node.dropped("a run tolerates the taints that its pool states, and no others")


def account_for_imported_placement(draft: SpecDraft, role: PodRole) -> None:
    """Account for the placement of other pods: launchers go anywhere, all others with the workers."""
    node, workers = role.pod.node, draft.work.workers.pod.node
    if role is draft.work.launcher:
        for name in ("nodeSelector", "affinity", "tolerations"):
            node[name].dropped("launchers go where there is room")
        return
    node["tolerations"].dropped("a run tolerates the taints that its pool states, and no others")
    for name in ("nodeSelector", "affinity"):
        if node[name].value == workers[name].value:
            node[name].mapped("placement")
        elif node[name]:
            draft.ask(
                node[name],
                f"the {role.name} asks for other nodes than the workers; all workers of a run go to one pool",
                "Check that the pool of the run is right for all of them.",
            )
