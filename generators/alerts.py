"""PrometheusRule: series of real exporters under the names that people ask for, and alerts over them.

No controller makes `mpijob_*` series. They are recorded from kube-state-metrics (Jobs and pods), the DCGM
exporter (GPUs) and Kueue (queues); docs/observability.md has the table of inputs. A Job's owner is its JobSet
and a JobSet has the name of its run, so no join needs a label of Jobs or pods (`--metric-labels-allowlist`).

Deadlines. The Trainer enforces a TrainJob's `activeDeadlineSeconds` itself, hands it to nobody, and deletes
the JobSet when it has passed (trainer v2.3.0, pkg/controller/trainjob_controller.go, reconcileDeadline). So
the runtime repeats it on the Job, a minute later (generators/runtime.py), where kube-state-metrics reads it
as kube_job_spec_active_deadline_seconds. The other way, a rule per run, would be evaluated for as long as the
run's file stays in Git. A run whose series end in its last two minutes without success counts as failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gangplan.generators.common import PREFIX, objects_of
from gangplan.generators.runtime import job_grace_s
from gangplan.model.duration import format_duration
from gangplan.model.site import Monitor, Site, SiteQueue
from gangplan.objects import Body

WAVE = -10

# The founding requirements ask for three failures in an hour, 80 % of the time and 90 % of the quota.
FAILURES = 3
DEADLINE_PERCENT = 80
QUOTA_PERCENT = 90
# A run that vanishes with less than this left was ended by its deadline: two intervals of scraping and rules.
DEADLINE_NEAR_S = 120


@dataclass(frozen=True, slots=True)
class Input:
    """A series that exists whenever its exporter is scraped; without it nothing could ever alert."""

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


def alerts(site: Site) -> list[Body]:
    """Recording rules and alerts, where the cluster has monitoring."""
    monitor = site.monitor
    if monitor is None:
        return []
    labels = dict(monitor.rule_labels) | {"app.kubernetes.io/managed-by": "gangplan"}
    values = {
        "monitor": monitor,
        "queues": bool(site.queues),
        "labels": tuple(sorted(labels.items())),
        "annotations": object_annotations(site),
    }
    return [_records(site, values), _alerts(site, monitor, values)]


def _records(site: Site, values: dict[str, Any]) -> Body:
    grace_s = job_grace_s(site.platform)
    limits = {"grace_s": grace_s, "deadline_near_s": DEADLINE_NEAR_S}
    (body,) = objects_of("observability/records.yaml.j2", {**values, **limits})
    if site.queues:
        teams = {
            "name": "gangplan.teams",
            "interval": "30s",
            "rules": [_team(queue) for queue in site.queues],
        }
        body["spec"]["groups"].insert(0, teams)
    return body


def _alerts(site: Site, monitor: Monitor, values: dict[str, Any]) -> Body:
    limits = {
        "failures": FAILURES,
        "deadline_percent": DEADLINE_PERCENT,
        "quota_percent": QUOTA_PERCENT,
        "pending": format_duration(monitor.pending_s),
        # At start_wait_s Kueue takes the run back to the queue; before, there is something to look at.
        "start": format_duration(max(site.platform.start_wait_s // 2, 60)),
        "inputs": inputs(site),
    }
    (body,) = objects_of("observability/alerts.yaml.j2", {**values, **limits})
    return body


def inputs(site: Site) -> list[Input]:
    """The series that this cluster cannot do without."""
    found = [KUBE_STATE]
    found += [KUEUE, KUEUE_RESOURCES] if site.queues else [TEAM_LABEL]
    # Without Kueue nobody says which resources are used: GPUs must be reckoned with.
    if not site.queues or any(resource.startswith("nvidia.com/") for resource in site.covered):
        found.append(DCGM)
    return found


def object_annotations(site: Site) -> tuple[tuple[str, str], ...]:
    """Where the objects come from, and what must run for them to say anything."""
    inputs = "kube-state-metrics, dcgm-exporter"
    if site.queues:
        inputs += ", kueue with metrics.enableClusterQueueResources"
    return (
        ("argocd.argoproj.io/sync-wave", str(WAVE)),
        (f"{PREFIX}inputs", inputs),
        (f"{PREFIX}source", site.source),
    )


def _team(queue: SiteQueue) -> Body:
    """A team as a series, so that every other one can be joined with it. Git says it, no exporter does."""
    labels = {"team": queue.team, "namespace": queue.namespace, "cluster_queue": queue.name}
    return {"record": "gangplan_team_info", "expr": "vector(1)", "labels": labels}
