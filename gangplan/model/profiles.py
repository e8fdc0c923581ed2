"""Workload profiles, built-in defaults and launcher sizes: the numbers, each with its source."""

from __future__ import annotations

from gangplan.model.quantity import Quantity, parse_cpu, parse_memory_quantity
from gangplan.records import dataclass

# Founding requirements, appendix A (S1, S4): 4 workers, no GPU, 24 h, no restart.
DEFAULT_WORKERS = 4
DEFAULT_GPUS = 0
DEFAULT_TIMEOUT_S = 86_400
DEFAULT_RETRIES = 0
# Our choice: the notice that AWS gives a spot node, the longest of any cloud (Google and Azure: 30 s).
DEFAULT_GRACE_S = 120
LEAST_GRACE_S, MOST_GRACE_S = 30, 3600
# Founding requirements: logs stay for a week, and what explains a failure for a day at least.
DEFAULT_LOG_RETENTION_S, LEAST_LOG_RETENTION_S = 604_800, 86_400
DEFAULT_PRIORITY = "normal"
DEFAULT_POSTURE = "default"
# Our choice: enough for a data loader per rank; every sample and profile sets its own.
DEFAULT_WORKER_CPU = parse_cpu(4)
DEFAULT_WORKER_MEMORY = parse_memory_quantity("16Gi")

# A run may take 24 hours, or seven days with extendedTimeout.
PLAIN_TIMEOUT_S = 86_400
EXTENDED_TIMEOUT_S = 604_800

# More than 64 workers are reported as a warning; 1, 2, 4 and 8 GPUs per worker are usual (founding
# requirements).
MANY_WORKERS = 64
USUAL_GPUS = frozenset({0, 1, 2, 4, 8})


@dataclass(frozen=True, slots=True)
class Profile:
    """A preset: workers, GPUs per worker, CPU and memory per worker, timeout in seconds.

    Each field has the name of the spec field whose default it is (`Context.choose` looks it up).
    """

    workers: int
    gpus: int
    cpu: Quantity
    memory: Quantity
    timeout: int


# The target workloads of the founding requirements: the lower end of each range; timeouts are the upper end.
WORKLOAD_PROFILES: dict[str, Profile] = {
    "small": Profile(2, 1, parse_cpu(8), parse_memory_quantity("64Gi"), 4 * 3600),
    "medium": Profile(8, 4, parse_cpu(16), parse_memory_quantity("128Gi"), 12 * 3600),
    "large": Profile(32, 4, parse_cpu(32), parse_memory_quantity("256Gi"), 72 * 3600),
}

# mpirun has one SSH session and one daemon connection per worker, so the launcher grows with their number.
# The steps are at the documented sizes 16, 32, 64 and 100; the amounts are ours.
LAUNCHER_LADDER: tuple[tuple[int, Quantity, Quantity], ...] = (
    (16, parse_cpu(1), parse_memory_quantity("2Gi")),
    (32, parse_cpu(2), parse_memory_quantity("4Gi")),
    (64, parse_cpu(4), parse_memory_quantity("8Gi")),
    (100, parse_cpu(8), parse_memory_quantity("16Gi")),
    (500, parse_cpu(16), parse_memory_quantity("32Gi")),
)


def size_launcher(workers: int) -> tuple[Quantity, Quantity]:
    """Return CPU and memory of a dedicated launcher for this many workers."""
    for most, cpu, memory in LAUNCHER_LADDER:
        if workers <= most:
            return cpu, memory
    return LAUNCHER_LADDER[-1][1], LAUNCHER_LADDER[-1][2]
