"""Scale a job down to one machine: fewer workers and slots, no GPUs, no fabric; the rest stays as it is."""

from __future__ import annotations

from dataclasses import replace

from gangplan.errors import UserError
from gangplan.model.fabric import WorkerFabric
from gangplan.model.job import Job, MpiBuild, Resources
from gangplan.plan.counts import check_launcher_counts
from gangplan.plan.flags import mpi_family_of
from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import UnreadableError, find_launchers
from gangplan.plan.problems import correct_launcher_words_in_command
from gangplan.records import dataclass
from gangplan.rules.specs import RANKS_MISMATCH

# The default numbers of workers and slots: enough to have neighbours on the same and on another worker.
WORKERS = 4
SLOTS = 2
RANKS = 4
# More ranks than this are not a smoke test; each is a process with its own MPI.
MOST_RANKS = 64
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class LocalShape:
    """The numbers of workers and of ranks per worker of a run here."""

    workers: int
    slots: int

    @property
    def ranks(self) -> int:
        """Workers times slots."""
        return self.workers * self.slots


def choose_local_shape(job: Job, workers: int | None, ranks: int | None) -> LocalShape:
    """Return the shape of a run here: as requested, otherwise the job's own, limited to a small size.

    Raises UserError for numbers that do not fit together.
    """
    if workers is None:
        slots = 1 if ranks is None and job.slots == 1 else SLOTS
        most = min(job.workers, WORKERS if slots == 1 else max(1, RANKS // slots))
        workers = next(one for one in range(most, 0, -1) if ranks is None or ranks % one == 0)
    if ranks is None:
        ranks = workers * min(job.slots, SLOTS)
    if ranks % workers:
        help = f"Take a multiple of {workers}, or another number of workers with --workers."
        raise UserError(f"{ranks} ranks cannot be shared out evenly among {workers} workers", help)
    if ranks > MOST_RANKS:
        help = "Take fewer with --ranks; the whole run belongs on the cluster."
        raise UserError(f"{ranks} ranks are too many for one machine (at most {MOST_RANKS})", help)
    least = 2 if job.launcher_runs_ranks and job.workers > 1 else 1
    if workers < least:
        help = f"Take --workers {least} or more: the launcher of this job is one of the workers."
        raise UserError(f"{workers} worker is too few for this job", help)
    return LocalShape(workers, ranks // workers)


def scale_down_job_to_local_shape(job: Job, shape: LocalShape, mpi: MpiBuild | None) -> Job:
    """Return the job with that shape and the local MPI, from which plan and generators make the run.

    The spec's mpirun options stay, unless they are for another family of MPI.
    """
    same = mpi is None or job.image.mpi is None or job.image.mpi.family == mpi.family
    elastic = job.elastic and replace(job.elastic, least=shape.workers, most=shape.workers)
    made = replace(
        job,
        workers=shape.workers,
        slots=shape.slots,
        gpus=0,
        resources=Resources(job.resources.cpu, job.resources.memory),
        launcher=Resources(job.launcher.cpu, job.launcher.memory),
        worker_pool=replace(job.worker_pool, gpu=""),
        launcher_pool=replace(job.launcher_pool, gpu=""),
        fabric=WorkerFabric(),
        transport="tcp",
        mpi_flags=job.mpi_flags if same else (),
        platform=replace(job.platform, gang="none"),
        image=replace(job.image, mpi=mpi if job.uses_mpi else None, preflight=""),
        elastic=elastic,
        retries=0,
        roles=(),
        containers=(),
        near=(),
        apart=(),
        identity=None,
        is_archived=False,
        debug=None,
        made_of="trainjob",
        is_stopped=False,
    )
    return replace(made, command=_fit_command_to_scaled_counts(made))


def _fit_command_to_scaled_counts(job: Job) -> tuple[str, ...]:
    """Return the command with the job's numbers of ranks and workers in its launchers' options."""
    words = tuple(
        word.replace("{ranks}", str(job.ranks))
        .replace("{workers}", str(job.workers))
        .replace("{slots}", str(job.slots))
        for word in job.command
    )
    for _ in range(_ROUNDS):
        changed = _scale_first_launcher_numbers(replace(job, command=words))
        if changed is None or changed == words:
            break
        words = changed
    return words


def _scale_first_launcher_numbers(job: Job) -> tuple[str, ...] | None:
    """Return the command with the first launcher's numbers corrected; None if nothing changes."""
    try:
        launchers = find_launchers(job.command, mpi_family_of(job))
    except UnreadableError:
        return None
    for one in launchers:
        wrong = check_launcher_counts(LauncherCall(job, one))
        edits = [each.edit for each in wrong if each.rule is RANKS_MISMATCH and each.edit]
        if edits:
            return correct_launcher_words_in_command(job.command, one, list(dict.fromkeys(edits)))
    return None
