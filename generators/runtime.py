"""TrainingRuntime: one per run, in the team's namespace, never edited once it is in use."""

from __future__ import annotations

from typing import Any

from gangplan.generators.common import PREFIX, Pairs, literal, objects_of, run_annotations, run_labels
from gangplan.model.exits import FINAL_CODES, LAUNCH_EXITS
from gangplan.model.job import Job, Mount, Platform, Resources
from gangplan.model.quantity import parse_memory
from gangplan.objects import Body
from gangplan.plan import Unit
from gangplan.plan.environment import hides_gpus
from gangplan.template import render_script

WAVE = -5

# How long a worker's name may take to resolve, and MPI to reach all workers, before the run gives up.
# Workers are Ready before the launcher starts, so this covers slow DNS, not image pulls.
WAIT_S = 300

# What the end of a run takes beside the time that its ranks have: finding them, and their last lines.
GRACE_MARGIN_S = 15

# A PodGroup counts the launcher too, so it must not wait for workers that wait for it (dependsOn): its script
# waits. Trainer sets no scheduler (pkg/runtime/framework/plugins/{coscheduling,volcano}, v2.1 to v2.3).
SCHEDULERS = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}
# The default of the CRD, which the API server would fill in.
SCHEDULE_TIMEOUT_S = 60
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"

# Words of a Job that failed by its podFailurePolicy, for which rules of a JobSet look with Go's regular
# expressions (Kubernetes v1.34, pkg/controller/job/pod_failure_policy.go; JobSet v0.12, failure_policy.go).
DISRUPTION_PATTERN = "has condition DisruptionTarget matching FailJob rule"
EXIT_CODE_PATTERN = "failed with exit code [0-9]+ matching FailJob rule"
# How long a pod whose command has failed stays, so that one that was taken away is seen to have failed first:
# its Job fails once the other workers have ended too, which takes them 2 to 5 s without ranks.
HOLD_S = 30

# The label by which Trainer's SDK tells runtimes apart (stock runtimes of v2.3.0 use these values).
FRAMEWORK_LABEL = {"mpi": "mpi", "horovod": "mpi", "deepspeed": "deepspeed", "torch": "torch"}


def training_runtime(unit: Unit) -> list[Body]:
    """The runtime of a run: images, pods, commands and policies of both roles."""
    job, launch = unit.job, unit.launch
    argv = [literal(word) for word in launch.argv]
    worker_command, worker_args = _worker(job, argv)
    return objects_of(
        "runtime.yaml.j2",
        {
            "unit": unit,
            "job": job,
            "layout": unit.layout,
            "launch": launch,
            "argv": argv,
            "literal": literal,
            "name": unit.run_name,
            "framework": FRAMEWORK_LABEL[job.image.framework],
            "labels": run_labels(unit),
            "annotations": run_annotations(unit, WAVE),
            "group_annotations": _group_annotations(job),
            "schedule_timeout_s": SCHEDULE_TIMEOUT_S,
            "schedulers": SCHEDULERS,
            "worker_labels": pod_labels(unit, "worker"),
            "worker_annotations": _pod_annotations(job, "worker"),
            "worker_command": worker_command,
            "worker_args": worker_args,
            "launcher_labels": pod_labels(unit, "launcher"),
            "launcher_annotations": _pod_annotations(job, "launcher"),
            "script": _script(unit) if job.uses_mpi else "",
            "forgives": forgives_disruptions(job),
            "disruption_pattern": DISRUPTION_PATTERN,
            "exit_code_pattern": EXIT_CODE_PATTERN,
            "final_codes": FINAL_CODES,
            "job_deadline_s": job.timeout_s + job_grace_s(job.platform),
            "grace_s": job.grace_s + GRACE_MARGIN_S,
            "startup_tries": WAIT_S // 2,  # one each two seconds
            "shm_size": _shm_size,
            "volumes": _volumes,
        },
    )


def has_run_deadline(job: Job) -> bool:
    """Whether TrainJob has activeDeadlineSeconds: since Trainer 2.2; before, only its Job has one."""
    return job_grace_s(job.platform) > 0


def forgives_disruptions(job: Job) -> bool:
    """Whether a try that the platform ended (a drain, a reclaimed node) uses up no retry.

    Only where retries are asked for at all, and where the whole run has a deadline: nothing else would bound
    the number of tries.
    """
    return job.retries > 0 and has_run_deadline(job)


def job_grace_s(platform: Platform) -> int:
    """How much later than the run its Job ends by its own deadline, where the run has one.

    The Job's is what monitoring sees (generators/alerts.py); the run's comes first, so that the run ends as
    DeadlineExceeded and is not tried again.
    """
    return 60 if platform.trainer.at_least(2, 2) else 0


def pod_labels(unit: Unit, role: str) -> Pairs:
    """Labels of the pods of one role."""
    labels = dict(run_labels(unit))
    labels |= {
        f"{PREFIX}role": role,
        # A sidecar that outlives the program would keep the run from ever completing (trainer#2794).
        "sidecar.istio.io/inject": "false",
        # Names that the platform's log and cost tools select by (founding requirements).
        "training.openshift.io/mpijob": unit.run_name,
        "training.openshift.io/mpijob-role": role,
    }
    return tuple(sorted(labels.items()))


def _pod_annotations(job: Job, role: str) -> Pairs:
    # Moving a pod of a run to save a node would end the run (Karpenter 1.0: disruption).
    annotations = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }
    if job.platform.openshift is not None:
        annotations["openshift.io/required-scc"] = "nonroot-v2"
    if role == "worker" or job.launcher_runs_ranks:
        if job.topology is not None:
            annotations[f"kueue.x-k8s.io/{job.topology[0]}"] = job.topology[1]
        if job.fabric.networks:
            annotations["k8s.v1.cni.cncf.io/networks"] = ",".join(job.fabric.networks)
    elif job.topology is not None and job.launcher_pool == job.worker_pool:
        # A pod set without any request is never admitted to a flavor with topology.
        annotations["kueue.x-k8s.io/podset-unconstrained-topology"] = "true"
    return tuple(sorted(annotations.items()))


def _group_annotations(job: Job) -> Pairs:
    """Annotations of the JobSet, which Volcano's PodGroup takes its queue from."""
    return ((VOLCANO_QUEUE, job.queue),) if job.platform.gang == "volcano" and job.queue else ()


def _worker(job: Job, argv: list[str]) -> tuple[list[str], list[str]]:
    """Command and arguments of a worker: a shell that starts the SSH server (for torch, the command).

    On SIGTERM the shell ends the ranks.
    """
    template = "launch/worker.sh.j2" if job.uses_mpi else "launch/torch.sh.j2"
    values = {"grace_s": job.grace_s, "torch": not job.uses_mpi, "hold_s": _hold_s(job)}
    script = _text(template, values)
    server = [job.image.ssh.server, "-De", "-f", job.image.ssh.config]
    return ["/bin/sh", "-c", script, "gangplan-worker"], server if job.uses_mpi else argv


def _text(template: str, values: dict[str, Any]) -> str:
    """A script that ends with one line break: only then YAML shows it line by line."""
    return render_script(template, values).rstrip("\n") + "\n"


def _script(unit: Unit) -> str:
    """The launcher's script: wait for names, count workers, start the command and hand on a SIGTERM.

    In a pod group the launcher starts with the workers: it waits for their names and SSH servers itself.
    """
    job = unit.job
    assert job.image.mpi is not None  # a job that uses MPI has one: resolve refuses it otherwise
    template = "openmpi" if job.image.mpi.family == "OpenMPI" else "hydra"
    names = [variable.name for variable in job.env] if unit.launch.program == "deepspeed" else []
    values = {
        "workers": unit.layout.workers,
        "wait_s": WAIT_S,
        "start_wait_s": job.platform.start_wait_s if job.platform.has_pod_group else 0,
        "setup": job.image.mpi.setup,
        "deepspeed_names": names,
        # The daemon that mpirun starts on each worker.
        "daemon": "orted" if job.image.mpi.major < 5 else "prted",
        "grace_s": job.grace_s,
        "runs_ranks": job.launcher_runs_ranks,
        "torch": False,
        "hides_gpus": hides_gpus(job),
        "exits": LAUNCH_EXITS,
        "hold_s": _hold_s(job),
    }
    return _text(f"launch/{template}.sh.j2", values)


def _hold_s(job: Job) -> int:
    return HOLD_S if forgives_disruptions(job) else 0


def _shm_size(resources: Resources) -> str:
    """Half of the memory: NCCL and data loaders need far more than the 64 MiB that containers get."""
    half_mib = resources.memory.value() // 2 // 2**20
    return parse_memory(f"{max(half_mib, 1)}Mi").canonical()


def _volumes(mounts: tuple[Mount, ...]) -> list[Mount]:
    """One volume per claim or secret, even when it is mounted twice."""
    return list({mount.volume: mount for mount in mounts}.values())
