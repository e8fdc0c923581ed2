"""A busy cluster: every exporter has series, so that every panel must show something."""

from __future__ import annotations

from collections.abc import Sequence

from tests.observability.stories import NS, READY, RUN, RUNNING, Series, Story, failed_run, job, pod, series

FLAVOR = 'cohort="training",cluster_queue="team-cv-queue",flavor="a100",resource="nvidia.com/gpu"'
QUEUE = 'cluster_queue="team-cv-queue"'
LAST = 30


def devices() -> Series:
    """Return the series of GPUs, containers and interfaces of two workers."""
    out: Series = {}
    for worker in (0, 1):
        where = f'namespace="{NS}",pod="{RUN}-node-0-{worker}-abcde"'
        for gpu in (0, 1):
            card = f'gpu="{gpu}",UUID="GPU-{worker}{gpu}",Hostname="n{worker}",{where}'
            for name in ("GPU_UTIL", "FB_USED", "FB_FREE", "POWER_USAGE", "GPU_TEMP"):
                out |= series(f"DCGM_FI_DEV_{name}", card, "50+1x60")
        for name in ("container_cpu_usage_seconds_total", "container_memory_working_set_bytes"):
            out |= series(name, f'{where},container="node"', "100+60x60")
        for way in ("receive", "transmit"):
            out |= series(f"container_network_{way}_bytes_total", f'{where},interface="eth0"', "0+1000x60")
        out |= series("kube_pod_info", f'{where},node="n{worker}"', "1x60")
        out |= series("kube_pod_status_phase", f'{where},phase="Running"', "1x60")
        out |= series("kube_pod_container_resource_requests", f'{where},resource="nvidia_com_gpu"', "2x60")
    return out


def kueue() -> Series:
    """Return the series of a queue with something in every series."""
    out: Series = {}
    for name in ("nominal_quota", "resource_reservation"):
        out |= series(f"kueue_cluster_queue_{name}", FLAVOR, "32x60")
    out |= series("kueue_cluster_queue_resource_pending", f'{QUEUE},resource="nvidia.com/gpu"', "8x60")
    out |= series("kueue_cluster_queue_status", f'{QUEUE},status="active"', "0x60")
    out |= series("kueue_cluster_queue_weighted_share", f'{QUEUE},cohort="training"', "10x60")
    out |= series("kueue_pending_workloads", f'{QUEUE},status="active"', "3x60")
    for name in ("reserving", "admitted"):
        out |= series(f"kueue_{name}_active_workloads", QUEUE, "2x60")
    priority = f'{QUEUE},priority_class="training-normal"'
    out |= series("kueue_admitted_workloads_total", priority, "0+1x60")
    out |= series("kueue_evicted_workloads_total", f'{priority},reason="Preempted"', "0+1x60")
    preempted = 'preempting_cluster_queue="team-cv-queue",reason="InCohortReclamation"'
    out |= series("kueue_preempted_workloads_total", preempted, "0+1x60")
    for bound in ("60", "+Inf"):
        out |= series("kueue_admission_wait_time_seconds_bucket", f'{priority},le="{bound}"', "0+1x60")
    for part in ("sum", "count"):
        out |= series(f"kueue_admission_wait_time_seconds_{part}", priority, "0+1x60")
    return out


def cluster() -> Series:
    """Return all series."""
    timed = {**RUNNING, "kube_job_spec_active_deadline_seconds": "6000x60"}
    queued = {"kube_job_created": "0x60", "kube_job_status_active": "0x60"}
    runs = job("node", 2, timed) | pod("node", 0, READY) | pod("node", 1, READY)
    return (
        runs
        | job("node", 2, queued, "queued-00000001")
        | job("node", 2, RUNNING, "starting-00000003")
        | failed_run("failed-00000002", 10)
        | devices()
        | kueue()
    )


def panels(expressions: Sequence[str]) -> Story:
    """Return a story in which each expression can be evaluated and yields something: no join is many-to-many
    or empty."""
    return {
        "name": "every panel shows something",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in cluster().items()],
        "promql_expr_test": [
            {
                "expr": f"count({expr}) > bool 0",
                "eval_time": f"{LAST}m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
            for expr in expressions
        ],
    }
