"""The launcher's pod, and the share of a worker that each rank may use."""

from __future__ import annotations

from gangplan.model.amounts import format_with_unit
from gangplan.model.frameworks import MPI_FRAMEWORKS
from gangplan.model.job import EnvVar, PulledImage, Resources, TargetPool, ValueOrigin
from gangplan.model.profiles import LAUNCHER_LADDER, size_launcher
from gangplan.model.quantity import Quantity
from gangplan.records import dataclass
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan
from gangplan.resolve.placement import ChosenPlacement
from gangplan.resolve.reach import PodDemand, resolve_launcher_demand
from gangplan.rules.specs import LAUNCHER_ONE_WORKER, LAUNCHER_RESOURCES, LAUNCHER_TORCH
from gangplan.rules.workers import LAUNCHER_SMALL

THREADS = "OMP_NUM_THREADS"
# A launcher with less than this part of its usual amount is reported.
_LEAST_SHARE = 4


def _runs_ranks_on_launcher(context: JobResolution, image: PulledImage, workers: int) -> bool:
    launcher = context.spec.spec.launcher
    if launcher is None or not launcher.runs_ranks:
        return False
    where = context.where("launcher", "runsRanks")
    if image.framework not in MPI_FRAMEWORKS:
        context.report(
            LAUNCHER_TORCH, where, f"{image.framework} has no launcher", "Remove the launcher block."
        )
    elif workers < 2:
        # Trainer creates max(numNodes - 1, 1) node pods next to the launcher: one worker would become two.
        context.report(
            LAUNCHER_ONE_WORKER,
            where,
            "a launcher that runs ranks needs at least 2 workers",
            "Raise workers, or remove runsRanks.",
        )
    if launcher.cpu is not None or launcher.memory is not None:
        context.report(
            LAUNCHER_RESOURCES,
            context.where("launcher"),
            "a launcher that runs ranks gets the resources of a worker",
            "Remove launcher.cpu and launcher.memory.",
        )
    return True


@dataclass(frozen=True, slots=True)
class LauncherPod:
    """The resources and the pool of the launcher's pod, and whether it is one of the workers."""

    resources: Resources
    pool: TargetPool
    runs_ranks: bool


def resolve_launcher(
    context: JobResolution, image: PulledImage, worker: Resources, placement: ChosenPlacement, workers: int
) -> LauncherPod:
    """Return the launcher's resources and pool: a worker's if it runs ranks, else without GPUs."""
    if _runs_ranks_on_launcher(context, image, workers):
        return LauncherPod(worker, placement.worker, True)
    beside = resolve_launcher_demand(context, workers)
    _check_launcher_size(context, beside, workers)
    return LauncherPod(Resources(beside.cpu, beside.memory), placement.launcher, False)


def _check_launcher_size(context: JobResolution, beside: PodDemand, workers: int) -> None:
    """Report a launcher that is far smaller than gangplan would make it for so many workers."""
    if workers <= LAUNCHER_LADDER[0][0]:
        return
    usual = dict(zip(("cpu", "memory"), size_launcher(workers), strict=True))
    for name, given in (("cpu", beside.cpu), ("memory", beside.memory)):
        if given.nano * _LEAST_SHARE < usual[name].nano:
            amount, rest = format_with_unit(name, given), format_with_unit(name, usual[name])
            context.report(
                LAUNCHER_SMALL,
                context.where("launcher", name),
                f"the launcher of {workers} workers has {amount}; without launcher.{name} it has {rest}",
                f"Remove launcher.{name}.",
            )


def add_openmp_thread_env(plan: DataPlan, cpu: Quantity, slots: int) -> None:
    """Set OMP_NUM_THREADS unless it is set: OpenMP sees the cores of the node, not the worker's share.

    If it is unset, torchrun sets 1 (torch/distributed/run.py), too few for one rank with many cores.
    """
    origins = (
        ValueOrigin("", because="OpenMP sees the cores of the node, so gangplan passes it those of the rank"),
        ValueOrigin("job", ("threads",)),
        ValueOrigin("spec", ("env", THREADS), f"env in the spec could set {THREADS}", is_direct=False),
    )
    threads = str(count_openmp_threads(cpu, slots))
    plan.env.setdefault(THREADS, EnvVar(THREADS, threads, is_share=True, origins=origins))


def count_openmp_threads(cpu: Quantity, slots: int = 1) -> int:
    """Return the threads of each rank, or of the one program of another pod or container."""
    return max(1, cpu.milli() // (1000 * slots))
