"""Map resources of a source's pods to fields of the spec."""

from __future__ import annotations

from gangplan.imports.account import SourceNode
from gangplan.imports.amounts import MIG_PREFIX, convert_imported_cores, convert_imported_memory, is_fabric
from gangplan.imports.claims import map_imported_device_claims
from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourceContainer, read_amounts
from gangplan.imports.workload import PodRole
from gangplan.model.amounts import GPU_RESOURCES
from gangplan.model.quantity import parse_quantity
from gangplan.spec.machines import GPU_MODELS
from gangplan.spec.nodes import PoolGpu

_MOST_GPUS = 16
_OF_POD = {"cpu": convert_imported_cores, "memory": convert_imported_memory}
_PAGES = "hugepages-"
_NVIDIA = "nvidia.com/"
_VENDORS = ("amd.com/", "gpu.intel.com/", "habana.ai/")


def map_imported_resources(draft: SpecDraft, role: PodRole) -> None:
    """Map CPU, memory, GPUs and devices of a role; a launcher has a block with CPU and memory only."""
    container = role.pod.main
    is_launcher = role is draft.work.launcher and not draft.work.runs_on_launcher
    for name, amount in container.resources.items():
        nodes = _list_amount_places(container, name)
        if name == "cpu":
            _map_resource_amount(
                draft, "launcher.cpu" if is_launcher else "cpu", convert_imported_cores(amount), nodes
            )
        elif name == "memory":
            _map_resource_amount(
                draft, "launcher.memory" if is_launcher else "memory", convert_imported_memory(amount), nodes
            )
        elif is_launcher:
            if amount.strip() in ("0", ""):
                _mark_source_nodes(nodes, "same", "a launcher has none")
            else:
                _mark_source_nodes(
                    nodes,
                    "asked",
                    "the launcher of a run has CPU and memory alone; launcher.runsRanks makes it a worker",
                )
        else:
            _map_device_request(draft, name, amount, nodes)
    for part in (role.pod.node, *role.pod.more):
        _map_resources_of_pod(draft, role, part["resources"], "launcher." if is_launcher else "")
    map_imported_device_claims(draft, role, is_launcher)
    if not container.resources and not container.resources_node["claims"]:
        container.resources_node.same("nothing is asked for")


def _map_resources_of_pod(draft: SpecDraft, role: PodRole, node: SourceNode, prefix: str) -> None:
    """Map resources of a pod as a whole (Kubernetes 1.34), which its only container has if it states none."""
    for name, amount in read_amounts(node).items():
        places = [one for one in (node["limits"][name], node["requests"][name]) if one]
        value = _OF_POD[name](amount) if name in _OF_POD else None
        own = role.pod.main.resources.get(name)
        if value is not None and own is None and not role.pod.sidecars:
            _map_resource_amount(draft, f"{prefix}{name}", value, places)
            continue
        message = f"the pod has {amount} in all, and a run has what each of its containers states"
        draft.ask(places[0], message, f"Write {prefix}{name} of the program.")
        draft.miss("resources", f"{name} of the pod", amount, own, message)


def _list_amount_places(container: SourceContainer, name: str) -> list[SourceNode]:
    """Return the places of an amount: the limit, which decides, then the request."""
    both = (container.resources_node[kind][name] for kind in ("limits", "requests"))
    return [node for node in both if node]


def _mark_source_nodes(nodes: list[SourceNode], how: str, why: str) -> None:
    for node in nodes:
        getattr(node, how)(why)


def _map_resource_amount(
    draft: SpecDraft, path: str, value: int | float | str | None, nodes: list[SourceNode]
) -> None:
    """Map an amount; if request and limit differ, the limit counts, as a program may use that much."""
    if value is None:
        for node in nodes:
            draft.ask(
                node, f"'{node.text()}' is not an amount that a spec can state", f"Write {path}: yourself."
            )
        return
    first, *others = nodes
    if draft.put(path, value, first):
        for node in others:
            if node.text() == first.text():
                node.mapped(path)
            else:
                node.dropped(f"a run's requests are its limits: {path} is {value}")
    elif parse_quantity(str(value)).nano > parse_quantity(str(_read_given(draft, path))).nano:
        _wonder_about_other_amount(draft, path, value, first)


def _read_given(draft: SpecDraft, path: str) -> object:
    """Return the value that a field of the spec has already."""
    block, _, name = path.rpartition(".")
    return (draft.values[block] if block else draft.values)[name]


def _wonder_about_other_amount(draft: SpecDraft, path: str, value: object, node: SourceNode) -> None:
    given = _read_given(draft, path)
    message = f"{path}: these pods have {value}, others {given}; the run gives all of them {given}"
    draft.wonder(node, message, f"Write {path}: {value} if every worker may have just as much.")


def _map_device_request(draft: SpecDraft, name: str, amount: str, nodes: list[SourceNode]) -> None:
    count = int(amount) if amount.isdigit() else None
    if count == 0:
        _mark_source_nodes(nodes, "same", "nothing is asked for")
        return
    if _is_source_resource_gpu(draft, name):
        if count is None or count > _MOST_GPUS:
            for node in nodes:
                draft.ask(node, f"a worker has up to {_MOST_GPUS} GPUs", "Write workers: and gpus:.")
            return
        draft.gpu_resource = name
        is_same = [draft.put("gpus", count, node) for node in nodes]
        if not all(is_same):
            _wonder_about_other_amount(draft, "gpus", count, nodes[0])
        if name.startswith(MIG_PREFIX):
            draft.put("gpu.mig", name.removeprefix(MIG_PREFIX))
        else:
            _choose_gpu_model(draft, name, nodes)
        return
    if is_fabric(name):
        draft.add_rdma(name, count, nodes)
    elif name == "ephemeral-storage":
        _map_resource_amount(draft, "disk", convert_imported_memory(amount), nodes)
    elif name.startswith(_PAGES):
        value = convert_imported_memory(amount)
        for node in nodes if value else ():
            draft.put(f"hugePages/{name.removeprefix(_PAGES)}", value, node)
    elif count is not None and "/" in name:
        for node in nodes:
            draft.put(f"devices/{name}", count, node)
    else:
        _mark_source_nodes(nodes, "asked", f"no field of a spec asks for {name}")


def _is_source_resource_gpu(draft: SpecDraft, name: str) -> bool:
    """Return whether a resource is GPUs: of a vendor of GPUs, unless pools state it as a device, or of a pool."""
    offered = {gpu.resource for gpu in _list_offered_gpus(draft)}
    is_vendors = name.startswith(_VENDORS) and name in GPU_RESOURCES and not _is_device_of_pool(draft, name)
    is_nvidias = name.startswith(_NVIDIA) and (
        name in GPU_RESOURCES or _parse_gpu_model_from_name(name) != ""
    )
    return name.startswith(MIG_PREFIX) or name in offered or is_nvidias or is_vendors


def _is_device_of_pool(draft: SpecDraft, name: str) -> bool:
    pools = [pool for one in draft.home.clusters.values() for pool in one.node_pools.values()]
    return any(name in pool.devices for pool in pools)


def _parse_gpu_model_from_name(name: str) -> str:
    """Return the model in the name of an NVIDIA resource, if its plugin uses such names: nvidia.com/h200."""
    return GPU_MODELS.get(name.removeprefix(_NVIDIA).lower(), "") if name.startswith(_NVIDIA) else ""


def _choose_gpu_model(draft: SpecDraft, name: str, nodes: list[SourceNode]) -> None:
    """Name a GPU model where the resource does: by its own name, or because pools have GPUs of several vendors."""
    models = sorted({(_get_vendor(one.resource), one.model or "") for one in _list_offered_gpus(draft)})
    model = _parse_gpu_model_from_name(name)
    if any(model == one for _, one in models if one):
        draft.put("gpu.model", model)
        return
    vendor = _get_vendor(name)
    own = [one for other, one in models if other == vendor]
    others = sorted({other for other, _ in models} - {vendor})
    if not others or not nodes:
        return  # there are no GPUs of another vendor that the run might get
    if len(own) == 1 and own[0]:
        draft.put("gpu.model", own[0])
        return
    message = f"without a model, the run may get GPUs of {' or '.join(others)}"
    named = ", ".join(one for one in own if one)
    help = (
        f"Write gpu.model: {named}."
        if named
        else f"Give a pool of cluster.yaml gpu: {{model: MODEL, count: 8, resource: {name}}}, and the spec its gpu.model."
    )
    draft.wonder(nodes[0], message, help)
    draft.miss("devices", "vendor of the GPUs", vendor, None, message)


def _get_vendor(resource: str) -> str:
    """Return the domain in the name of a resource: amd.com of amd.com/gpu."""
    return resource.partition("/")[0]


def _list_offered_gpus(draft: SpecDraft) -> list[PoolGpu]:
    """Return the GPUs of all pools of the team's clusters."""
    pools = [pool for one in draft.home.clusters.values() for pool in one.node_pools.values()]
    return [pool.gpu for pool in pools if pool.gpu]
