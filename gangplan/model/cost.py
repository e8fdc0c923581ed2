"""What a run can cost at most: GPU-hours, and money by the pool prices in the cluster file.

GPUs are priced on pools with GPUs, where CPU and memory are included; CPU cores are priced on other pools.
The time is the run's own limit, because its real duration is not known in advance. A preempted run starts its
time again. Steps keep their pods until their own limits, and the run keeps its workers' quota and GPUs
meanwhile.
"""

from __future__ import annotations

from decimal import Decimal

from gangplan.model.job import Job, ResolvedRole, Resources, TargetPool
from gangplan.model.quantity import Quantity
from gangplan.records import dataclass

SECONDS_PER_HOUR = 3600
NANOS_PER_UNIT = 10**9
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Part:
    """The pods of one role: the amount that is paid for, its price per hour, and its maximum duration in
    seconds."""

    amount: Quantity
    unit: str
    price: Decimal
    seconds: int
    is_step: bool = False

    @property
    def words(self) -> str:
        """The amount and price in words: `32 GPUs x 1.5625`."""
        amount = (Decimal(self.amount.nano) / NANOS_PER_UNIT).normalize()
        unit = self.unit.removesuffix("s") if amount == 1 else self.unit
        return f"{amount:f} {unit} x {self.price}"

    @property
    def per_hour(self) -> Decimal:
        """The price of the whole amount per hour, in the currency of the cluster."""
        return Decimal(self.amount.nano) / NANOS_PER_UNIT * self.price

    def cost(self, seconds: Decimal | int) -> Decimal:
        """Return the exact cost in a run that lasts `seconds`."""
        return self.per_hour * min(self.seconds, seconds) / SECONDS_PER_HOUR


def list_cost_parts(job: Job) -> tuple[Part, ...] | None:
    """Return what is paid for while a run has its pods; None if its workers use a resource without a
    price."""
    most = compute_max_seconds(job)
    workers = _build_cost_part(job.worker_pod, job.worker_pool, job.workers, most)
    if workers is None:
        return None
    others = [_build_cost_part(role.resources, role.pool, role.workers, most) for role in job.roles]
    if job.uses_mpi and not job.launcher_runs_ranks:
        others.append(_build_cost_part(job.launcher, job.launcher_pool, 1, most))
    others += [
        _build_cost_part(step.resources, step.pool, 1, step_seconds(job, step), is_step=True)
        for step in job.steps
    ]
    return (workers, *(one for one in others if one and one.amount))


def _build_cost_part(
    resources: Resources, pool: TargetPool, pods: int, seconds: int, is_step: bool = False
) -> Part | None:
    if pool.gpu:
        count, price = dict(resources.devices).get(pool.gpu, 0), pool.per_gpu_hour
        if price is None or not count:  # no price is stated for such a node without its GPUs
            return None
        return Part(Quantity.of(count * pods), "GPUs", price, seconds, is_step)
    price = pool.per_cpu_hour
    return None if price is None else Part(resources.cpu * pods, "CPU", price, seconds, is_step)


def list_unpriced_pools(job: Job) -> tuple[str, ...]:
    """Return the pools of a run's pods that have no price, sorted by name."""
    pools = [job.worker_pool, *(role.pool for role in job.others)]
    if job.uses_mpi and not job.launcher_runs_ranks:
        pools.append(job.launcher_pool)
    without = {pool.name for pool in pools if (pool.per_gpu_hour if pool.gpu else pool.per_cpu_hour) is None}
    if job.worker_pool.gpu and not dict(job.worker_pod.devices).get(job.worker_pool.gpu):
        without.add(job.worker_pool.name)
    return tuple(sorted(without))


def compute_max_seconds(job: Job) -> int:
    """Return the longest time that a run has its pods, including steps, in seconds.

    Trainer 2.1 only has a deadline for each Job in each attempt; that of the workers begins after the steps.
    """
    if not job.backend.by_jobset or job.platform.trainer_line.has_run_deadline:
        return job.timeout_s
    steps = sum(one.step.timeout_s for one in job.steps if one.step)
    return (steps + job.timeout_s) * (job.retries + 1)


def step_seconds(job: Job, step: ResolvedRole) -> int:
    """Return the longest time that a step has its pod, in seconds. Every attempt begins with the first
    step."""
    assert step.step is not None
    return min(step.step.timeout_s * (job.retries + 1), compute_max_seconds(job))


def compute_max_cost(job: Job) -> Decimal | None:
    """Return the most that a run costs, to the cent; None without a price."""
    parts = list_cost_parts(job)
    if parts is None:
        return None
    return sum((part.cost(part.seconds) for part in parts), Decimal(0)).quantize(CENT)


def describe_max_use(job: Job) -> str:
    """Return what a run uses at most: `at most 768 GPU-hours (1200.00 EUR)`; CPU-hours if it has no GPU."""
    hours, unit, cost = count_gpu_hours(job), "GPU", compute_max_cost(job)
    if not hours:
        hours, unit = count_cpu_hours(job), "CPU"
    money = f" ({cost} {job.platform.currency})" if cost is not None else ""
    return f"at most {format_hours(hours)} {unit}-hours{money}"


def gpus_of(job: Job) -> int:
    """Return the GPUs of workers and other roles, which are used as long as the run lasts."""
    return job.workers * job.gpus + sum(map(_count_role_gpus, job.roles))


def count_step_gpus(job: Job) -> int:
    """Return the GPUs of all steps together. Their quota is used from the start, each step's until it is
    complete."""
    return sum(map(_count_role_gpus, job.steps))


def cpu_of(job: Job) -> int:
    """Return the CPU of workers and other roles, in billionths of a core."""
    return job.worker_pod.cpu.nano * job.workers + sum(map(_compute_role_nano_cpu, job.roles))


def count_step_gpu_seconds(job: Job) -> int:
    """Return the most that steps use GPUs, in GPU-seconds."""
    return sum(_count_role_gpus(one) * step_seconds(job, one) for one in job.steps)


def list_other_cpus(job: Job) -> list[tuple[TargetPool, int, int]]:
    """Return pool, CPU in billionths of a core, and the longest time in seconds of each pod that is neither a
    worker nor of a role: steps, and a launcher without ranks."""
    found = [(one.pool, _compute_role_nano_cpu(one), step_seconds(job, one)) for one in job.steps]
    if job.uses_mpi and not job.launcher_runs_ranks:
        found.append((job.launcher_pool, job.launcher.cpu.nano, compute_max_seconds(job)))
    return found


def count_other_cpu_seconds(job: Job) -> int:
    """Return the most that steps and the launcher use cores, in seconds of a billionth of a core."""
    return sum(cpu * seconds for _, cpu, seconds in list_other_cpus(job))


def count_gpu_hours(job: Job) -> Decimal:
    """Return the exact GPU-hours that a run uses at most; each pod counts for its maximum duration."""
    return Decimal(gpus_of(job) * compute_max_seconds(job) + count_step_gpu_seconds(job)) / SECONDS_PER_HOUR


def count_cpu_hours(job: Job) -> Decimal:
    """Return the same for CPU cores."""
    return (
        Decimal(cpu_of(job) * compute_max_seconds(job) + count_other_cpu_seconds(job))
        / NANOS_PER_UNIT
        / SECONDS_PER_HOUR
    )


def _count_role_gpus(role: ResolvedRole) -> int:
    return sum(count for _, count in role.resources.devices) * role.workers


def _compute_role_nano_cpu(role: ResolvedRole) -> int:
    return role.resources.cpu.nano * role.workers


def format_hours(hours: Decimal) -> str:
    """Return hours of GPUs or cores as text: whole from 10 on, else to a tenth."""
    return f"{hours:.0f}" if hours >= 10 else f"{hours.quantize(Decimal('0.1')).normalize():f}"
