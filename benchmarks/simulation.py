"""Events per second of the simulated queue: `python -m benchmarks.simulation`.

Five teams in a cohort, two flavors, three resources, three priorities, and random runs of 1 to 16 GPUs.
"""

from __future__ import annotations

import random
import sys
import time

from gangplan.kueue.model import (
    ClusterQueue,
    KueueWorkload,
    Podset,
    PreemptionRules,
    QuotaSetup,
    ResourceGroup,
)
from gangplan.simulate.engine import simulate_runs

TEAMS, FLAVORS = 5, ("first", "second")
OWN = {"cpu": 400_000, "memory": 4_800, "gpu": 16}
# Mean seconds between two arrivals, and the number of runs: what the queue can handle, and five times that.
LOADS = {"ordinary": (2500, 1500), "overload": (600, 400)}


def setup(is_fair: bool) -> QuotaSetup:
    """Build queues that may borrow half of what they own, and reclaim all of it."""
    nominal = {(flavor, resource): amount for flavor in FLAVORS for resource, amount in OWN.items()}
    limits = {key: amount // 2 for key, amount in nominal.items()}
    groups = (ResourceGroup(tuple(OWN), FLAVORS),)
    rules = PreemptionRules("LowerPriority", "Any")
    queues = tuple(
        ClusterQueue(f"team{number}", "all", nominal, limits, {}, float(number + 1), groups, False, rules)
        for number in range(TEAMS)
    )
    return QuotaSetup(queues, (), is_fair)


def runs(count: int, gap: float, seed: int = 1) -> list[KueueWorkload]:
    """Build runs with workers and a launcher, one to ten hours long."""
    chance, now = random.Random(seed), 0.0
    found = []
    for number in range(count):
        now += chance.expovariate(1 / gap)
        gpus = chance.choice((1, 2, 4, 8, 16))
        workers = Podset("node", gpus, {"cpu": gpus * 12_000, "memory": gpus * 100, "gpu": gpus})
        podsets = (workers, Podset("launcher", 1, {"cpu": 1000, "memory": 2}))
        queue, priority = f"team{chance.randrange(TEAMS)}", chance.choice((100, 500, 500, 1000))
        found.append(
            KueueWorkload(f"run{number}", queue, podsets, priority, chance.uniform(3600, 36_000), now)
        )
    return found


def main() -> int:
    """Print a line per load and kind of sharing; rates are per second of processor time."""
    for load, (gap, count) in LOADS.items():
        for is_fair in (False, True):
            drawn = runs(count, gap)
            began = time.process_time()
            engine = simulate_runs(setup(is_fair), drawn)
            seconds = time.process_time() - began
            events, sharing = len(engine.events), "fair" if is_fair else "classical"
            print(f"{load:9} {sharing:10} {events:7} events {events / seconds:8.0f} per second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
