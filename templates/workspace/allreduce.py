"""Adds up an array over all ranks: checks the sum and measures the time for several sizes."""

import argparse
import sys
import time
from array import array

from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--repeat", type=int, default=5)
chosen = parser.parse_args()
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
for count in (1, 1000, 100_000):
    mine, total = array("d", [rank + 1.0]) * count, array("d", [0.0]) * count
    world.Barrier()
    start = time.perf_counter()
    for _ in range(chosen.repeat):
        world.Allreduce(mine, total, op=MPI.SUM)
    took = (time.perf_counter() - start) / chosen.repeat
    if total[0] != size * (size + 1) / 2 or total[-1] != total[0]:
        sys.exit(f"rank {rank}: the sum is {total[0]}, which is wrong")
    if rank == 0:
        print(f"{size} ranks, {8 * count:>7} bytes: {1e6 * took:.0f} us", flush=True)
