"""How the pods of a run start: scripts of launcher and workers, and how long a run and its tries may take."""

from __future__ import annotations

from gangplan.generators.common import escape_kubelet_variable_references
from gangplan.generators.scripts import generate_script_start_command
from gangplan.model.job import Job, Platform
from gangplan.model.profiles import DEFAULT_GRACE_S
from gangplan.plan import RunPlan
from gangplan.plan.environment import VISIBLE_GPUS_VARIABLE, needs_gpus_hidden_from_launcher

# How long the name of a worker may take to resolve, and MPI to reach all workers, before the run gives up.
# Workers are Ready before the launcher starts, so this covers slow DNS, not image pulls.
WORKER_WAIT_S = DEFAULT_WAIT_S = 300

# The script that SSH sessions start with in a worker that has variables of its own. sshd passes none of its
# environment on to them; of two SetEnv lines it takes only the first, and an image may have one
# (sshd_config(5), 9.2).
SESSION = "/dev/shm/gangplan-session"
# How long a pod whose command has failed stays, so that a pod that was taken away is seen to fail first: the
# Job of that pod fails once its other workers have ended too, which takes them 2 to 5 s without ranks.
HOLD_S = 30

# The launcher of Paddle serves the others only where the address that it is given is its own or this one, and
# it compares an address in numbers: the name of the first worker would have all of them wait for each other
# (paddlepaddle 3.3.1, distributed/launch/controllers/master.py, HTTPMaster.lazy_init).
PADDLE_START = (
    *("/bin/sh", "-c"),
    '[ "$PADDLE_RANK" != 0 ] || PADDLE_MASTER=127.0.0.1:${PADDLE_MASTER##*:}; exec "$@"',
    "paddle",
)

# The variable that names Hydra's hosts file, and variables that the MPI operator sets on the launcher that
# are wrong on a worker (mpi-operator v0.8.2, mpi_job_controller.go). A launcher with ranks has its own GPUs.
HOST_FILE_IN = {"IntelMPI": "I_MPI_HYDRA_HOST_FILE", "MPICH": "HYDRA_HOST_FILE"}
LAUNCHERS_ALONE = ("K_MPI_JOB_ROLE",)
HIDE_GPUS = (VISIBLE_GPUS_VARIABLE, "NVIDIA_DRIVER_CAPABILITIES")


def has_run_deadline(job: Job) -> bool:
    """Return whether the TrainJob gets activeDeadlineSeconds.

    Trainer has the field since 2.2; before that, only the Job has a deadline.
    """
    return compute_job_deadline_grace_s(job.platform) > 0


def forgives_disruptions(job: Job) -> bool:
    """Return whether a try that the platform ended (a drain, a reclaimed node) uses up no retry.

    Only if retries are asked for at all and the whole run has a deadline, since nothing else would bound the
    number of tries; never for an MPIJob. An elastic run is not tried again for a disruption: its Job creates
    the lost worker again.
    """
    is_judged = job.backend.by_jobset and has_run_deadline(job)
    return job.retries > 0 and is_judged and job.elastic is None


def compute_job_deadline_grace_s(platform: Platform) -> int:
    """Return by how many seconds the deadline of the Job exceeds that of the run; 0 if the run has none.

    Monitoring reads the Job's deadline (generators/alerts.py); the run's comes first, so that the run ends as
    DeadlineExceeded and is not tried again.
    """
    return 60 if platform.trainer_line.has_run_deadline else 0


def generate_worker_command(job: Job, argv: list[str]) -> tuple[list[str], list[str]]:
    """Return a worker's command and arguments: a script that starts the SSH server, or without MPI the
    command.

    On SIGTERM the script ends the ranks.
    """
    options: list[tuple[str, str | int]] = [("grace", _format_grace(job))]
    if not job.uses_mpi:
        start = generate_script_start_command(
            "program.sh", [*options, ("hold", _compute_hold_seconds(job)), *_generate_debug_options(job)]
        )
        return [*start, *(PADDLE_START if job.image.framework == "paddle" else ())], argv
    own, given = _list_pod_specific_variables(job), job.identity.given if job.identity else ()
    server = [job.image.ssh.server, "-De", "-f", job.image.ssh.config]
    if own or given:
        server += ["-o", f"ForceCommand=exec /bin/sh {SESSION}"]
    options += [("own", " ".join(own)), ("given", " ".join(given))]
    return generate_script_start_command("worker.sh", options), server


def generate_launcher_command(unit: RunPlan) -> list[str]:
    """Return the launcher's command: a script that waits for names, counts workers, starts the program and
    passes SIGTERM on.

    In a pod group the launcher starts with the workers, so it also waits for their SSH servers.
    """
    job = unit.job
    assert job.image.mpi is not None  # a job that uses MPI has one: resolve refuses it otherwise
    looks: tuple[str, ...] = ()
    # Hydra carries the environment by itself.
    reads_file = unit.launch.program == "deepspeed" and not _is_hydra(job)
    names = [one.name for one in job.env if not one.is_own] if reads_file else []
    if job.image.preflight:
        from gangplan.plan.preflight import build_preflight_words  # few runs have one

        looks = build_preflight_words(job)
    options: list[tuple[str, str | int]] = [
        ("mpi", "openmpi" if job.image.mpi.family == "OpenMPI" else "hydra"),
        ("workers", unit.layout.workers),
        ("grace", _format_grace(job)),
        ("hold", _compute_hold_seconds(job)),
        ("wait", WORKER_WAIT_S if WORKER_WAIT_S != DEFAULT_WAIT_S else 0),
        ("ssh-wait", job.platform.start_wait_s if _needs_to_await_workers(job) else 0),
        ("setup", job.image.mpi.setup or ""),
        ("ranks", job.launcher_runs_ranks and "yes"),
        ("hosts-in", _find_host_list_variable(job)),
        ("unset", " ".join(_list_variables_to_unset(unit))),
        ("deepspeed", " ".join(names)),
        ("preflight", len(looks)),
        *_generate_debug_options(job),
    ]
    return [
        *generate_script_start_command("launcher.sh", options),
        *map(escape_kubelet_variable_references, looks),
    ]


def _format_grace(job: Job) -> str:
    """Return the seconds that ranks have after SIGTERM, or nothing for those that the scripts give by
    themselves."""
    return "" if job.grace_s == DEFAULT_GRACE_S else str(job.grace_s)


def _generate_debug_options(job: Job) -> list[tuple[str, str | int]]:
    return [("keep-until", f"{job.debug.end_s}:{job.debug.until}")] if job.debug else []


def _needs_to_await_workers(job: Job) -> bool:
    """Return whether the launcher starts together with the workers, so that its script has to wait for them.

    The MPI operator does not wait for workers if the job was suspended when created, as jobs under Kueue are:
    it creates the launcher's Job at once, because no worker exists yet that could be missing (v0.8.2,
    syncHandler).
    """
    return job.platform.has_pod_group or not job.backend.by_jobset


def _find_host_list_variable(job: Job) -> str:
    """Return the variable that must name the script's own list of hosts: the MPI operator's has names that
    Hydra does not know its launcher by."""
    if not job.backend.sets_environment or job.image.mpi is None:
        return ""
    return HOST_FILE_IN.get(job.image.mpi.family, "")


def _list_variables_to_unset(unit: RunPlan) -> tuple[str, ...]:
    """Return variables of the launcher that it must not pass on to ranks on other pods."""
    job = unit.job
    own = _list_pod_specific_variables(job) if _passes_whole_environment(unit) else ()
    if _is_hydra(job) and needs_gpus_hidden_from_launcher(job):
        own = (*own, VISIBLE_GPUS_VARIABLE)  # Hydra carries the environment to all ranks
    if not job.backend.sets_environment:
        return own
    alone = LAUNCHERS_ALONE if job.launcher_runs_ranks else (*LAUNCHERS_ALONE, *HIDE_GPUS)
    return tuple(dict.fromkeys((*own, *(one for one in alone if all(own.name != one for own in job.env)))))


def _list_pod_specific_variables(job: Job) -> tuple[str, ...]:
    """Return the variables whose values differ between pods: SSH sessions get those of their own pod."""
    return tuple(variable.name for variable in job.env if variable.is_told_apart)


def _passes_whole_environment(unit: RunPlan) -> bool:
    """Return whether the program that starts the ranks passes them the launcher's whole environment.

    A launcher without ranks unsets what each worker knows better (plan/env_problems.py refuses the other
    cases).
    """
    return _is_hydra(unit.job) or unit.launch.program in ("horovodrun", "deepspeed")


def _is_hydra(job: Job) -> bool:
    return job.image.mpi is not None and job.image.mpi.family != "OpenMPI"


def _compute_hold_seconds(job: Job) -> int:
    return HOLD_S if forgives_disruptions(job) else 0
