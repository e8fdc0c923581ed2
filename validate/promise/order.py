"""Checks of when pods start, when the run has succeeded, and what happens when a part of it fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.validate.jobset import JOBSET_PATH, LAUNCHER, WORKER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.failures import is_endless
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]
CHIEF = "chief"


def check_promised_start_order(laid: ExpandedRun) -> Found:
    """Check that the launcher starts when all workers are Ready; in a pod group its script waits instead."""
    launcher = laid.roles.get(LAUNCHER)
    if not laid.uses_mpi or launcher is None:
        return
    if laid.unit.job.platform.has_pod_group:
        return  # gang-deadlock reports a dependsOn there
    waits = {one["name"]: one.get("status") for one in launcher.entry.get("dependsOn") or ()}
    at: FieldPath = (*launcher.at, "dependsOn")
    if waits.get(WORKER) == "Complete":
        message = "the launcher would wait until the workers are Complete: their SSH servers never end"
        yield laid.runtime, report_broken_promise(at, message, "Write status: Ready.")
    elif WORKER not in waits and not _is_start_in_order(laid, launcher):
        message = (
            "the launcher would not wait for the workers: it would start while their images are still being"
            " pulled, and mpirun would find no SSH server"
        )
        yield (
            laid.runtime,
            report_broken_promise(at, message, "Keep dependsOn: [{name: node, status: Ready}]."),
        )


def _is_start_in_order(laid: ExpandedRun, launcher: ExpandedRole) -> bool:
    """Return whether JobSet's startupPolicy InOrder makes the launcher wait until the workers are Ready."""
    worker = laid.roles.get(WORKER)
    is_before = worker is not None and worker.index < launcher.index
    return is_before and (laid.jobset.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"


def check_promised_success_policy(laid: ExpandedRun) -> Found:
    """Check that the run succeeds with the launcher or chief, or else with all workers."""
    has_chief = any(role.name == CHIEF for role in laid.unit.job.roles)
    wanted = LAUNCHER if laid.uses_mpi else CHIEF if has_chief else WORKER
    if wanted not in laid.roles:
        return
    policy = laid.jobset.get("successPolicy") or {}
    targets = set(policy.get("targetReplicatedJobs") or laid.roles)
    is_enough = wanted in targets and (
        targets == {wanted} or _can_only_launcher_succeed(laid, policy, targets)
    )
    if is_enough:
        return
    at: FieldPath = (*JOBSET_PATH, "successPolicy")
    help = f"Keep targetReplicatedJobs: [{wanted}]."
    others = ", ".join(sorted(targets - {wanted}))
    if laid.uses_mpi and WORKER in targets:
        message = "the run would never complete: it would wait for the workers, whose SSH servers never end"
    elif wanted not in targets:
        message = f"the run would complete without {laid.roles[wanted].title}: success depends on {others}"
    elif policy.get("operator") == "Any":
        message = f"the run would be complete as soon as {others} is, with the program still at work"
    else:
        message = f"the run would not be complete before {others} is"
        yield laid.runtime, report_weakened_plan((*at, "targetReplicatedJobs"), message, help)
        return
    yield laid.runtime, report_broken_promise((*at, "targetReplicatedJobs"), message, help)


def _can_only_launcher_succeed(laid: ExpandedRun, policy: Body, targets: set[str]) -> bool:
    """Return whether the operator Any means the launcher: the workers' servers never end by themselves."""
    is_any = policy.get("operator") == "Any"
    return is_any and laid.uses_mpi and targets == {LAUNCHER, WORKER}


def check_promised_run_retries(laid: ExpandedRun) -> Found:
    """Check that a run is retried as a whole, as often as the spec says, and no part of it on its own."""
    planned, failure = laid.unit.job.retries, laid.jobset.get("failurePolicy") or {}
    built = failure.get("maxRestarts", 0)
    if built != planned:
        again = f"be retried {_format_retry_count(built)}" if built else "not be retried"
        message = f"after a failure the run would {again}; the plan says {_format_retry_count(planned)}"
        at: FieldPath = (*JOBSET_PATH, "failurePolicy", "maxRestarts")
        yield (
            laid.runtime,
            report_broken_promise(at, message, f"Write retries: {built} in the spec.", "retries"),
        )
    for index, rule in enumerate(failure.get("rules") or ()):
        if is_endless(rule):
            message = "a program that fails would be restarted forever, whatever retries says"
            help = "Name the reasons that are not the program's: onJobFailureReasons: [PodFailurePolicy]."
            yield (
                laid.runtime,
                report_broken_promise((*JOBSET_PATH, "failurePolicy", "rules", index), message, help),
            )
    for role in laid.present:
        yield from _check_promised_whole_restarts(laid, role)


def _format_retry_count(number: Any) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _check_promised_whole_restarts(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check that pods are not restarted on their own; ranks cannot join a running job."""
    job: FieldPath = (*role.at, "template", "spec")
    if laid.unit.job.debug and all(one.name != role.name for one in laid.unit.job.steps):
        from gangplan.validate.promise.kept import check_promised_debug_restarts  # few runs keep their pods

        yield from check_promised_debug_restarts(laid, role)
        return
    limit = role.job.get("backoffLimit", 6)
    if limit:
        message = (
            f"pods of {role.title} would be restarted on their own, up to {limit} times, while other"
            " ranks still run; the plan restarts a run as a whole"
        )
        yield (
            laid.runtime,
            report_broken_promise((*job, "backoffLimit"), message, "Write retries in the spec.", "retries"),
        )
    restart = role.spec.get("restartPolicy", "OnFailure")  # JobSet's default
    if restart != "Never":
        message = f"{role.title} would be restarted in place ({restart}), while other ranks still run"
        yield (
            laid.runtime,
            report_broken_promise((*role.pod, "restartPolicy"), message, "Keep restartPolicy: Never."),
        )
    if role.job.get("completionMode", "Indexed") != "Indexed":
        message = f"{role.title} would have no host names: only pods of an Indexed Job have them"
        yield (
            laid.runtime,
            report_broken_promise((*job, "completionMode"), message, "Keep completionMode: Indexed."),
        )


def check_promised_worker_readiness(laid: ExpandedRun) -> Found:
    """Check that workers are Ready only when their SSH server listens, as the launcher relies on it."""
    role, port = laid.roles.get(WORKER), laid.unit.job.image.ssh.port
    if not laid.uses_mpi or role is None or role.container is None:
        return
    knows = False
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = role.container.get(name)
        if probe is None:
            continue
        asked = _find_probe_target(probe, role.container)
        if asked not in (port, None):
            what = "never be Ready" if name != "livenessProbe" else "be killed over and over"
            message = f"the workers would {what}: the {name} asks {asked}, the SSH server listens on {port}"
            yield (
                laid.runtime,
                report_broken_promise((*role.box, name), message, f"Write tcpSocket: {{port: {port}}}."),
            )
        knows = knows or name != "livenessProbe"
    is_waited_for = not laid.unit.job.platform.has_pod_group and laid.unit.job.backend.by_jobset
    if not knows and is_waited_for:
        message = "the workers would be Ready before their SSH servers listen, and the launcher starts then"
        help = f"Keep a readinessProbe or startupProbe with tcpSocket: {{port: {port}}}."
        yield laid.runtime, report_broken_promise((*role.box, "readinessProbe"), message, help)


def _find_probe_target(probe: Body, container: Body) -> Any:
    """Return the port or protocol that a probe uses; None for a command, which only the image knows."""
    if "httpGet" in probe:
        return "by HTTP"
    if "grpc" in probe:
        return "by gRPC"
    port = (probe.get("tcpSocket") or {}).get("port")
    named = {one.get("name"): one.get("containerPort") for one in container.get("ports") or ()}
    return named.get(port, port) if isinstance(port, str) else port
