"""What a run can cost at most, from the prices that a cluster file states for its pools.

GPUs are priced on pools with GPUs, where CPU and memory come with them, and CPU cores on pools without. The
time is the run's own limit: what it really takes is not known before. Preempted runs start their time anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from gangplan.model.duration import format_duration
from gangplan.model.job import Job, Resources, TargetPool
from gangplan.model.quantity import Quantity
from gangplan.pipeline.worker import PlannedRun

SECONDS = 3600
NANO = 10**9
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Part:
    """Pods of one role: how much of what is paid for, and its price per hour."""

    amount: Quantity
    unit: str
    price: Decimal

    @property
    def words(self) -> str:
        """`32 GPUs x 1.5625`."""
        amount = (Decimal(self.amount.nano) / NANO).normalize()
        return f"{amount:f} {self.unit} x {self.price}"

    @property
    def per_hour(self) -> Decimal:
        """In the currency of the cluster."""
        return Decimal(self.amount.nano) / NANO * self.price


def parts_of(job: Job) -> tuple[Part, ...] | None:
    """What is paid for while a run has its pods; None when the pool of its workers has no price."""
    workers = _part(job.resources, job.worker_pool, job.workers)
    if workers is None:
        return None
    if not job.uses_mpi or job.launcher_runs_ranks:
        return (workers,)
    launcher = _part(job.launcher, job.launcher_pool, 1)
    return (workers, launcher) if launcher and launcher.amount else (workers,)


def _part(resources: Resources, pool: TargetPool, pods: int) -> Part | None:
    if pool.gpu:
        count = dict(resources.devices).get(pool.gpu, 0)
        return (
            None if pool.per_gpu_hour is None else Part(Quantity.of(count * pods), "GPUs", pool.per_gpu_hour)
        )
    return None if pool.per_cpu_hour is None else Part(resources.cpu * pods, "CPU", pool.per_cpu_hour)


def most_seconds(job: Job) -> int:
    """The longest that a run holds its pods. Trainer 2.1 knows a deadline per attempt only."""
    attempts = 1 if job.platform.trainer.at_least(2, 2) else job.retries + 1
    return job.timeout_s * attempts


def most_cost(job: Job) -> Decimal | None:
    """The most that a run costs, to the cent; None without a price."""
    parts = parts_of(job)
    if parts is None:
        return None
    return (sum((part.per_hour for part in parts), Decimal(0)) * most_seconds(job) / SECONDS).quantize(CENT)


def cost_words(run: PlannedRun) -> str:
    """`at most 1200.00 EUR (32 GPUs x 1.5625 x 24h)`; empty without a price."""
    job = run.unit.job
    parts, cost = parts_of(job), most_cost(job)
    if parts is None or cost is None:
        return ""
    priced = " + ".join(part.words for part in parts)
    priced = f"({priced})" if len(parts) > 1 else priced
    return f"at most {cost} {job.platform.currency} ({priced} x {format_duration(most_seconds(job))})"


def cost_document(run: PlannedRun) -> dict[str, str] | None:
    """The same as data; None without a price."""
    cost = most_cost(run.unit.job)
    return None if cost is None else {"most": str(cost), "currency": run.unit.job.platform.currency}
