"""Checks of labels and placement, by which queues, policies, monitoring and bills identify a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.spec.fabrics import NETWORKS_ANNOTATION
from gangplan.validate.jobset import LAUNCHER, WORKER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise

Found = Iterator[tuple[int, Problem]]
OWN = "gangplan.dev/"
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"


def check_promised_labels(laid: ExpandedRun) -> Found:
    """Check the labels that identify the run, on its objects and on its pods."""
    unit = laid.unit
    of_pods = {
        f"{OWN}job": unit.job.name,
        f"{OWN}run": unit.run_name,
        f"{OWN}team": unit.job.team,
        **{f"{OWN}{regime}": "true" for regime in unit.job.regimes},
        **({f"{OWN}residency": unit.job.residency} if unit.job.residency else {}),
    }
    wanted = {"app.kubernetes.io/managed-by": "gangplan", **of_pods}
    for index, body in enumerate(laid.run.bodies):
        built = body["metadata"].get("labels") or {}
        yield from _check_promised_label_values(
            index, ("metadata", "labels"), wanted, built, f"this {body['kind']}"
        )
    for role in laid.present:
        built = (role.template.get("metadata") or {}).get("labels") or {}
        at: FieldPath = (*role.template_at, "metadata", "labels")
        part = "launcher" if role.name == LAUNCHER else "worker"
        yield from _check_promised_label_values(
            laid.runtime, at, {**of_pods, f"{OWN}role": part}, built, role.title
        )
        yield from _check_promised_cloud_identity_labels(laid, at, built, role.title)
    yield from _check_promised_records(laid)


def _check_promised_records(laid: ExpandedRun) -> Found:
    """Check that gangplan.dev/ annotations are as generated: policies and auditors read them.

    A patch may neither change what the run was made from, nor state a longer timeout or other data.
    """
    for index, (body, generated) in enumerate(zip(laid.run.bodies, laid.run.generated, strict=False)):
        planned, built = (one["metadata"].get("annotations") or {} for one in (generated, body))
        for key in sorted({*planned, *built}):
            if key.startswith(OWN) and planned.get(key) != built.get(key):
                has = f"{key}: {built[key]}" if key in built else f"no annotation {key}"
                message = f"this {body['kind']} would have {has}; policies and auditors read it as gangplan's"
                help = f"Keep {planned[key]}." if key in planned else "Remove the annotation."
                yield index, report_broken_promise(("metadata", "annotations", key), message, help)


def _check_promised_cloud_identity_labels(
    laid: ExpandedRun, at: FieldPath, built: dict[str, str], title: str
) -> Found:
    """Check the labels of the cloud identity; without them the cloud's webhook ignores the pods."""
    for key, value in laid.unit.job.identity.pod_labels if laid.unit.job.identity else ():
        if built.get(key) != value:
            message = f"{title} would have no identity in the cloud: label {key} is not '{value}'"
            yield laid.runtime, report_broken_promise((*at, key), message, "Keep the label.")


def _check_promised_label_values(
    index: int, at: FieldPath, wanted: dict[str, str], built: dict[str, str], title: str
) -> Iterator[tuple[int, Problem]]:
    for key, value in wanted.items():
        if built.get(key) != value:
            has = f"{key}: {built[key]}" if key in built else f"no label {key}"
            message = f"{title} would have {has}; policies, monitoring and cost reports look for {value}"
            yield (
                index,
                report_broken_promise((*at, key), message, "Keep the label, and add your own next to it."),
            )


def check_promised_queue(laid: ExpandedRun) -> Found:
    """Check the queue, priority, service account and scheduler of the run."""
    job = laid.unit.job
    built = laid.run.bodies[laid.train_job]["metadata"].get("labels") or {}
    at: FieldPath = ("metadata", "labels")
    if job.queue and job.platform.gang == "kueue":
        if built.get(QUEUE) not in (job.queue, None):  # a run without a queue is reported as not-queued
            message = f"the run would wait in queue '{built[QUEUE]}'; the plan has '{job.queue}'"
            help = f"Write queue: {built[QUEUE]} for team {job.team} in cluster.yaml."
            yield laid.train_job, report_broken_promise((*at, QUEUE), message, help)
        if built.get(PRIORITY) != f"training-{job.priority}":
            message = (
                f"the run would have priority '{built.get(PRIORITY, '(none)')}'; the plan has"
                f" 'training-{job.priority}'"
            )
            help = "Write priority in the spec, or defaults: {priority: ...} in cluster.yaml."
            yield laid.train_job, report_broken_promise((*at, PRIORITY), message, help, "priority")
    for role in laid.present:
        yield from _check_promised_service_account(laid, role)
        yield from _check_promised_gang_scheduler(laid, role)


def _check_promised_service_account(laid: ExpandedRun, role: ExpandedRole) -> Found:
    planned, built = laid.unit.job.service_account, role.spec.get("serviceAccountName", "default")
    if built != planned:
        message = (
            f"{role.title} would run with service account '{built}', which gangplan does not create in"
            f" {laid.unit.job.namespace}; the plan has '{planned}'"
        )
        help = f"Keep serviceAccountName: {planned}; patch that ServiceAccount for a cloud identity."
        yield laid.runtime, report_broken_promise((*role.pod, "serviceAccountName"), message, help)


def _check_promised_gang_scheduler(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check the scheduler; only the one that owns the pod group starts its pods together."""
    gang = laid.unit.job.platform.gang
    if not laid.unit.job.platform.has_pod_group:
        return
    group = laid.run.bodies[laid.runtime]["spec"].get("podGroupPolicy") or {}
    if role.name == WORKER and gang not in group:
        message = f"the run would have no pod group of {gang}: its pods would start one by one"
        yield (
            laid.runtime,
            report_broken_promise(("spec", "podGroupPolicy"), message, "Leave podGroupPolicy."),
        )
    wanted = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}[gang]
    built = role.spec.get("schedulerName", "default-scheduler")
    if built != wanted:
        message = f"{role.title} would be placed by '{built}', one by one; the group is started by '{wanted}'"
        yield (
            laid.runtime,
            report_broken_promise((*role.pod, "schedulerName"), message, f"Keep schedulerName: {wanted}."),
        )


def check_promised_placement(laid: ExpandedRun) -> Found:
    """Check the topology, the anti-affinity and the additional networks that the plan has."""
    job = laid.unit.job
    role = laid.roles.get(WORKER)
    if role is None:
        return
    built = (role.template.get("metadata") or {}).get("annotations") or {}
    at: FieldPath = (*role.template_at, "metadata", "annotations")
    if job.topology is not None:
        key, level = f"kueue.x-k8s.io/{job.topology[0]}", job.topology[1]
        if built.get(key) != level:
            message = f"the workers would not be placed by '{level}', as the spec asks"
            yield laid.runtime, report_broken_promise((*at, key), message, "Write placement in the spec.")
    yield from _check_promised_job_anti_affinity(laid, role)
    networks = Counter(one.strip() for one in built.get(NETWORKS_ANNOTATION, "").split(","))
    missing = Counter(one.strip() for one in ",".join(job.fabric.networks).split(",") if one) - networks
    if missing:
        wanted = ", ".join(f"'{name}'" for name in missing)
        which = "the network" if len(missing) == 1 else "the networks"
        often = "" if len(job.fabric.networks) == len(set(job.fabric.networks)) else ", once for each device"
        message = f"the workers would not be on {which} {wanted} that their pool has for RDMA{often}"
        yield (
            laid.runtime,
            report_broken_promise(
                (*at, NETWORKS_ANNOTATION), message, "Keep it, and add others after a comma."
            ),
        )


def _check_promised_job_anti_affinity(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check that the workers share no node with the jobs in placement.apart.

    A site may change anti-affinity that is only preferred.
    """
    affinity = (role.spec.get("affinity") or {}).get("podAntiAffinity") or {}
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    kept = {
        ((one.get("labelSelector") or {}).get("matchLabels") or {}).get("gangplan.dev/job") for one in terms
    }
    for name in laid.unit.job.apart:
        if name not in kept:
            message = f"the workers could share a node with job '{name}', which the spec keeps apart"
            at: FieldPath = (*role.pod, "affinity")
            yield (
                laid.runtime,
                report_broken_promise(at, message, "Remove it from placement.apart of the spec.", "apart"),
            )
