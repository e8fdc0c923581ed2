"""Checks of an MPIJob against the plan: pods, slots, start, end, retries and keys.

Source: mpi-operator v0.7.0 to v0.8.2 (pkg/controller/mpi_job_controller.go; defaults: v2beta1/default.go).
Checks of pods that do not depend on their controller are shared with TrainJobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.rules.lifecycle import GIT_OWNED_FIELD
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.hosts import check_promised_ssh_port
from gangplan.validate.promise.life import check_promised_pod_deadline, format_seconds
from gangplan.validate.promise.roles import MPI_ROLES, ExpandedRun
from gangplan.validate.promise.words import format_counted_noun, report_broken_promise, report_weakened_plan
from gangplan.validate.replicas import REPLICAS_PATH, runs_ranks

Found = Iterator[tuple[int, Problem]]
POLICY: FieldPath = ("spec", "runPolicy")
NAMES = {role: name for name, role in MPI_ROLES.items()}
OPERATOR, MULTIKUEUE = "kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"
FAMILIES = {"OpenMPI": "OpenMPI", "IntelMPI": "Intel", "MPICH": "MPICH"}


def pods(laid: ExpandedRun) -> Found:
    """Check that each role exists, with the planned number of pods and the program's container first."""
    layout = laid.unit.layout
    for name, planned in ((WORKER, layout.node_pods), (LAUNCHER, layout.launcher_pods)):
        role = laid.roles.get(name)
        if role is None:
            message = f"the run would have no {'launcher' if name == LAUNCHER else 'workers'}"
            yield (
                laid.runtime,
                report_broken_promise((*REPLICAS_PATH, NAMES[name]), message, f"Leave {NAMES[name]}."),
            )
            continue
        if role.container is None or role.box[-1] != 0:
            message = (
                f"{role.title} would get keys and hosts in another container: the MPI operator puts them"
                " into the"
                " first one"
            )
            help = "Leave the container 'node' where it is, and put others behind it or into initContainers."
            yield laid.runtime, report_broken_promise((*role.pod, "containers"), message, help)
        if role.pods != planned:
            pods = format_counted_noun(role.pods, "pod")
            message = f"there would be {pods} of {role.title}; the plan has {planned}"
            help = (
                f"If you want that, write workers: {role.pods} in the spec; plan, quota and ranks follow it."
            )
            yield laid.runtime, report_broken_promise((*role.at, "replicas"), message, help, "workers")


def check_promised_mpijob_slots(laid: ExpandedRun) -> Found:
    """Check the hostfile: the ranks per worker, the format that the image's MPI reads, and whether it lists
    the launcher."""
    spec, layout, job = laid.job, laid.unit.layout, laid.unit.job
    stated = spec.get("slotsPerWorker", 1)
    if stated != layout.slots:
        message = (
            f"each worker would start {format_counted_noun(stated, 'rank')}; the plan has"
            f" {format_counted_noun(layout.slots, 'slot')} a worker"
        )
        help = "Write slots in the spec: the command, quota and the number of ranks follow it."
        yield laid.train_job, report_broken_promise(("spec", "slotsPerWorker"), message, help, "slots")
    built = runs_ranks(laid.run.bodies[laid.train_job])
    if built != job.launcher_runs_ranks:
        does = "would run ranks too" if built else "would run no ranks"
        message = f"the launcher {does}, so the hostfile would list other hosts than the plan"
        help = f"Write launcher: {{runsRanks: {str(built).lower()}}} in the spec."
        yield laid.train_job, report_broken_promise(("spec", "runLauncherAsWorker"), message, help)
    family = job.image.mpi.family if job.image.mpi else "OpenMPI"
    implementation = spec.get("mpiImplementation", "OpenMPI")
    if implementation != FAMILIES[family]:
        message = (
            f"the operator would write the hostfile for {implementation}, which {family} of image"
            f" '{job.image.name}' does not read as it is meant"
        )
        help = "Write mpi of the image in images/catalog.yaml, from which mpiImplementation follows."
        yield laid.train_job, report_broken_promise(("spec", "mpiImplementation"), message, help)


def check_promised_mpijob_worker_cleanup(laid: ExpandedRun) -> Found:
    """Check that the workers are removed with the launcher; their SSH servers never end by themselves."""
    policy = _read_run_policy(laid)
    stated = policy.get("cleanPodPolicy", "None")
    if stated == "None":
        message = (
            "the workers would stay when the run has ended, with their nodes and GPUs, which Kueue gives to"
            " others"
        )
        at: FieldPath = (*POLICY, "cleanPodPolicy")
        yield laid.train_job, report_broken_promise(at, message, "Keep cleanPodPolicy: Running.")
    if "ttlSecondsAfterFinished" in policy:
        after = format_seconds(policy["ttlSecondsAfterFinished"])
        message = f"the launcher's Job would be deleted {after} after its end, and the run's log with it"
        at = (*POLICY, "ttlSecondsAfterFinished")
        yield laid.train_job, report_weakened_plan(at, message, "Remove ttlSecondsAfterFinished.")


def check_promised_mpijob_retries(laid: ExpandedRun) -> Found:
    """Check that the launcher is retried as often as planned, and only by its Job."""
    planned = laid.unit.job.retries
    built = _read_run_policy(laid).get("backoffLimit", 6)
    if built != planned:
        message = (
            f"after a failure the launcher would be retried {_format_retry_count(built)};"
            f" the plan says {_format_retry_count(planned)}"
        )
        help = f"Write retries: {built} in the spec."
        yield laid.train_job, report_broken_promise((*POLICY, "backoffLimit"), message, help, "retries")
    spec = _read_replica_spec(laid, LAUNCHER)
    restart = spec.get("restartPolicy", "OnFailure")
    if LAUNCHER in laid.roles and restart != "Never":
        message = (
            f"the launcher would be restarted in place ({restart}), while other ranks still run, and its"
            " earlier log"
            " would be gone"
        )
        at = (*laid.roles[LAUNCHER].at, "restartPolicy")
        yield laid.train_job, report_broken_promise(at, message, "Keep restartPolicy: Never.")
    restart = _read_replica_spec(laid, WORKER).get("restartPolicy", "Never")
    if WORKER in laid.roles and planned and restart == "Never":
        message = "a worker that has failed would not come back, so that the next try could not reach it"
        at = (*laid.roles[WORKER].at, "restartPolicy")
        yield laid.train_job, report_weakened_plan(at, message, "Keep restartPolicy: OnFailure.")


def check_promised_mpijob_deadline(laid: ExpandedRun) -> Found:
    """Check that the run ends no later than planned; an earlier end is reported as weakened."""
    planned, stated = laid.unit.job.timeout_s, _read_run_policy(laid).get("activeDeadlineSeconds")
    at: FieldPath = (*POLICY, "activeDeadlineSeconds")
    if planned and (stated is None or stated > planned):
        when = "never end" if stated is None else f"end after {format_seconds(stated)}"
        message = f"the run would {when}; the plan ends it after {format_seconds(planned)}"
        help = "Write timeout in the spec, or defaults: {timeout: ...} in cluster.yaml."
        yield laid.train_job, report_broken_promise(at, message, help, "timeout")
    elif stated is not None and (not planned or stated < planned):
        is_long = f"the plan gives it {format_seconds(planned)}" if planned else "the plan has no end"
        message = f"the run would end after {format_seconds(stated)}; {is_long}"
        help = "Write timeout in the spec, or limits: {timeoutHours: ...} in cluster.yaml."
        yield laid.train_job, report_weakened_plan(at, message, help)
    for role in laid.present:
        yield from check_promised_pod_deadline(laid, role)


def check_promised_mpijob_manager(laid: ExpandedRun) -> Found:
    """Check that managedBy lets the MPI operator, or Kueue's MultiKueue, take the MPIJob."""
    stated, hands_on = _read_run_policy(laid).get("managedBy"), laid.unit.job.platform.hands_on
    at: FieldPath = (*POLICY, "managedBy")
    if not hands_on and stated not in (None, OPERATOR):
        message = (
            f"the run would never start: the MPI operator ignores an MPIJob that is managed by '{stated}'"
            ", and"
            " this cluster dispatches no runs"
        )
        help = "Remove managedBy; write multiKueue in cluster.yaml where runs go to worker clusters."
        yield laid.train_job, report_broken_promise(at, message, help)
    elif hands_on and stated == OPERATOR:
        message = (
            "Kueue writes its own name into managedBy where runs go to worker clusters: every later sync"
            " would write"
            " the operator's back"
        )
        yield laid.train_job, Problem(at, message, f"Write {MULTIKUEUE}.", GIT_OWNED_FIELD)


def check_promised_mpijob_ssh_keys(laid: ExpandedRun) -> Found:
    """Check that the SSH keys are where the image's server and client look for them."""
    planned, built = laid.unit.job.image.ssh.keys, laid.job.get("sshAuthMountPath", "/root/.ssh")
    if built.rstrip("/") != planned.rstrip("/"):
        message = f"the SSH keys would be at {built}; the image looks for them at {planned}"
        help = f"Write ssh: {{keys: {built}}} for '{laid.unit.job.image.name}' in images/catalog.yaml."
        yield laid.train_job, report_broken_promise(("spec", "sshAuthMountPath"), message, help)
    yield from check_promised_ssh_port(laid)


def _read_run_policy(laid: ExpandedRun) -> Body:
    found: Body = laid.job.get("runPolicy") or {}
    return found


def _read_replica_spec(laid: ExpandedRun, role: str) -> Body:
    found: Body = (laid.job.get("mpiReplicaSpecs") or {}).get(NAMES[role]) or {}
    return found


def _format_retry_count(number: Any) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


MPIJOB_CHECKS: tuple[Callable[[ExpandedRun], Found], ...] = (
    pods,
    check_promised_mpijob_slots,
    check_promised_mpijob_worker_cleanup,
    check_promised_mpijob_retries,
    check_promised_mpijob_deadline,
    check_promised_mpijob_manager,
    check_promised_mpijob_ssh_keys,
)
