"""Pods, slots and ranks of a run, as Trainer will create them."""

from __future__ import annotations

from gangplan.model.job import Job
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class RunLayout:
    """Counts of one run.

    `workers` pods run ranks; `node_pods` of them are pods of the replicated job `node`. A dedicated launcher
    is one more pod (`launcher_pods` is 1 and it runs no rank); a launcher that runs ranks is one of the
    workers. torch has no launcher. `num_nodes` becomes the value in TrainJob.spec.trainer. Trainer's
    arithmetic: plugins/mpi, v2.1.0 to v2.3.0 (runLauncherAsNode: node = max(numNodes - 1, 1)).
    """

    workers: int
    slots: int
    node_pods: int
    launcher_pods: int
    num_nodes: int
    role_pods: int = 0  # of steps and other roles, which run no ranks

    @property
    def ranks(self) -> int:
        """Workers times slots."""
        return self.workers * self.slots

    @property
    def pods(self) -> int:
        """The number of all pods, including the launcher."""
        return self.node_pods + self.launcher_pods + self.role_pods


def build_run_layout(job: Job) -> RunLayout:
    """Return the counts of a job."""
    others = sum(role.workers for role in job.others)
    if not job.uses_mpi:
        return RunLayout(job.workers, job.slots, job.workers, 0, job.workers, others)
    if job.launcher_runs_ranks:
        return RunLayout(job.workers, job.slots, job.workers - 1, 1, job.workers, others)
    return RunLayout(job.workers, job.slots, job.workers, 1, job.workers, others)
