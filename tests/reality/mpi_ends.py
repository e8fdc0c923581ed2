"""Ends as its first argument says: mistakes in calls of mpi4py."""

import array
import sys

from mpi4py import MPI

world, how = MPI.COMM_WORLD, sys.argv[1]
if how == "python-peer":
    world.send(1, dest=7)
if how == "python-null":
    MPI.COMM_NULL.Barrier()
if how == "python-final":
    MPI.Finalize()
    world.Get_rank()
if how == "python-truncate":
    if world.rank == 0:
        world.Send(array.array("d", bytes(512)), dest=1)
    else:
        world.Recv(array.array("d", bytes(32)), source=0)
