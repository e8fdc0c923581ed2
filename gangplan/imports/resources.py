"""Map resources of a source's pods to fields of the spec."""

from __future__ import annotations

from gangplan.imports.account import Node
from gangplan.imports.amounts import MIG, cpu_value, is_fabric, memory_value
from gangplan.imports.draft import Draft
from gangplan.imports.pods import ContainerOf
from gangplan.imports.workload import Role
from gangplan.model.amounts import GPUS
from gangplan.spec.machines import GPU_MODELS

_MOST_GPUS = 16
_PAGES = "hugepages-"
_NVIDIA = "nvidia.com/"


def map_resources(draft: Draft, role: Role) -> None:
    """Map CPU, memory, GPUs and devices of a role; a launcher has a block with CPU and memory only."""
    container = role.pod.main
    is_launcher = role is draft.work.launcher and not draft.work.runs_on_launcher
    for name, amount in container.resources.items():
        nodes = _nodes(container, name)
        if name == "cpu":
            _amount(draft, "launcher.cpu" if is_launcher else "cpu", cpu_value(amount), nodes)
        elif name == "memory":
            _amount(draft, "launcher.memory" if is_launcher else "memory", memory_value(amount), nodes)
        elif is_launcher:
            if amount.strip() in ("0", ""):
                _each(nodes, "same", "a launcher has none")
            else:
                _each(
                    nodes,
                    "asked",
                    "the launcher of a run has CPU and memory alone; launcher.runsRanks makes it a worker",
                )
        else:
            _device(draft, name, amount, nodes)
    container.resources_node["claims"].asked("runs have no resource claims (dynamic resource allocation)")
    container.resources_node.same("nothing is asked for")


def _nodes(container: ContainerOf, name: str) -> list[Node]:
    """Return the places of an amount: the limit, which decides, then the request."""
    both = (container.resources_node[kind][name] for kind in ("limits", "requests"))
    return [node for node in both if node]


def _each(nodes: list[Node], how: str, why: str) -> None:
    for node in nodes:
        getattr(node, how)(why)


def _amount(draft: Draft, path: str, value: int | float | str | None, nodes: list[Node]) -> None:
    """Map an amount; if request and limit differ, the limit counts, as a program may use that much."""
    if value is None:
        for node in nodes:
            draft.ask(node, f"'{node.text()}' is no amount that a spec can state", f"Write {path}: yourself.")
        return
    first, *others = nodes
    if draft.put(path, value, first):
        for node in others:
            if node.text() == first.text():
                node.mapped(path)
            else:
                node.dropped(f"a run's requests are its limits: {path} is {value}")


def _device(draft: Draft, name: str, amount: str, nodes: list[Node]) -> None:
    count = int(amount) if amount.isdigit() else None
    if count == 0:
        _each(nodes, "same", "nothing is asked for")
        return
    if _is_gpu(draft, name):
        if count is None or count > _MOST_GPUS:
            _each(nodes, "asked", f"a worker has up to {_MOST_GPUS} GPUs")
            return
        for node in nodes:
            draft.put("gpus", count, node)
        if name.startswith(MIG):
            draft.put("gpu.mig", name.removeprefix(MIG))
        elif model := _model_of(draft, name):
            draft.put("gpu.model", model)
        return
    if is_fabric(name):
        known, places = draft.rdma.get(name, (count, []))
        draft.rdma[name] = (known, [*places, *nodes])
    elif name == "ephemeral-storage":
        _amount(draft, "disk", memory_value(amount), nodes)
    elif name.startswith(_PAGES):
        value = memory_value(amount)
        for node in nodes if value else ():
            draft.put(f"hugePages/{name.removeprefix(_PAGES)}", value, node)
    elif count is not None and "/" in name:
        for node in nodes:
            draft.put(f"devices/{name}", count, node)
    else:
        _each(nodes, "asked", f"no field of a spec asks for {name}")


def _is_gpu(draft: Draft, name: str) -> bool:
    """Return whether a resource is GPUs: one of NVIDIA, or one that a pool of the clusters uses."""
    pools = [pool for one in draft.home.clusters.values() for pool in one.node_pools.values()]
    offered = {pool.gpu.resource for pool in pools if pool.gpu}
    is_nvidias = name.startswith(_NVIDIA) and (name in GPUS or _model_in(name) != "")
    return name.startswith(MIG) or name in offered or is_nvidias


def _model_in(name: str) -> str:
    """Return the model in the name of an NVIDIA resource, if its plugin uses such names: nvidia.com/h200."""
    return GPU_MODELS.get(name.removeprefix(_NVIDIA).lower(), "") if name.startswith(_NVIDIA) else ""


def _model_of(draft: Draft, name: str) -> str:
    """Return that model if a pool has it."""
    model = _model_in(name)
    pools = [pool for one in draft.home.clusters.values() for pool in one.node_pools.values()]
    return model if any(pool.gpu and pool.gpu.model == model for pool in pools) else ""
