"""Potential flow around an obstacle: each rank has a strip of rows and sends its edges to its neighbours."""

import argparse
import configparser
import sys
from array import array

from mpi4py import MPI

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--case", required=True)
read = configparser.ConfigParser()
with open(parser.parse_args().case) as file:
    read.read_file(file)
case = read["case"]
width, height, steps = case.getint("width"), case.getint("height"), case.getint("steps")
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
rows = [row for row in range(height) if row * size // height == rank]
above, below = (rank - 1 if rank else MPI.PROC_NULL), (rank + 1 if rank + 1 < size else MPI.PROC_NULL)
solid = {(row, column) for row in range(height // 3, height // 2) for column in range(width // 3, width // 2)}
# An extra row on each side: the neighbours' edges, or the walls with the potential that drives the flow.
field = [array("d", [0.0]) * width for _ in range(len(rows) + 2)]
if rank == 0:
    field[0] = array("d", [1.0]) * width
change = first = None
for _ in range(steps):
    world.Sendrecv(field[1], above, 0, field[-1], below, 0)
    world.Sendrecv(field[-2], below, 1, field[0], above, 1)
    fresh = [array("d", row) for row in field]
    for index, row in enumerate(rows, 1):
        for column in range(1, width - 1):
            if (row, column) not in solid:
                around = field[index - 1][column] + field[index + 1][column]
                around += field[index][column - 1] + field[index][column + 1]
                fresh[index][column] = around / 4
    mine = max(
        abs(a - b) for new, old in zip(fresh, field, strict=True) for a, b in zip(new, old, strict=True)
    )
    change = world.allreduce(mine, op=MPI.MAX)
    first, field = first or change, fresh
if rank == 0:
    print(f"{steps} steps of {width}x{height} on {size} ranks, last change {change:.2e}", flush=True)
sys.exit(0 if change < first else 1)
