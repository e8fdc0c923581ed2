"""Guess runtimes that TrainJobs refer to but that are not among the sources.

They are Trainer's own, or follow from the command or the name.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.plan.launchers import UnreadableError, find_launchers
from gangplan.records import dataclass

# kubeflow/trainer v2.3.0, manifests/base/runtimes/*.yaml: policy and image by name.
_TRAINERS_OWN = {
    "torch-distributed": ("torch", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"),
    "jax-distributed": ("jax", "nvcr.io/nvidia/jax:25.10-py3"),
    "xgboost-distributed": ("xgboost", "ghcr.io/kubeflow/trainer/xgboost-runtime"),
    "deepspeed-distributed": ("mpi", "ghcr.io/kubeflow/trainer/deepspeed-runtime"),
    "mlx-distributed": ("mpi", "ghcr.io/kubeflow/trainer/mlx-runtime"),
}
_BY_LAUNCHER = {"torch": "torch", "accelerate": "torch", "mpi": "mpi", "horovod": "mpi", "deepspeed": "mpi"}
_BY_NAME = {
    "flux": "flux",
    "torch": "torch",
    "jax": "jax",
    "xgboost": "xgboost",
    "mpi": "mpi",
    "deepspeed": "mpi",
}


@dataclass(frozen=True, slots=True)
class KnownRuntime:
    """What a runtime is assumed to be: how its ranks start, the default image, and the question to ask."""

    kind: str
    image: str
    question: str
    help: str


def guess_runtime_of_imported_trainjob(name: str, command: Sequence[str], image: str) -> KnownRuntime | None:
    """Return what a runtime of this name is; None if neither its name nor the TrainJob gives that away."""
    help = f"Name its file, too, where it says more: kubectl get clustertrainingruntime {name} -o yaml > runtime.yaml."
    if name in _TRAINERS_OWN:
        kind, own = _TRAINERS_OWN[name]
        text = f"the runtime {name} is not among the sources; that of Trainer 2.3 is assumed"
        return KnownRuntime(kind, own, text, help)
    kind = _find_rank_start_kind_of_command(command) or next(
        (kind for part, kind in _BY_NAME.items() if part in name.lower()), ""
    )
    if not kind or not image:
        return None
    text = (
        f"the runtime {name} is not among the sources; its name or the command tells that it is one of {kind}"
    )
    return KnownRuntime(kind, image, text, help)


def _find_rank_start_kind_of_command(command: Sequence[str]) -> str:
    """Return how the ranks of a command start."""
    try:
        found = find_launchers(command, None)
    except UnreadableError:
        return ""
    return _BY_LAUNCHER.get(found[0].start.launcher.kind, "") if found else ""
