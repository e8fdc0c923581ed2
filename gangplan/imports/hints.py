"""Match a source's own names of machines and queues with the pools of the team's clusters."""

from __future__ import annotations

from gangplan.imports.draft import ImportTarget, SpecDraft
from gangplan.imports.pools import has_slices_of_imported_worker, is_pool_for_imported_worker
from gangplan.imports.workload import Hint, SourceJob
from gangplan.model.amounts import format_for_spec
from gangplan.model.frameworks import MPI_FRAMEWORKS
from gangplan.model.quantity import Quantity
from gangplan.resolve.shares import compute_fraction_of_pool_amount, compute_free_per_node
from gangplan.spec.machines import INSTANCES, find_gpu_model
from gangplan.spec.nodes import NodePool

_QUEUE = "the team's queue and quota take the place of partitions, accounts and compute targets"
_LONGEST_GRACE_S, _SHORTEST_GRACE_S = 3600, 30


def settle_rank_start_by_image(work: SourceJob, home: ImportTarget) -> None:
    """Settle how ranks start if the source leaves it open: as the image that the user names starts them."""
    catalog = home.workspace.catalog
    entry = catalog.images.get(home.answers.image) if catalog else None
    if entry is not None and entry.mpi is not None and not work.mpi:
        work.mpi = entry.mpi.implementation
    if work.again is not None and entry is not None:
        work.framework = entry.framework
        work.again(
            "mpi" if entry.framework in MPI_FRAMEWORKS else "torch" if entry.framework == "torch" else "plain"
        )


def map_hints_about_machines(draft: SpecDraft) -> None:
    """Map GPU models, machine types and capacities, which decide together with a worker's size which pools fit."""
    for kinds in (("model", "machine"), ("capacity",)):
        for hint in draft.work.hints:
            if hint.kind in kinds:
                _HANDLERS[hint.kind](draft, hint)


def map_import_hints(draft: SpecDraft) -> None:
    """Map pools, grace periods and what is the whole of a node; then claims."""
    for hint in draft.work.hints:
        if hint.kind in ("pool", "grace", "node"):
            _HANDLERS[hint.kind](draft, hint)
    for name, (entry, node) in draft.work.new_claims.items():
        if name not in draft.home.of_team.claims:
            draft.suggest(
                draft.team_file, ("claims", name), entry, f"the run writes to the claim {name}", node
            )


def _list_pool_gpu_models(draft: SpecDraft) -> dict[str, str]:
    """Return the pools of the team's clusters, and the GPU model of each; none for MIG slices of another size."""
    return {
        name: (pool.gpu.model or "") if has_slices_of_imported_worker(draft, pool) and pool.gpu else ""
        for one in draft.home.clusters.values()
        for name, pool in one.node_pools.items()
    }


def _map_scheduler_partition_to_pool(draft: SpecDraft, hint: Hint) -> None:
    """Map a scheduler's partition to the pool of the same name, if there is one."""
    if hint.text in _list_pool_gpu_models(draft):
        draft.put("placement.nodePool", hint.text, hint.node)
    else:
        hint.node.dropped(_QUEUE)


def _map_gpu_model_hint(draft: SpecDraft, hint: Hint) -> None:
    """Map a GPU model, under any of its names."""
    if not draft.values.get("gpus"):
        hint.node.dropped("the run has no GPUs")
        return
    offered = set(_list_pool_gpu_models(draft).values())
    found = find_offered_gpu_model(hint.text, offered)
    if found:
        draft.put("gpu.model", found, hint.node)
    else:
        message = (
            f"no pool of the team's clusters has {hint.text}; without a model, any pool with GPUs will do"
        )
        draft.ask(hint.node, message, _suggest_gpu_model(offered))
        draft.miss("devices", "GPU model", hint.text, None, "no pool has it")


def _suggest_gpu_model(offered: set[str]) -> str:
    """Return a help with the GPU models of the team's clusters."""
    known = ", ".join(sorted(one for one in offered if one))
    return f"Write gpu.model; their pools have {known}." if known else "Choose a cluster with GPUs."


def find_offered_gpu_model(text: str, offered: set[str]) -> str:
    """Return the model that a cluster offers under that name or a synonym; empty without one."""
    if text.lower() in offered:
        return text.lower()
    meant = find_gpu_model(text)
    if meant in offered:
        return meant
    near = sorted(one for one in offered if one and one.partition("-")[0] == meant.partition("-")[0])
    return near[0] if meant and len(near) == 1 else ""


def _map_machine_type_hint(draft: SpecDraft, hint: Hint) -> None:
    """Map a machine type of a cloud: the model of its GPUs chooses the pool, which has its own size."""
    machine = INSTANCES.get(hint.text.lower())
    if machine is None:
        message = f"gangplan does not know the machine type {hint.text}, so the spec asks for no GPUs of it"
        draft.ask(hint.node, message, "Write gpus, cpu and memory of one machine into the spec.")
        draft.miss("resources", "machine type", hint.text, None, "gangplan does not know it")
        return
    if not machine.gpus:
        hint.node.mapped("workers")
        return
    offered = set(_list_pool_gpu_models(draft).values())
    found = find_offered_gpu_model(machine.model, offered)
    if found:
        draft.put("gpu.model", found, hint.node)
        if found != machine.model:
            message = f"{hint.text} has {machine.model}; the closest that a pool has is {found}"
            draft.wonder(hint.node, message, "Check that the program fits its memory.")
            draft.miss("devices", "GPU model", machine.model, found, "it is the closest that a pool has")
    else:
        hint.node.mapped("gpus")
        draft.wonder(
            hint.node,
            f"no pool of the team's clusters has {machine.model}, which {hint.text} has",
            _suggest_gpu_model(offered),
        )
        draft.miss("devices", "GPU model", machine.model, None, "no pool has it")


def _map_grace_period_hint(draft: SpecDraft, hint: Hint) -> None:
    seconds = int(hint.text)
    if _SHORTEST_GRACE_S <= seconds <= _LONGEST_GRACE_S:
        draft.put("gracePeriod", f"{seconds}s" if seconds % 60 else f"{seconds // 60}m", hint.node)
    else:
        hint.node.dropped("the grace period of a run is from 30s to 1h; omitted it is 2m")


def _map_capacity_hint(draft: SpecDraft, hint: Hint) -> None:
    """Map a capacity such as spot if each cluster has a pool of it for workers; else ask."""
    clusters = draft.home.clusters.values()
    has_pools = all(
        any(
            pool.capacity == hint.text and is_pool_for_imported_worker(draft, pool)
            for pool in one.node_pools.values()
        )
        for one in clusters
    )
    if clusters and has_pools:
        draft.put("placement.capacity", hint.text, hint.node)
        return
    message = f"the source runs on {hint.text} nodes, and no pool of the team's clusters has such nodes for its workers"
    draft.ask(hint.node, message, f"Add such a pool, and write placement: {{capacity: {hint.text}}}.")


def _map_whole_node_hint(draft: SpecDraft, hint: Hint) -> None:
    """Map all cores or all memory of a node: as the nodes of the pools have, where these are alike."""
    name, gpus = hint.text, draft.values.get("gpus", 0)
    what = "cores" if name == "cpu" else "memory"
    whole, shares = dict[str, Quantity](), dict[str, Quantity]()
    for pool_name, pool in _find_pools_for_worker_alone(draft).items():
        amount = whole[pool_name] = compute_free_per_node(pool)[name == "memory"]
        count = pool.gpu.count if gpus and pool.gpu else 0
        shares[pool_name] = compute_fraction_of_pool_amount(amount, gpus, count, name) if count else amount
    if not whole:
        message = f"the job has all {what} of its nodes, and no pool has nodes for its workers"
        draft.ask(hint.node, message, f"Write {name}:, what each worker needs.")
        draft.miss("resources", name, "that of a node", None, message)
        return
    least = min(shares, key=lambda one: shares[one].nano)
    value = format_for_spec(name, shares[least])
    draft.put(name, int(value) if value.isdigit() else value, hint.node)
    amounts = {one: format_for_spec(name, amount) for one, amount in whole.items()}
    if set(amounts.values()) == {value}:
        return
    shown = ", ".join(f"{amount} in {one}" for one, amount in amounts.items())
    message = f"the job has all {what} of its nodes ({shown}), and a worker {value}"
    message += ", the share of its GPUs" if gpus else ""
    draft.wonder(hint.node, message, f"Write what each worker needs, {name}: {amounts[least]} for all of it.")
    draft.miss("resources", name, shown, value, "the job has all of its nodes")


def _find_pools_for_worker_alone(draft: SpecDraft) -> dict[str, NodePool]:
    """Return the pools whose nodes a worker may have for itself: without GPUs unless it needs some."""
    named, gpus = draft.values.get("placement", {}).get("nodePool"), draft.values.get("gpus", 0)
    found = {
        name: pool
        for one in draft.home.clusters.values()
        for name, pool in one.node_pools.items()
        if named in (None, name)
        and is_pool_for_imported_worker(draft, pool)
        and (not gpus or has_slices_of_imported_worker(draft, pool))
    }
    plain = {name: pool for name, pool in found.items() if pool.gpu is None}
    return found if gpus or not plain else plain


_HANDLERS = {
    "capacity": _map_capacity_hint,
    "pool": _map_scheduler_partition_to_pool,
    "model": _map_gpu_model_hint,
    "machine": _map_machine_type_hint,
    "grace": _map_grace_period_hint,
    "node": _map_whole_node_hint,
}
