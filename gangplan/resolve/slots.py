"""Ranks per worker: what the spec states, else one for each GPU."""

from __future__ import annotations

from gangplan.model.frameworks import ONE_RANK_FRAMEWORKS
from gangplan.model.job import Origin, PulledImage
from gangplan.resolve.context import JobResolution
from gangplan.rules.frameworks import FRAMEWORK_ONE_RANK


def resolve_ranks_per_worker(context: JobResolution, gpus: int, image: PulledImage | None) -> int:
    """Return the ranks per worker; frameworks that start the command once per worker always have one."""
    written = context.spec.spec.slots
    if image is not None and image.framework in ONE_RANK_FRAMEWORKS:
        _check_slots_of_single_rank_framework(context, gpus, image.framework)
        context.origins["slots"] = Origin("built-in")
        return 1
    if written is not None:
        context.origins["slots"] = Origin("spec", context.where("slots"))
        return written
    context.origins["slots"] = Origin("GPUs per worker" if gpus else "built-in")
    return gpus or 1


def _check_slots_of_single_rank_framework(context: JobResolution, gpus: int, framework: str) -> None:
    """Report slots above one, and GPUs that the only rank of xgboost would not use.

    One process of jax or tensorflow uses all GPUs of its worker, one of xgboost a single GPU.
    """
    written = context.spec.spec.slots
    if written is not None and written > 1:
        context.report(
            FRAMEWORK_ONE_RANK,
            context.where("slots"),
            f"{framework} starts the command once on each worker, but slots is {written}",
            "Remove slots; for more ranks, raise workers.",
        )
    if framework == "xgboost" and gpus > 1:
        # Trainer counts a worker per GPU, and the tracker waits for all of them (plugins/xgboost, v2.3.0).
        context.report(
            FRAMEWORK_ONE_RANK,
            context.origin_of("gpus", ("gpus",)),
            f"a process of xgboost uses one GPU, but a worker has {gpus}: the tracker would wait for {gpus} processes"
            " on each worker, but only one starts",
            f"Write gpus: 1, and {gpus} times as many workers.",
        )
