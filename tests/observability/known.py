"""Series of exporters that rules and dashboards may use, with their sources; and the names in an
expression."""

from __future__ import annotations

import re

# kube-state-metrics, docs/metrics/workload/{job,pod}-metrics.md and docs/metrics/cluster/namespace-metrics.md
KUBE_STATE = {
    "kube_cronjob_next_schedule_time",  # docs/metrics/workload/cronjob-metrics.md
    "kube_cronjob_status_last_successful_time",
    "kube_job_owner",
    "kube_job_created",
    "kube_job_complete",
    "kube_job_failed",
    "kube_job_spec_active_deadline_seconds",
    "kube_job_spec_parallelism",
    "kube_job_status_active",
    "kube_job_status_completion_time",
    "kube_job_status_start_time",
    "kube_namespace_created",
    "kube_namespace_labels",
    "kube_pod_completion_time",
    "kube_pod_container_resource_requests",
    "kube_pod_container_status_restarts_total",
    "kube_pod_container_status_waiting_reason",
    "kube_pod_info",
    "kube_pod_init_container_status_waiting_reason",
    "kube_pod_owner",
    "kube_pod_status_phase",
    "kube_pod_status_ready",
    "kube_resourcequota",  # docs/metrics/policy/resourcequota-metrics.md
}
# dcgm-exporter, etc/default-counters.csv
DCGM = {
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_XID_ERRORS",
}
# kubelet, /metrics/cadvisor (cadvisor docs/storage/prometheus.md)
CADVISOR = {
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "container_network_receive_bytes_total",
    "container_network_transmit_bytes_total",
}
# kueue pkg/metrics/metrics.go, v0.15.2, v0.16.1, v0.18.2 and v0.19.2: in all of them
KUEUE = {
    "kueue_admission_wait_time_seconds",
    "kueue_admitted_active_workloads",
    "kueue_admitted_workloads_total",
    "kueue_cluster_queue_nominal_quota",
    "kueue_cluster_queue_resource_reservation",
    "kueue_cluster_queue_status",
    "kueue_cluster_queue_weighted_share",
    "kueue_evicted_workloads_total",
    "kueue_pending_workloads",
    "kueue_preempted_workloads_total",
    "kueue_reserving_active_workloads",
}
# The minor version that added a series, if not all have it.
KUEUE_SINCE = {"kueue_cluster_queue_resource_pending": (0, 18)}

_TEXT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_LABELS = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
_BRACES = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]")
_NAME = re.compile(r"(?<![\w:])([a-zA-Z_:][\w:]*)\b(?!\s*\()")
_WORDS = {
    "and",
    "or",
    "unless",
    "bool",
    "offset",
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
}
_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


def names_in(expression: str) -> set[str]:
    """Return the series that an expression reads; a histogram by its own name."""
    bare = _BRACES.sub("", _LABELS.sub(" ", _TEXT.sub("", expression)))
    found = set(_NAME.findall(bare)) - _WORDS
    return {_HISTOGRAM.sub("", name) if name.startswith("kueue_") else name for name in found}


def known(kueue: tuple[int, int] | None) -> set[str]:
    """Return the series that exist on a cluster with this Kueue."""
    found = KUBE_STATE | DCGM | CADVISOR
    if kueue is not None:
        found |= KUEUE | {name for name, since in KUEUE_SINCE.items() if kueue >= since}
    return found
