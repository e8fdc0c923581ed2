"""How the pods of a run start: scripts of launcher and workers, and how long a run and its tries may take."""

from __future__ import annotations

from collections.abc import Hashable

from gangplan.generators.beside import debug_of, text_of
from gangplan.model.exits import PREFLIGHT_EXITS
from gangplan.model.job import Job, Platform
from gangplan.plan import Unit
from gangplan.plan.environment import GPUS_SHOWN, hides_gpus
from gangplan.plan.names import HOSTFILE, HYDRA_HOSTS

# How long the name of a worker may take to resolve, and MPI to reach all workers, before the run gives up.
# Workers are Ready before the launcher starts, so this covers slow DNS, not image pulls.
WAIT_S = 300

# The script that SSH sessions start with in a worker that has variables of its own. sshd passes none of its
# environment on to them; of two SetEnv lines it takes only the first, and an image may have one
# (sshd_config(5), 9.2).
SESSION = "/dev/shm/gangplan-session"
# How long a pod whose command has failed stays, so that a pod that was taken away is seen to fail first: the
# Job of that pod fails once its other workers have ended too, which takes them 2 to 5 s without ranks.
HOLD_S = 30

# The variable that names Hydra's hosts file, and variables that the MPI operator sets on the launcher that
# are wrong on a worker (mpi-operator v0.8.2, mpi_job_controller.go). A launcher with ranks has its own GPUs.
HOST_FILE_IN = {"IntelMPI": "I_MPI_HYDRA_HOST_FILE", "MPICH": "HYDRA_HOST_FILE"}
LAUNCHERS_ALONE = ("K_MPI_JOB_ROLE",)
HIDE_GPUS = (GPUS_SHOWN, "NVIDIA_DRIVER_CAPABILITIES")


def has_run_deadline(job: Job) -> bool:
    """Return whether the TrainJob gets activeDeadlineSeconds.

    Trainer has the field since 2.2; before that, only the Job has a deadline.
    """
    return job_grace_s(job.platform) > 0


def forgives_disruptions(job: Job) -> bool:
    """Return whether a try that the platform ended (a drain, a reclaimed node) uses up no retry.

    Only if retries are asked for at all and the whole run has a deadline, since nothing else would bound the
    number of tries; never for an MPIJob. An elastic run is not tried again for a disruption: its Job creates
    the lost worker again.
    """
    is_judged = job.backend.by_jobset and has_run_deadline(job)
    return job.retries > 0 and is_judged and job.elastic is None


def job_grace_s(platform: Platform) -> int:
    """Return by how many seconds the deadline of the Job exceeds that of the run; 0 if the run has none.

    Monitoring reads the Job's deadline (generators/alerts.py); the run's comes first, so that the run ends as
    DeadlineExceeded and is not tried again.
    """
    return 60 if platform.trainer_line.has_run_deadline else 0


def worker_start(job: Job, argv: list[str]) -> tuple[list[str], list[str]]:
    """Return a worker's command and arguments: a shell that starts the SSH server, or for torch the command.

    On SIGTERM the shell ends the ranks.
    """
    template = "launch/worker.sh.j2" if job.uses_mpi else "launch/torch.sh.j2"
    own = _own_names(job) if job.uses_mpi else ()
    values: dict[str, Hashable] = {"grace_s": job.grace_s, "torch": not job.uses_mpi, "hold_s": _hold_s(job)}
    values |= debug_of(job)
    given = job.identity.given if job.identity and job.uses_mpi else ()
    script = text_of(template, {**values, "own_names": own, "given_names": given, "session": SESSION})
    server = [job.image.ssh.server, "-De", "-f", job.image.ssh.config]
    if own or given:
        server += ["-o", f"ForceCommand=exec /bin/sh {SESSION}"]
    return ["/bin/sh", "-c", script, "gangplan-worker"], server if job.uses_mpi else argv


def launch_script(unit: Unit) -> str:
    """Render the launcher's script: wait for names, count workers, start the command and pass SIGTERM on.

    In a pod group the launcher starts with the workers, so it also waits for their SSH servers.
    """
    job = unit.job
    assert job.image.mpi is not None  # a job that uses MPI has one: resolve refuses it otherwise
    template = "openmpi" if job.image.mpi.family == "OpenMPI" else "hydra"
    names = tuple(one.name for one in job.env if not one.is_own) if unit.launch.program == "deepspeed" else ()
    values: dict[str, Hashable] = {
        "workers": unit.layout.workers,
        "wait_s": WAIT_S,
        "start_wait_s": job.platform.start_wait_s if _waits_itself(job) else 0,
        "setup": job.image.mpi.setup,
        "deepspeed_names": names,
        # The daemon that mpirun starts on each worker.
        "daemon": "orted" if job.image.mpi.major < 5 else "prted",
        "grace_s": job.grace_s,
        "runs_ranks": job.launcher_runs_ranks,
        "torch": False,
        "hides_gpus": hides_gpus(job),
        "hold_s": _hold_s(job),
        "forgotten": _forgotten(unit),
        **_of_operator(job),
        **debug_of(job),
        **(_preflight(job, template) if job.image.preflight else {"preflight": ()}),
    }
    return text_of(f"launch/{template}.sh.j2", values)


def _preflight(job: Job, template: str) -> dict[str, Hashable]:
    """Return the preflight's command, the exit codes of its findings, and those of an inconclusive one."""
    from gangplan.plan.preflight import preflight_words  # few runs have one

    own = {name: one.code for name, one in PREFLIGHT_EXITS.items()}
    ends = {name: own.pop(name) for name in ("unstarted", "unfinished")}
    words: dict[str, Hashable] = {"preflight": preflight_words(job), "preflight_codes": tuple(own.values())}
    return {**words, **ends, "finds_program": template == "openmpi"}


def _waits_itself(job: Job) -> bool:
    """Return whether the launcher starts together with the workers, so that its script has to wait for them.

    The MPI operator does not wait for workers if the job was suspended when created, as jobs under Kueue are:
    it creates the launcher's Job at once, because no worker exists yet that could be missing (v0.8.2,
    syncHandler).
    """
    return job.platform.has_pod_group or not job.backend.by_jobset


def _of_operator(job: Job) -> dict[str, Hashable]:
    """Return what the script needs to know about a hostfile that the MPI operator writes."""
    is_hydra = job.image.mpi is not None and job.image.mpi.family != "OpenMPI"
    if not job.backend.sets_environment:
        return {"hostfile": HOSTFILE, "host_file_in": "", "is_colon": False}
    assert job.image.mpi is not None
    return {
        # Names only, because the lines of the operator's own file end in slots: host:4.
        "hostfile": HYDRA_HOSTS if is_hydra else HOSTFILE,
        "host_file_in": HOST_FILE_IN.get(job.image.mpi.family, ""),
        "is_colon": is_hydra,
    }


def _forgotten(unit: Unit) -> tuple[str, ...]:
    """Return variables of the launcher that it must not pass on to ranks on other pods."""
    job = unit.job
    own = _own_names(job) if _hands_on_all(unit) else ()
    if not job.backend.sets_environment:
        return own
    alone = LAUNCHERS_ALONE if job.launcher_runs_ranks else (*LAUNCHERS_ALONE, *HIDE_GPUS)
    return (*own, *(name for name in alone if all(one.name != name for one in job.env)))


def _own_names(job: Job) -> tuple[str, ...]:
    """Return the variables whose values differ between pods: SSH sessions get those of their own pod."""
    return tuple(variable.name for variable in job.env if variable.is_told_apart)


def _hands_on_all(unit: Unit) -> bool:
    """Return whether the program that starts the ranks passes them the launcher's whole environment.

    A launcher without ranks unsets what each worker knows better (plan/env_problems.py refuses the other
    cases).
    """
    mpi = unit.job.image.mpi
    return (mpi is not None and mpi.family != "OpenMPI") or unit.launch.program in ("horovodrun", "deepspeed")


def _hold_s(job: Job) -> int:
    return HOLD_S if forgives_disruptions(job) else 0
