"""Checks that pods are started: who manages them, what holds them back, and what restarts them.

Sources: Trainer v2.2.1 and v2.3.0 pkg/controller (managedBy is respected from 2.3 on), JobSet v0.12
pkg/controllers, Kubernetes v1.34 pkg/controller/job. Other checks report fields of pods that the API server
refuses as object-invalid.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.model.backend import TRAINJOB
from gangplan.model.frameworks import RENDEZVOUS_PORT
from gangplan.objects import Body
from gangplan.rules.lifecycle import GIT_OWNED_FIELD
from gangplan.validate.jobset import JOBSET_PATH, LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.failures import is_for_disruptions
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]
_FAILS = frozenset({"false", "/bin/false", "/usr/bin/false"})
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
TRAINER, JOBSETS, JOBS = (
    TRAINJOB.manager,
    "jobset.sigs.k8s.io/jobset-controller",
    "kubernetes.io/job-controller",
)


def check_promised_managers(laid: ExpandedRun) -> Found:
    """Check that the controllers of this cluster, or MultiKueue on a manager cluster, take the objects."""
    platform = laid.unit.job.platform
    if platform.hands_on:
        yield from _check_promised_kueue_manager(laid)
        return
    stated = laid.job.get("managedBy", TRAINER)
    if stated != TRAINER and platform.trainer_line.respects_managers:
        message = (
            f"the run would never start: Trainer ignores a TrainJob that is managed by '{stated}', and"
            " this cluster dispatches no runs"
        )
        help = "Remove managedBy; write multiKueue in cluster.yaml where runs go to worker clusters."
        yield laid.train_job, report_broken_promise(("spec", "managedBy"), message, help)
    if laid.jobset.get("managedBy", JOBSETS) != JOBSETS:
        message = "the run would never start: JobSet ignores what another controller manages"
        yield laid.runtime, report_broken_promise((*JOBSET_PATH, "managedBy"), message, "Remove managedBy.")
    for role in laid.present:
        if role.job.get("managedBy", JOBS) != JOBS:
            message = (
                f"{role.title} would never start: Kubernetes creates no pods for a Job of another controller"
            )
            at = (*role.at, "template", "spec", "managedBy")
            yield laid.runtime, report_broken_promise(at, message, "Remove managedBy.")


def _check_promised_kueue_manager(laid: ExpandedRun) -> Found:
    """Check that managedBy is not Trainer's name on a cluster where Kueue's webhook replaces it.

    The webhook does so whether it is stated or not (CanDefaultManagedBy, v0.19.2). On other clusters
    Trainer's name is the default of the API server and may be in Git.
    """
    if laid.job.get("managedBy") == TRAINER:
        message = (
            "Kueue writes its own name into managedBy where runs go to worker clusters, and it cannot change:"
            " every later sync would be refused"
        )
        help = "Remove managedBy, or write kueue.x-k8s.io/multikueue."
        yield laid.train_job, Problem(("spec", "managedBy"), message, help, GIT_OWNED_FIELD)


def check_promised_schedulers(laid: ExpandedRun) -> Found:
    """Check for pods that wait for an unknown controller or scheduler, or that bypass the scheduler."""
    for role in laid.present:
        spec = role.spec
        if spec.get("nodeName"):
            message = (
                f"{role.title} would all go to node '{spec['nodeName']}', bypassing the scheduler and Kueue"
            )
            help = "Remove nodeName; a node selector chooses nodes."
            yield laid.runtime, report_broken_promise((*role.pod, "nodeName"), message, help)
        for gate in spec.get("schedulingGates") or ():
            message = f"{role.title} would wait until somebody removes the gate '{gate['name']}'"
            help = "Remove schedulingGates, unless a controller of this cluster opens them."
            yield laid.runtime, report_weakened_plan((*role.pod, "schedulingGates"), message, help)
            break
        name = spec.get("schedulerName", "default-scheduler")
        if name != "default-scheduler" and not laid.unit.job.platform.has_pod_group:
            message = f"{role.title} would stay Pending unless this cluster has a scheduler '{name}'"
            help = "Remove schedulerName, unless that scheduler runs: nothing in the overlay says so."
            yield laid.runtime, report_weakened_plan((*role.pod, "schedulerName"), message, help)


def check_promised_runtime_class(laid: ExpandedRun) -> Found:
    """Check that the RuntimeClass exists.

    Kubernetes refuses pods of an unknown one (v1.34, plugin/pkg/admission/runtimeclass).
    """
    offered = laid.unit.job.platform.runtime_classes
    file = f"overlays/{laid.unit.job.platform.cluster}/cluster.yaml"
    for role in laid.present:
        name = role.spec.get("runtimeClassName")
        if name is None or name in (offered or ()):
            continue
        at = (*role.pod, "runtimeClassName")
        if offered is None:
            message = f"{role.title} would never start unless this cluster has a RuntimeClass '{name}'"
            help = f"Write runtimeClasses: [{name}] in {file} where it exists, or remove runtimeClassName."
            yield laid.runtime, report_weakened_plan(at, message, help)
            continue
        message = (
            f"{role.title} would never start: the API server refuses pods of RuntimeClass '{name}', and"
            f" runtimeClasses has {', '.join(offered) or 'none'}"
        )
        help = f"Remove runtimeClassName, or add '{name}' to runtimeClasses in {file} where it exists."
        yield laid.runtime, report_broken_promise(at, message, help)


def check_promised_restarts_are_whole(laid: ExpandedRun) -> Found:
    """Check for Jobs that restart single pods, and Jobs that end before all of their pods."""
    elastic = laid.unit.job.elastic
    for role in laid.present:
        job = (*role.at, "template", "spec")
        if role.job.get("backoffLimitPerIndex"):
            message = f"single pods of {role.title} would be restarted, while other ranks still run"
            yield (
                laid.runtime,
                report_broken_promise(
                    (*job, "backoffLimitPerIndex"), message, "Write retries in the spec.", "retries"
                ),
            )
        rules = (role.job.get("podFailurePolicy") or {}).get("rules") or ()
        for index, rule in enumerate(rules):
            if rule.get("action") == "Ignore" and not (elastic and is_for_disruptions(rule)):
                message = (
                    f"single pods of {role.title} would be restarted whenever this rule holds, while"
                    " other ranks still run"
                )
                at = (*job, "podFailurePolicy", "rules", index)
                yield laid.runtime, report_broken_promise(at, message, "Write action: FailJob.", "retries")
        if role.job.get("successPolicy") and role.pods > 1 and not elastic:
            message = f"{role.title} would be stopped as soon as some of them have succeeded"
            yield (
                laid.runtime,
                report_broken_promise((*job, "successPolicy"), message, "Remove successPolicy."),
            )


def check_promised_grace_period(laid: ExpandedRun) -> Found:
    """Check that ranks have the planned time to save when a run is stopped."""
    planned = laid.unit.job.grace_s
    for role in laid.present:
        built = role.spec.get("terminationGracePeriodSeconds", 30)
        if built < planned:
            message = (
                f"{role.title} would be killed {built} s after they are asked to stop; the plan gives them"
                f" {planned} s to save"
            )
            at = (*role.pod, "terminationGracePeriodSeconds")
            yield laid.runtime, report_weakened_plan(at, message, "Keep it, or make it longer.")


def check_promised_pods_can_start(laid: ExpandedRun) -> Found:
    """Check for readiness gates, images that are never pulled, and probes that start after Kueue gives up."""
    for role in laid.present:
        for index, gate in enumerate(role.spec.get("readinessGates") or ()):
            message = (
                f"{role.title} would not be Ready until somebody sets the condition '{gate['conditionType']}'"
            )
            help = "Remove readinessGates, unless a controller of this cluster sets the condition."
            yield laid.runtime, report_weakened_plan((*role.pod, "readinessGates", index), message, help)
        if role.container is None:
            continue
        if role.container.get("imagePullPolicy") == "Never":
            message = f"{role.title} would start only on nodes that have the image already"
            help = "Write IfNotPresent, unless every node of the pool gets the image by other means."
            yield laid.runtime, report_weakened_plan((*role.box, "imagePullPolicy"), message, help)
        for name in ("startupProbe", "readinessProbe"):
            delay, limit = (
                (role.container.get(name) or {}).get("initialDelaySeconds", 0),
                _find_kueue_start_timeout(laid),
            )
            if limit and delay >= limit:
                message = (
                    f"{role.title} would be probed for the first time after {delay} s; Kueue sends the run"
                    f" back to the queue after {limit} s without all pods Ready"
                )
                at = (*role.box, name, "initialDelaySeconds")
                yield (
                    laid.runtime,
                    report_broken_promise(at, message, "Write a few seconds, or a longer podsReadyTimeout."),
                )


def _find_kueue_start_timeout(laid: ExpandedRun) -> int:
    platform = laid.unit.job.platform
    return platform.start_wait_s if platform.kueue is not None else 0


def check_promised_exclusive_placement(laid: ExpandedRun) -> Found:
    """Check JobSet's exclusive placement, which sends all pods of a Job to one domain.

    Source: JobSet v0.12, pkg/controllers.
    """
    template = laid.run.bodies[laid.runtime]["spec"].get("template") or {}
    whole = (template.get("metadata") or {}).get("annotations") or {}
    for role in laid.present:
        own = (role.entry["template"].get("metadata") or {}).get("annotations") or {}
        key = own.get(EXCLUSIVE, whole.get(EXCLUSIVE))
        if key is not None and role.pods > 1:
            message = (
                f"{role.title} would all go to one node or group of nodes with the same {key}, or wait for it"
            )
            base = (*role.at, "template") if EXCLUSIVE in own else ("spec", "template")
            at = (*base, "metadata", "annotations", EXCLUSIVE)
            yield laid.runtime, report_weakened_plan(at, message, "Write placement in the spec.")


def check_promised_process_isolation(laid: ExpandedRun) -> Found:
    """Check for a shared process namespace: process 1 is then pause, which a run may not signal."""
    for role in laid.present:
        if role.spec.get("shareProcessNamespace") and laid.uses_mpi:
            message = (
                f"ranks of {role.title} would get no signal to save when the launcher is stopped:"
                " process 1 is another's"
            )
            at = (*role.pod, "shareProcessNamespace")
            yield laid.runtime, report_weakened_plan(at, message, "Remove shareProcessNamespace.")


def check_promised_priority_class(laid: ExpandedRun) -> Found:
    """Check that the PriorityClass is the planned one.

    Kubernetes refuses pods of an unknown one (v1.34, plugin/pkg/admission/priority).
    """
    known = {f"training-{name}" for name in ("low", "normal", "high")} | {
        *("system-cluster-critical", "system-node-critical")
    }
    for role in laid.present:
        name = role.spec.get("priorityClassName")
        if name and name != f"training-{laid.unit.job.priority}":
            ending = "" if name in known else ", and a cluster without this PriorityClass refuses its pods"
            message = (
                f"{role.title} would have priority class '{name}'; the plan has"
                f" 'training-{laid.unit.job.priority}'{ending}"
            )
            at = (*role.pod, "priorityClassName")
            yield laid.runtime, report_broken_promise(at, message, "Write priority in the spec.", "priority")


def check_promised_probes(laid: ExpandedRun) -> Found:
    """Check that no probe or hook kills the program: one that asks where nothing listens, or always fails.

    Probes of MPI workers by a port are those of `check_promised_worker_readiness`.
    """
    for role in laid.present:
        if role.container is None:
            continue
        hook = (role.container.get("lifecycle") or {}).get("postStart")
        yield from _judge_probe(laid, role, hook, ("lifecycle", "postStart"), "postStart hook")
        for name in ("startupProbe", "livenessProbe"):
            yield from _judge_probe(laid, role, role.container.get(name), (name,), name)


def _judge_probe(
    laid: ExpandedRun, role: ExpandedRole, probe: Body | None, inside: FieldPath, name: str
) -> Found:
    """Report a probe or hook that fails, or that asks a port which no container of the pod declares."""
    if not probe:
        return
    path, help = (*role.box, *inside), f"Remove the {name}."
    command = (probe.get("exec") or {}).get("command") or ()
    if command and command[0] in _FAILS:
        message = f"{role.title} would be killed: the {name} runs {command[0]}, which always fails"
        yield laid.runtime, report_broken_promise(path, message, help)
    asked = next((probe[how] for how in ("httpGet", "tcpSocket", "grpc") if how in probe), None)
    if asked is None or asked.get("host"):
        return
    if laid.uses_mpi and role is laid.roles.get(LAUNCHER):
        message = f"{role.title} would be killed: nothing in it listens where the {name} asks"
        yield laid.runtime, report_broken_promise(path, message, help)
    elif asked["port"] not in _list_declared_ports(role) and not (laid.uses_mpi and "Probe" in name):
        message = (
            f"{role.title} would be killed unless their program listens where the {name} asks"
            f" ({asked['port']}): nothing else of the plan does"
        )
        help = f"Remove the {name}, or add the port to the container's ports if its program listens there."
        yield laid.runtime, report_weakened_plan(path, message, help)


def _list_declared_ports(role: ExpandedRole) -> set[object]:
    """Return the ports of all containers of the pod, and their names."""
    boxes = [*(role.spec.get("containers") or ()), *(role.spec.get("initContainers") or ())]
    ports = [one for box in boxes for one in box.get("ports") or ()]
    return {RENDEZVOUS_PORT, *(one.get(key) for one in ports for key in ("containerPort", "name"))}
