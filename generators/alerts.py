"""PrometheusRule: records series of real exporters under the names that users query, and alerts on them.

No controller exports `mpijob_*` series. They are recorded from kube-state-metrics (Jobs and pods), the DCGM
exporter (GPUs) and Kueue (queues); docs/observability.md has the table of inputs. A Job's owner is its JobSet
and a JobSet has the name of its run, so no join needs a label of Jobs or pods (`--metric-labels-allowlist`).
An MPIJob owns the launcher's Job, and owns the workers' pods directly, without a Job in between (mpi-operator
v0.8.2, newLauncherJob, newWorker): the Job's name ends in -launcher; the rules make up a Job name for workers
that ends in -worker.

Deadlines. Trainer enforces a TrainJob's `activeDeadlineSeconds` itself, passes it on to no other object, and
deletes the JobSet when it has passed (trainer v2.3.0, pkg/controller/trainjob_controller.go,
reconcileDeadline). So the runtime repeats it on the Job, a minute later (generators/runtime.py), where
kube-state-metrics reads it as kube_job_spec_active_deadline_seconds. The alternative, a rule per run, would
be evaluated for as long as the run's file is in Git. A run whose series end in its last two minutes without
success counts as failed.
"""

from __future__ import annotations

from typing import Any

from gangplan.generators.common import (
    LABEL_PREFIX,
    MANAGED_LABEL,
    generate_platform_annotations,
    render_to_objects,
)
from gangplan.generators.launch import compute_job_deadline_grace_s
from gangplan.model import syncing
from gangplan.model.backend import MPIJOB
from gangplan.model.duration import format_duration
from gangplan.model.site import Monitor, Site, SiteQueue
from gangplan.objects import Body
from gangplan.records import dataclass

# The founding requirements ask for three failures in an hour, 80 % of the time and 90 % of the quota.
FAILURES = 3
DEADLINE_PERCENT = 80
QUOTA_PERCENT = 90
# The same share at which the rule `run-count` warns about runs in Git.
COUNT_PERCENT = 90
# A GPU that is used less than this for so long is idle; loading data at the start of a run takes less time.
IDLE_PERCENT, IDLE_MINUTES = 5, 30
# A kernel that waits for other ranks keeps its GPU busy but nearly as cool as an idle one: at 100 % it draws
# about 70 W (NVIDIA/nccl issue 968); one GPU of a stuck run may do nothing at all (libgpuarray issue 387).
# How much power a GPU draws depends on its model, so each is compared with its own last hours in the run.
STUCK_PERCENT, STUCK_POWER_PERCENT, STUCK_MINUTES, STUCK_PEAK_HOURS = 95, 50, 15, 6
# XIDs that programs cause; NVIDIA's device plugin does not take a GPU out of service for them
# (k8s-device-plugin, internal/rm/health.go, getDisabledHealthCheckXids).
PROGRAM_XIDS = (13, 31, 43, 45, 68, 109)
# A scheduled start later than this was missed: the creating pod may try for ten minutes.
LATE_S = 900
# A run that vanishes with less time left was ended by its deadline. Two intervals of scrapes and rules.
DEADLINE_NEAR_S = 120


@dataclass(frozen=True, slots=True)
class Input:
    """A series that exists whenever its exporter is scraped; without it, no alert could ever fire."""

    series: str
    exporter: str
    loses: str
    remedy: str


KUBE_STATE = Input(
    "kube_namespace_created",
    "kube-state-metrics",
    "no state, duration or failure of a run is known",
    "Scrape kube-state-metrics with honorLabels: true (docs/observability.md).",
)
TEAM_LABEL = Input(
    "gangplan_team_info",
    "kube-state-metrics",
    "no run can be matched to a team",
    "Start kube-state-metrics with --metric-labels-allowlist=namespaces=[gangplan.dev/team].",
)
KUEUE = Input(
    "kueue_cluster_queue_status",
    "kueue",
    "no queue is watched",
    "Scrape Kueue's manager; its ServiceMonitor comes with its prometheus kustomization.",
)
KUEUE_RESOURCES = Input(
    "kueue_cluster_queue_nominal_quota",
    "kueue",
    "no quota is watched",
    "Set metrics.enableClusterQueueResources: true in the configuration of Kueue's manager.",
)
DCGM = Input(
    "DCGM_FI_DEV_GPU_UTIL",
    "dcgm-exporter",
    "no use of GPUs is known",
    "Install the DCGM exporter (part of the NVIDIA GPU operator) and scrape it.",
)


def generate_prometheus_rules(site: Site) -> list[Body]:
    """Return the recording rules and alerts, if the cluster has monitoring."""
    monitor = site.monitor
    if monitor is None:
        return []
    labels = dict(monitor.rule_labels) | {MANAGED_LABEL: "gangplan"}
    values = {
        "monitor": monitor,
        "queues": bool(site.queues),
        "gpus": DCGM in inputs(site),
        "mpijobs": MPIJOB in site.platform.backends,
        "labels": tuple(sorted(labels.items())),
        "annotations": generate_prometheus_rule_annotations(site),
    }
    return [
        _generate_prometheus_recording_rules(site, values),
        _generate_prometheus_alerting_rules(site, monitor, values),
    ]


def _generate_prometheus_recording_rules(site: Site, values: dict[str, Any]) -> Body:
    grace_s = compute_job_deadline_grace_s(site.platform)
    limits = {"grace_s": grace_s, "deadline_near_s": DEADLINE_NEAR_S}
    (body,) = render_to_objects("observability/records.yaml.j2", {**values, **limits})
    if site.queues:
        teams = {
            "name": "gangplan.teams",
            "interval": "30s",
            "rules": [_generate_team_info_rule(queue) for queue in site.queues],
        }
        body["spec"]["groups"].insert(0, teams)
    return body


def _generate_prometheus_alerting_rules(site: Site, monitor: Monitor, values: dict[str, Any]) -> Body:
    limits = {
        "failures": FAILURES,
        "deadline_percent": DEADLINE_PERCENT,
        "quota_percent": QUOTA_PERCENT,
        "count_percent": COUNT_PERCENT,
        "pending": format_duration(monitor.pending_s),
        # At start_wait_s Kueue requeues the run; before that, there are still pods to look at.
        "start": format_duration(max(site.platform.start_wait_s // 2, 60)),
        "inputs": inputs(site),
        "idle_percent": IDLE_PERCENT,
        "idle_minutes": IDLE_MINUTES,
        "stuck_percent": STUCK_PERCENT,
        "stuck_power_percent": STUCK_POWER_PERCENT,
        "stuck_minutes": STUCK_MINUTES,
        "stuck_peak_hours": STUCK_PEAK_HOURS,
        "program_errors": " or ".join(f"gangplan_run_gpu_xid == {code}" for code in PROGRAM_XIDS),
    }
    (body,) = render_to_objects("observability/alerts.yaml.j2", {**values, **limits})
    if site.has_cronjobs:
        body["spec"]["groups"] += render_to_objects("observability/schedules.yaml.j2", {"late_s": LATE_S})
    return body


def inputs(site: Site) -> list[Input]:
    """Return the series that the alerts of this cluster depend on."""
    found = [KUBE_STATE]
    found += [KUEUE, KUEUE_RESOURCES] if site.queues else [TEAM_LABEL]
    # Without Kueue it is unknown which resources are used, so assume GPUs.
    if not site.queues or any(resource.startswith("nvidia.com/") for resource in site.covered):
        found.append(DCGM)
    return found


def generate_prometheus_rule_annotations(site: Site) -> tuple[tuple[str, str], ...]:
    """Return annotations with the source of the objects and the exporters that they need."""
    inputs = "kube-state-metrics, dcgm-exporter"
    if site.queues:
        inputs += ", kueue with metrics.enableClusterQueueResources"
    said = (*syncing.build_verbatim_annotations().items(), (f"{LABEL_PREFIX}inputs", inputs))
    return generate_platform_annotations(site, "PrometheusRule", *said)


def _generate_team_info_rule(queue: SiteQueue) -> Body:
    """Return a rule that records a team as a series to join with; no exporter knows teams, only Git."""
    labels = {"team": queue.team, "namespace": queue.namespace, "cluster_queue": queue.name}
    return {"record": "gangplan_team_info", "expr": "vector(1)", "labels": labels}
