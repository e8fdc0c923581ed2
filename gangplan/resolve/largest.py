"""The largest worker that fits on a node: what to write if the requested one is too large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gangplan.model.amounts import format_for_spec
from gangplan.model.quantity import Quantity
from gangplan.resolve.misfit import WorkerShape, compute_worker_room_on_pool, explain_worker_misfit_on_pool
from gangplan.spec.nodes import NodePool


def suggest_worker_that_fits_pool(
    pools: Mapping[str, NodePool], shape: WorkerShape, workers: int, otherwise: str
) -> str:
    """Return a help with the largest amounts that fit on the pool where the fewest have to change.

    `workers` are those of the run: with fewer GPUs each, more workers may have the same GPUs in total.
    """
    found = [
        (len(changes), -rank, changes)
        for rank, pool in enumerate(pools.values())
        if (changes := _compute_amounts_that_fit_pool(pool, shape))
    ]
    if not found:
        return otherwise
    changes = min(found, key=lambda one: (one[0], -one[1]))[2]
    texts = [f"{field}: {format_for_spec(field, amount)}" for field, amount in changes.items()]
    same = ""
    if list(changes) == ["gpus"]:
        all_gpus, each = shape.gpus * workers, int(changes["gpus"].value())
        if all_gpus % each == 0:
            same = f", with workers: {all_gpus // each} for the same {all_gpus} GPUs"
    return f"Write {' and '.join(texts)}, the most that fits there{same}; or {otherwise[0].lower()}{otherwise[1:]}"


def _compute_amounts_that_fit_pool(pool: NodePool, shape: WorkerShape) -> dict[str, Quantity]:
    """Return the amounts to reduce so that a worker fits on a node; empty if that is not enough."""
    if shape.containers:
        return {}
    has = compute_worker_room_on_pool(pool, shape.cpu)
    asked = {"gpus": Quantity.of(shape.gpus), "cpu": shape.cpu, "memory": shape.memory}
    changes = {field: has[field] for field, amount in asked.items() if amount > has[field]}
    if "gpus" in changes and not pool.gpu:
        return {}
    smaller = replace(
        shape,
        gpus=int(changes["gpus"].value()) if "gpus" in changes else shape.gpus,
        cpu=changes.get("cpu", shape.cpu),
        memory=changes.get("memory", shape.memory),
    )
    return changes if not explain_worker_misfit_on_pool(pool, smaller)[1] else {}
