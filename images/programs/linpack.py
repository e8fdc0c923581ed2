"""Solves a dense system of equations like Linpack: LU with row pivots, rows dealt to the ranks in turn.

Checks the residual, and prints the speed; in plain Python, that measures the network, not the CPU.
"""

import argparse
import random
import sys
import time

from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--size", type=int, default=96)
order = parser.parse_args().size
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def equation(row):
    """Return one row of the system and its right side, the same on every rank."""
    source = random.Random(row)
    return [source.uniform(-1, 1) for _ in range(order + 1)]


mine = {row: equation(row) for row in range(rank, order, size)}
open_rows, used = set(mine), []
start = time.perf_counter()
for column in range(order):
    pivot = max(((abs(mine[row][column]), -row) for row in open_rows), default=(-1.0, 0))
    largest, row = world.allreduce(pivot, op=MPI.MAX)
    row = -row
    line = world.bcast(mine.get(row), root=row % size)
    open_rows.discard(row)
    used.append(line)
    for other in open_rows:
        factor = mine[other][column] / line[column]
        mine[other] = [a - factor * b for a, b in zip(mine[other], line, strict=True)]
answer = [0.0] * order
for column in reversed(range(order)):
    line = used[column]
    known = sum(line[later] * answer[later] for later in range(column + 1, order))
    answer[column] = (line[order] - known) / line[column]
took = time.perf_counter() - start
residual = max(
    (
        abs(sum(a * x for a, x in zip(equation(row)[:order], answer, strict=True)) - equation(row)[order])
        for row in range(rank, order, size)
    ),
    default=0.0,
)
residual = world.allreduce(residual, op=MPI.MAX)
if rank == 0:
    rate = (2 * order**3 / 3) / took / 1e9
    print(f"order {order} on {size} ranks: {rate:.4f} Gflop/s, residual {residual:.1e}", flush=True)
sys.exit(residual > 1e-6)
