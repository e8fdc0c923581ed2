"""Workload profiles, built-in defaults and the launcher ladder: the numbers, each with its source."""

from __future__ import annotations

from gangplan.model.quantity import Quantity, parse_cpu, parse_memory
from gangplan.records import dataclass

# Founding requirements, appendix A (S1, S4): 4 workers, no GPU, 24 h, no restart.
DEFAULT_WORKERS = 4
DEFAULT_GPUS = 0
DEFAULT_TIMEOUT_S = 86_400
DEFAULT_RETRIES = 0
# Ours: what AWS gives a spot node, the longest that any cloud gives (Google and Azure: 30 s).
DEFAULT_GRACE_S = 120
LEAST_GRACE_S, MOST_GRACE_S = 30, 3600
DEFAULT_PRIORITY = "normal"
DEFAULT_POSTURE = "default"
# Ours: enough for a data loader per rank; every sample and profile sets its own.
DEFAULT_CPU = parse_cpu(4)
DEFAULT_MEMORY = parse_memory("16Gi")

# Without extendedTimeout a run may take 24 hours, with it seven days.
PLAIN_TIMEOUT_S = 86_400
EXTENDED_TIMEOUT_S = 604_800

# A warning above 64 workers; 1, 2, 4 and 8 GPUs per worker are usual (founding requirements).
MANY_WORKERS = 64
USUAL_GPUS = frozenset({0, 1, 2, 4, 8})


@dataclass(frozen=True, slots=True)
class Profile:
    """A preset: workers, GPUs per worker, CPU and memory per worker, timeout in seconds.

    Each field has the name of the spec's field that it is the default of (`Context.choose` looks it up).
    """

    workers: int
    gpus: int
    cpu: Quantity
    memory: Quantity
    timeout: int


# The target workloads of the founding requirements: the lower end of each range; timeouts are the upper end.
PROFILES: dict[str, Profile] = {
    "small": Profile(2, 1, parse_cpu(8), parse_memory("64Gi"), 4 * 3600),
    "medium": Profile(8, 4, parse_cpu(16), parse_memory("128Gi"), 12 * 3600),
    "large": Profile(32, 4, parse_cpu(32), parse_memory("256Gi"), 72 * 3600),
}

# mpirun holds one SSH session and one daemon connection per worker, so the launcher grows
# with their number. Steps at the documented sizes 16, 32, 64 and 100; the amounts are ours.
LAUNCHER_LADDER: tuple[tuple[int, Quantity, Quantity], ...] = (
    (16, parse_cpu(1), parse_memory("2Gi")),
    (32, parse_cpu(2), parse_memory("4Gi")),
    (64, parse_cpu(4), parse_memory("8Gi")),
    (100, parse_cpu(8), parse_memory("16Gi")),
    (500, parse_cpu(16), parse_memory("32Gi")),
)


def launcher_size(workers: int) -> tuple[Quantity, Quantity]:
    """CPU and memory of a dedicated launcher for this many workers."""
    for most, cpu, memory in LAUNCHER_LADDER:
        if workers <= most:
            return cpu, memory
    return LAUNCHER_LADDER[-1][1], LAUNCHER_LADDER[-1][2]
