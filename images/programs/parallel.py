"""The ranks of a run: MPI under mpirun and horovodrun, torch.distributed under torchrun, or a single one."""

import atexit
import os
import signal
import sys


class Ranks:
    """The number of this rank and its communication with the others. This class is for a single rank."""

    rank, size = 0, 1

    def mean(self, values):
        """Return the mean of each number over all ranks."""
        return list(values)


class MpiRanks(Ranks):
    """Ranks that mpirun started."""

    def __init__(self):
        from mpi4py import MPI

        self._world = MPI.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()

    def mean(self, values):
        from array import array

        from mpi4py import MPI

        sums = array("d", values)
        self._world.Allreduce(MPI.IN_PLACE, sums, op=MPI.SUM)
        return [total / self.size for total in sums]


class TorchRanks(Ranks):
    """Ranks that torchrun started."""

    def __init__(self):
        import torch.distributed as dist

        dist.init_process_group("nccl" if os.environ.get("CUDA_VISIBLE_DEVICES") else "gloo")
        atexit.register(self.leave)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def leave(self):
        """End the group: its threads would abort a program that ends (torch 2.9.1 with gloo, exit code -6).

        After an exception, NCCL would wait for ranks that are gone, and hide that this one has failed.
        """
        import torch.distributed as dist

        if dist.get_backend() == "gloo" or not hasattr(sys, "last_value"):
            dist.destroy_process_group()

    def mean(self, values):
        import torch
        import torch.distributed as dist

        sums = torch.tensor(list(values), dtype=torch.float64)
        sums = sums.cuda() if dist.get_backend() == "nccl" else sums
        dist.all_reduce(sums)
        return [total / self.size for total in sums.tolist()]


def ranks():
    """Return the ranks of the launcher that started this program."""
    if "OMPI_COMM_WORLD_RANK" in os.environ or "PMI_RANK" in os.environ:
        return MpiRanks()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return TorchRanks()
    return Ranks()


class Ending:
    """Records whether this program was asked to end (SIGTERM: a preemption, a drain, a deletion)."""

    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_):
        self.asked = True
        print("asked to end: saving", file=sys.stderr, flush=True)
