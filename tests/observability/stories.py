"""Events on a cluster, as the series of its exporters, and what must be recorded and alerted then.

Minutes are the steps; time starts at zero. A value such as `1x30` is one from minute 0 to 30, `_x5` is
nothing for five minutes (promtool's notation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Story = dict[str, Any]
Series = dict[str, str]

NS = "ns-team-cv"
RUN = "resnet-1a2b3c4d"
WHO = f'namespace="{NS}",run="{RUN}",team="team-cv"'
NAMED = f'namespace="{NS}",job_name="{RUN}",team="team-cv"'
ALERT = 'ALERTS{alertname="%s",alertstate="firing",severity="%s",%s}'


def series(name: str, labels: str, values: str) -> Series:
    """Return one series."""
    return {f"{name}{{{labels}}}": values}


def job(role: str, pods: int, at: Mapping[str, str], run: str = RUN, ns: str = NS) -> Series:
    """Return a Job of a run as kube-state-metrics sees it; `at` has the values that are not fixed."""
    name = f'namespace="{ns}",job_name="{run}-{role}-0"'
    out = series(
        "kube_job_owner",
        f'{name},owner_kind="JobSet",owner_name="{run}",owner_is_controller="true"',
        at.get("exists", "1x3000"),
    )
    out |= series(
        "kube_job_spec_parallelism", name, at.get("exists", f"{pods}x3000").replace("1x", f"{pods}x")
    )
    conditions = {"kube_job_failed": ',condition="true"', "kube_job_complete": ',condition="true"'}
    for metric, values in at.items():
        if metric != "exists":
            out |= series(metric, name + conditions.get(metric, ""), values)
    return out


def pod(role: str, index: int, at: Mapping[str, str], suffix: str = "abcde", run: str = RUN) -> Series:
    """Return a pod of a Job; `at` has the values of its series."""
    name = f'namespace="{NS}",pod="{run}-{role}-0-{index}-{suffix}"'
    owner = f'{name},owner_kind="Job",owner_name="{run}-{role}-0",owner_is_controller="true"'
    out = series("kube_pod_owner", owner, at.get("exists", "1x3000"))
    more = {
        "kube_pod_status_ready": ',condition="true"',
        "kube_pod_status_phase": ',phase="Succeeded"',
        "kube_pod_container_status_waiting_reason": ',container="node",reason="ImagePullBackOff"',
        "kube_pod_init_container_status_waiting_reason": ',container="fetch",reason="ErrImagePull"',
    }
    for metric, values in at.items():
        if metric != "exists":
            out |= series(metric, name + more.get(metric, ""), values)
    return out


def story(name: str, inputs: Series, *expectations: tuple[int, str, dict[str, float]]) -> Story:
    """Return inputs, and the series that an expression yields at a minute (none: `{}`)."""
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in inputs.items()],
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in wanted.items()],
            }
            for minute, expr, wanted in expectations
        ],
    }


def firing(alert: str, severity: str, labels: str) -> dict[str, float]:
    """Return the one alert that fires."""
    return {ALERT % (alert, severity, labels): 1}


def alert(name: str) -> str:
    """Return an expression for the firing alerts of one name."""
    return f'ALERTS{{alertname="{name}",alertstate="firing"}}'


def failed_run(run: str, minute: int, ns: str = NS) -> Series:
    """Return a run that exists from the start and fails at a minute."""
    at = {
        "kube_job_created": "0x3000",
        "kube_job_status_start_time": "0x3000",
        "kube_job_status_active": f"2x{minute - 1} 0x3000",
        "kube_job_failed": f"_x{minute} 1x3000",
    }
    return job("node", 2, at, run, ns)


RUNNING = {
    "kube_job_created": "0x3000",
    "kube_job_status_start_time": "60x3000",
    "kube_job_status_active": "2x3000",
}
READY = {"kube_pod_status_ready": "1x3000"}


def failures() -> list[Story]:
    """Return stories of failed runs: of each, and of many."""
    two = failed_run("a-00000001", 10) | failed_run("b-00000002", 12)
    three = two | failed_run("c-00000003", 14)
    one = 'namespace="ns-team-cv",run="a-00000001",team="team-cv"'
    foreign = failed_run("x-00000009", 10, "kube-system")
    retried = job("node", 2, {**RUNNING, "kube_job_failed": "_x10 1 stale"})
    old = job("node", 2, {**RUNNING, "kube_job_status_active": "0x3000", "kube_job_failed": "1x3000"})
    return [
        story(
            "a failed run alerts within five minutes and no longer than an hour",
            failed_run("a-00000001", 10),
            (9, alert("GangplanRunFailed"), {}),
            (15, alert("GangplanRunFailed"), firing("GangplanRunFailed", "warning", one)),
            (60, alert("GangplanRunFailed"), firing("GangplanRunFailed", "warning", one)),
            (75, alert("GangplanRunFailed"), {}),
            (15, "mpijob_count{state='failed'}", {count("failed"): 1, count("failed", "nlp"): 0}),
        ),
        story(
            "two failures in an hour are not yet many", two, (20, alert("GangplanRunsFailingRepeatedly"), {})
        ),
        story(
            "three failures in an hour are",
            three,
            (
                20,
                alert("GangplanRunsFailingRepeatedly"),
                firing("GangplanRunsFailingRepeatedly", "critical", 'namespace="ns-team-cv",team="team-cv"'),
            ),
            (90, alert("GangplanRunsFailingRepeatedly"), {}),
        ),
        story(
            "the third failure comes an hour after the first",
            two | failed_run("c-00000003", 73),
            (76, alert("GangplanRunsFailingRepeatedly"), {}),
        ),
        story("namespaces of nobody's are not ours", foreign, (20, "gangplan_run_failed", {})),
        story(
            "an attempt that is repeated is not a failed run", retried, (30, alert("GangplanRunFailed"), {})
        ),
        story(
            "a run that failed before anyone looked is old news", old, (70, alert("GangplanRunFailed"), {})
        ),
    ]


def count(state: str, team: str = "cv") -> str:
    """Return the series of mpijob_count."""
    return f'mpijob_count{{namespace="ns-team-{team}",state="{state}",team="team-{team}"}}'


def states() -> list[Story]:
    """Return stories of a run from the queue to its end, and its duration."""
    node = {
        "kube_job_created": "0x3000",
        "kube_job_status_start_time": "_x10 600x3000",
        "kube_job_status_active": "0x9 2x3000",
        "exists": "1x3000",
    }
    launcher = {
        "exists": "_x15 1x3000",
        "kube_job_created": "_x15 900x3000",
        "kube_job_status_start_time": "_x15 900x3000",
        "kube_job_status_active": "_x15 1x14 0x3000",
        "kube_job_complete": "_x30 1x3000",
        "kube_job_status_completion_time": "_x30 1800x3000",
    }
    workers = [
        pod("node", i, {"exists": "_x10 1x3000", "kube_pod_status_ready": "_x10 0x4 1x3000"}) for i in (0, 1)
    ]
    last = pod("launcher", 0, {"exists": "_x15 1x3000", "kube_pod_status_ready": "_x15 1x14 0x3000"})
    inputs = job("node", 2, node) | job("launcher", 1, launcher) | workers[0] | workers[1] | last
    said = "mpijob_count{team='team-cv'} == 1"
    return [
        story(
            "a run is pending, starting, running, succeeded",
            inputs,
            (8, said, {count("pending"): 1}),
            (13, said, {count("starting"): 1}),
            (20, said, {count("running"): 1}),
            (20, "mpijob_duration_seconds", {f"mpijob_duration_seconds{{{NAMED}}}": 600}),
            (33, said, {count("succeeded"): 1}),
            (40, "mpijob_duration_seconds", {f"mpijob_duration_seconds{{{NAMED}}}": 1200}),
            (
                20,
                "count by (worker_id) (gangplan_run_pod)",
                {'{worker_id="0"}': 1, '{worker_id="1"}': 1, '{worker_id="launcher"}': 1},
            ),
        ),
        story(
            "the duration of a failed run ends with its last pod",
            failed_run(RUN, 10) | pod("node", 0, {"kube_pod_completion_time": "_x10 570x3000"}),
            (30, "mpijob_duration_seconds", {f"mpijob_duration_seconds{{{NAMED}}}": 570}),
        ),
    ]


def waiting() -> list[Story]:
    """Return stories of runs that do not start."""
    there = series("kueue_pending_workloads", 'cluster_queue="team-cv-queue",status="active"', "1x3000")
    queued = {"kube_job_created": "0x3000", "kube_job_status_active": "0x3000"}
    started = {**RUNNING, "kube_job_status_active": "0x25 2x3000"}
    half = (
        job("node", 2, RUNNING) | pod("node", 0, READY) | pod("node", 1, {"kube_pod_status_ready": "0x3000"})
    )
    whole = job("node", 2, RUNNING) | pod("node", 0, READY) | pod("node", 1, READY)
    ending = (
        job("node", 2, RUNNING) | pod("node", 0, READY) | pod("node", 1, {"kube_pod_status_phase": "1x3000"})
    )
    return [
        story(
            "a run that waits longer than half an hour",
            job("node", 2, queued) | there,
            (29, alert("GangplanRunPendingTooLong"), {}),
            (31, alert("GangplanRunPendingTooLong"), firing("GangplanRunPendingTooLong", "warning", WHO)),
        ),
        story(
            "the record of a stopped run: suspended, and in no queue",
            job("node", 2, queued)
            | series("kueue_pending_workloads", 'cluster_queue="team-cv-queue",status="active"', "0x3000"),
            (60, alert("GangplanRunPendingTooLong"), {}),
        ),
        story(
            "a run that starts in time", job("node", 2, started), (40, alert("GangplanRunPendingTooLong"), {})
        ),
        story(
            "admitted, and one pod is not ready",
            half,
            (14, alert("GangplanRunNotReady"), {}),
            (17, alert("GangplanRunNotReady"), firing("GangplanRunNotReady", "warning", WHO)),
        ),
        story(
            "admitted, and there is no pod at all",
            job("node", 2, RUNNING),
            (17, alert("GangplanRunNotReady"), firing("GangplanRunNotReady", "warning", WHO)),
        ),
        story("all pods ready", whole, (30, alert("GangplanRunNotReady"), {})),
        story("one worker is done before the other", ending, (30, alert("GangplanRunNotReady"), {})),
    ]


def objects() -> list[Story]:
    """Return stories of the objects that a namespace may have."""
    name, quota = "GangplanObjectsNearlyFull", 'namespace="ns-team-cv",resourcequota="training"'

    def counted(used: str, hard: str, resource: str = "count/trainjobs.trainer.kubeflow.org") -> Series:
        found: Series = {}
        for kind, values in (("used", used), ("hard", hard)):
            found |= series("kube_resourcequota", f'{quota},resource="{resource}",type="{kind}"', values)
        return found

    labels = f'{quota},resource="count/trainjobs.trainer.kubeflow.org",team="team-cv"'
    return [
        story(
            "one run below and one run at ninety percent",
            counted("449x10 450x3000", "500x3000"),
            (10, alert(name), {}),
            (17, alert(name), firing(name, "warning", labels)),
        ),
        story(
            "pods and amounts are not objects that stay",
            counted("10x60", "10x60", "pods"),
            (30, alert(name), {}),
        ),
        story("a count of none of none", counted("0x60", "0x60"), (30, alert(name), {})),
    ]


def images() -> list[Story]:
    """Return stories of images that cannot be pulled."""
    name = "GangplanImagePullFailing"
    labels = f'namespace="{NS}",pod="{RUN}-node-0-0-abcde",run="{RUN}",team="team-cv"'
    jobs = job("node", 2, RUNNING)
    return [
        story(
            f"{series_name} while it lasts",
            jobs | pod("node", 0, {series_name: "1x6 stale"}),
            (1, alert(name), {}),
            (4, alert(name), firing(name, "warning", labels)),
            (20, alert(name), {}),
        )
        for series_name in (
            "kube_pod_container_status_waiting_reason",
            "kube_pod_init_container_status_waiting_reason",
        )
    ]


def deadlines(grace_s: int) -> list[Story]:
    """Return stories of eighty percent of a deadline of 100 minutes, and of its end, at which Trainer deletes
    the JobSet."""
    timed = {**RUNNING, "exists": "1x3000", "kube_job_spec_active_deadline_seconds": f"{6000 + grace_s}x3000"}
    slow = job("node", 2, timed)
    ended = job(
        "node", 2, {metric: values.replace("x3000", "x100 stale") for metric, values in timed.items()}
    )
    by_hand = job(
        "node", 2, {metric: values.replace("x3000", "x50 stale") for metric, values in timed.items()}
    )
    done = {"kube_job_status_active": "2x99 0x3000", "kube_job_complete": "_x100 1x3000"}
    success = job("node", 2, {**timed, **done})
    near, failed = "GangplanRunDeadlineNear", "GangplanRunFailed"
    return [
        story(
            "eighty percent of the deadline",
            slow,
            (80, alert(near), {}),
            (84, alert(near), firing(near, "warning", WHO)),
            (51, "gangplan_run_deadline_ratio", {f"gangplan_run_deadline_ratio{{{WHO}}}": 0.5}),
        ),
        story("a run without a deadline", job("node", 2, RUNNING), (110, alert(near), {})),
        story(
            "the deadline ends the run",
            ended,
            (99, alert(failed), {}),
            (105, alert(failed), firing(failed, "warning", WHO)),
            (105, alert(near), {}),
        ),
        story("a run that somebody removes", by_hand, (60, alert(failed), {}), (105, alert(failed), {})),
        story("a run that succeeds just in time", success, (105, alert(failed), {})),
    ]


def queues() -> list[Story]:
    """Return stories of Kueue's queues: stuck, moving, inactive, active."""
    cq = 'cluster_queue="team-cv-queue",namespace="kueue-system"'
    who = 'cluster_queue="team-cv-queue",namespace="ns-team-cv",team="team-cv"'
    pending = series("kueue_pending_workloads", f'{cq},status="active",replica_role="leader"', "2x3000")
    pending |= series(
        "kueue_pending_workloads", f'{cq},status="inadmissible",replica_role="leader"', "1x3000"
    )
    # A second replica reports the same values: they must not count twice.
    pending |= series("kueue_pending_workloads", f'{cq},status="active",replica_role="follower"', "2x3000")
    admitted = f'{cq},priority_class="training-normal"'
    still = series("kueue_admitted_workloads_total", admitted, "7x3000")
    moving = series("kueue_admitted_workloads_total", admitted, "0+1x3000")
    inactive = series("kueue_cluster_queue_status", f'{cq},status="active"', "1x10 0x3000")
    inactive |= series("kueue_cluster_queue_status", f'{cq},status="pending"', "0x10 1x3000")
    stuck, idle = "GangplanQueueStuck", "GangplanClusterQueueInactive"
    return [
        story(
            "waiting runs and none admitted",
            pending | still,
            (29, alert(stuck), {}),
            (36, alert(stuck), firing(stuck, "warning", who)),
            (36, "gangplan_queue_pending", {f"gangplan_queue_pending{{{who}}}": 3}),
        ),
        story("a busy queue that moves", pending | moving, (60, alert(stuck), {})),
        story(
            "a queue that is not active",
            inactive,
            (14, alert(idle), {}),
            (17, alert(idle), firing(idle, "critical", who)),
        ),
        story(
            "an active queue",
            series("kueue_cluster_queue_status", f'{cq},status="active"', "1x60"),
            (30, alert(idle), {}),
        ),
    ]


def quota(used: str, resource: str = "nvidia.com/gpu", nominal: str = "32") -> Series:
    """Return the quota of a team and its use."""
    flavor = f'cohort="training",cluster_queue="team-cv-queue",flavor="a100",resource="{resource}"'
    return series("kueue_cluster_queue_nominal_quota", flavor, f"{nominal}x60") | series(
        "kueue_cluster_queue_resource_reservation", flavor, f"{used}x60"
    )


def quotas() -> list[Story]:
    """Return stories of ninety percent of a quota."""
    name = "GangplanQuotaNearlyUsed"
    labels = 'flavor="a100",namespace="ns-team-cv",resource="%s",team="team-cv"'
    gpu, memory = labels % "nvidia.com/gpu", labels % "memory"
    return [
        story("28 of 32 GPUs", quota("28"), (30, alert(name), {})),
        story(
            "29 of 32 GPUs",
            quota("29"),
            (4, alert(name), {}),
            (6, alert(name), firing(name, "warning", gpu)),
            (6, "gangplan_team_quota_ratio", {f"gangplan_team_quota_ratio{{{gpu}}}": 0.90625}),
        ),
        story(
            "a team that only borrows has no limit to near", quota("8", nominal="0"), (30, alert(name), {})
        ),
        story(
            "memory",
            quota("4000000000000", "memory", "4398046511104"),
            (30, alert(name), firing(name, "warning", memory)),
        ),
    ]


def texts() -> list[Story]:
    """Return stories of the texts that people read."""
    who = {"team": "team-cv", "namespace": NS, "flavor": "a100", "resource": "nvidia.com/gpu"}
    said = {
        "summary": "team-cv approaching quota limit (30/32 GPUs used)",
        "description": "Team team-cv holds nearly all, or more than all with borrowing, of its nvidia.com/gpu"
        " in flavor a100.",
        "runbook": "Further runs borrow from the cohort or wait. Shift runs to another flavor, or raise the"
        " quota in the cluster's teams.",
    }
    full = story("the text of a quota", quota("30"))
    full["alert_rule_test"] = [
        {
            "alertname": "GangplanQuotaNearlyUsed",
            "eval_time": "30m",
            "exp_alerts": [{"exp_labels": {"severity": "warning", **who}, "exp_annotations": said}],
        }
    ]
    ends = f"Run {RUN} in namespace {NS} will be ended at its deadline, in 10m 0s."
    timed = {**RUNNING, "kube_job_spec_active_deadline_seconds": "6060x3000"}
    late = story("the text of a deadline", job("node", 2, timed))
    late["alert_rule_test"] = [
        {
            "alertname": "GangplanRunDeadlineNear",
            "eval_time": "91m",
            "exp_alerts": [
                {
                    "exp_labels": {"severity": "warning", "team": "team-cv", "namespace": NS, "run": RUN},
                    "exp_annotations": {
                        "summary": f"Run {RUN} of team-cv has used 90% of its time",
                        "description": ends,
                        "runbook": "See that a checkpoint is written before the deadline. A deadline cannot"
                        " be moved once the run has started; a longer timeout in the spec makes a new run.",
                    },
                }
            ],
        }
    ]
    return [full, late]


def devices() -> list[Story]:
    """Return stories of GPUs, for both ways to scrape their exporter."""
    where = f'pod="{RUN}-node-0-1-abcde"'
    card = 'gpu="3",UUID="GPU-1",Hostname="n1",modelName="A100"'
    honoured = series("DCGM_FI_DEV_GPU_UTIL", f'{card},namespace="{NS}",{where}', "87x60")
    exported = f'{card},namespace="gpu-operator",pod="dcgm-x",exported_namespace="{NS}",exported_{where}'
    jobs = job("node", 2, RUNNING) | pod("node", 1, READY)
    wanted = {f'mpijob_gpu_utilization{{{NAMED},worker_id="1",gpu_id="3"}}': 87.0}
    idle = series("DCGM_FI_DEV_GPU_UTIL", f'{card},namespace="gpu-operator",pod="dcgm-x"', "0x60")
    return [
        story("honorLabels", jobs | honoured, (5, "mpijob_gpu_utilization", wanted)),
        story(
            "exported labels",
            jobs | series("DCGM_FI_DEV_GPU_UTIL", exported, "87x60"),
            (5, "mpijob_gpu_utilization", wanted),
        ),
        story("a GPU of nobody's", jobs | idle, (5, "mpijob_gpu_utilization", {})),
    ]


def restarts() -> list[Story]:
    """Return the story of a worker whose pod is replaced twice."""
    first = pod("node", 0, {"exists": "1x30 stale"}, "aaaaa")
    second = pod("node", 0, {"exists": "_x35 1x30 stale"}, "bbbbb")
    third = pod("node", 0, {"exists": "_x70 1x3000"}, "ccccc")
    inputs = job("node", 2, RUNNING) | first | second | third | pod("node", 1, READY)
    wanted = {
        f'mpijob_worker_restarts{{{NAMED},worker_id="{worker}"}}': times
        for worker, times in (("0", 2.0), ("1", 0.0))
    }
    return [story("restarts", inputs, (100, "mpijob_worker_restarts", wanted))]


def everything() -> dict[str, list[Story]]:
    """Return all stories of a cluster with Kueue and a current Trainer, by name."""
    tellers = (failures, states, waiting, objects, images, queues, quotas, texts, devices, restarts)
    return {teller.__name__: teller() for teller in tellers} | {"deadlines": deadlines(60)}


def missing(*absent: tuple[str, str]) -> list[Story]:
    """Return stories of exporters without series."""
    name = "GangplanSeriesMissing"
    nothing = series("up", 'job="x"', "1x60")
    wanted = {ALERT % (name, "info", f'exporter="{exporter}",team="platform"'): 1.0 for exporter, _ in absent}
    present: Series = {}
    for _, metric in absent:
        present |= series(metric, 'instance="x"', "1x60")
    return [
        story(
            "no exporter at all",
            nothing,
            (14, alert(name), {}),
            (
                20,
                f"max by (exporter, team, severity, alertname, alertstate, __name__) ({alert(name)})",
                wanted,
            ),
        ),
        story("every exporter", present, (20, alert(name), {})),
    ]
