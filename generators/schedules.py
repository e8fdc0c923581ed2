"""CronJob: starts the runs of a schedule from a template.

No engine tracks a run that it creates and no object owns one: neither a sync nor the end of the CronJob
removes it. What a run refers to (runtime, files and network policies) is rendered next to the CronJob.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.generators.beside import render_script_text
from gangplan.generators.common import (
    LABEL_PREFIX,
    TemplateRenderer,
    escape_kubelet_variable_references,
    generate_run_annotations,
    generate_run_labels,
    generate_tenant_annotations,
    generate_tenant_labels,
    render_to_objects,
)
from gangplan.generators.runtime import GRACE_MARGIN_S
from gangplan.model import syncing
from gangplan.model.backend import TRAINJOB
from gangplan.model.kinds import SYNC_WAVES
from gangplan.model.schedule import CHECK_PAUSE_S, CREATOR_CPU, CREATOR_MEMORY, SCHEDULER_ACCOUNT
from gangplan.model.site import Tenant
from gangplan.objects import Body, dump_object_as_block_yaml
from gangplan.plan import RunPlan
from gangplan.plan.names import DATED_SUFFIX, SCHEDULE_LABEL
from gangplan.source import load_objects

# Before the CronJob, whose pods mount it.
TEMPLATE_WAVE = SYNC_WAVES["runs", "CronJob"] - 1
TEMPLATE, KEY = "ConfigMap", "run.yaml"
# The exit code when a start is skipped.
SKIPPED = 75
# How long the pod may try; longer outages of the API server are left to those who monitor it. A pod that
# follows another schedule waits as long as runs of that schedule train; a run still missing then was skipped.
DEADLINE_S = 600
# The label and value of pods that create runs, for their network policy.
ROLE = f"{LABEL_PREFIX}role"
SCHEDULER = "scheduler"
# The least grace period that the policy graceful-end allows.
GRACE_S = 30


def generate_cron_job(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return the CronJob of a schedule, or nothing for an archived one: engines leave those alone."""
    job = unit.job
    schedule = job.schedule
    if schedule is None or not job.is_dated or job.is_archived:
        return []
    labels = {**dict(generate_run_labels(unit)), SCHEDULE_LABEL: job.name}
    # Its pods are not pods of the run: the run's policies and affinities must not select them.
    own = {
        key: value for key, value in labels.items() if key not in (f"{LABEL_PREFIX}run", f"{LABEL_PREFIX}job")
    }
    values = {
        "label": SCHEDULE_LABEL,
        "skipped": SKIPPED,
        "pause": CHECK_PAUSE_S,
        "follows": bool(schedule.follows),
    }
    script = render_script_text("launch/schedule.sh.j2", values)
    openshift = job.platform.openshift is not None
    return write(
        "schedule/cronjob.yaml.j2",
        {
            "job": job,
            "schedule": schedule,
            "policy": schedule.concurrency.capitalize(),
            "labels": tuple(sorted(labels.items())),
            "annotations": _remove_guard_annotations(generate_run_annotations(unit, "CronJob")),
            "pod_labels": tuple(sorted({**own, ROLE: SCHEDULER, "sidecar.istio.io/inject": "false"}.items())),
            "pod_annotations": (("openshift.io/required-scc", "nonroot-v2"),) if openshift else (),
            "account": SCHEDULER_ACCOUNT,
            "script": escape_kubelet_variable_references(script),
            "date": DATED_SUFFIX,
            "template": f"{unit.run_name}-template",
            "skipped": SKIPPED,
            "deadline_s": None if schedule.follows else DEADLINE_S,
            "followed": (str(schedule.starting_deadline_s + DEADLINE_S), *schedule.follows)
            if schedule.follows
            else (),
            "grace_s": max(GRACE_S, job.grace_s + GRACE_MARGIN_S),
            "cpu": CREATOR_CPU,
            "memory": CREATOR_MEMORY,
            "pool": job.launcher_pool,
        },
    )


def _remove_guard_annotations(annotations: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the annotations without those that protect the object: the schedule ends with its spec."""
    guards = syncing.build_run_sync_annotations()
    return tuple(pair for pair in annotations if pair[0] not in guards)


def wrap_scheduled_run(bodies: Sequence[Body]) -> list[Body]:
    """Return the objects of a schedule from those of a run: a ConfigMap with the TrainJob to create."""
    return [
        _generate_run_template_config_map(body) if body["kind"] == TRAINJOB.kind else body for body in bodies
    ]


def unwrap_scheduled_run(bodies: Sequence[Body]) -> list[Body]:
    """Return the objects of a run from those of its schedule, as read from a file. Raises ManifestError."""
    found = []
    for body in bodies:
        data = body.get("data")
        if body.get("kind") == TEMPLATE and isinstance(data, dict) and set(data) == {KEY}:
            found += load_objects(str(data[KEY]))
        elif body.get("kind") not in ("CronJob", "Job"):
            found.append(body)
    return found


def select_record_objects(bodies: Sequence[Body]) -> list[Body]:
    """Return the objects that the record of an ended run keeps.

    For a scheduled run that includes the template, with which the run's name can be checked.
    """
    kept = [body for body in bodies if body["kind"] not in ("CronJob", "Job")]
    is_dated = any(str(body["metadata"]["name"]).endswith(f"-{DATED_SUFFIX}") for body in kept)
    return wrap_scheduled_run(kept) if is_dated else kept


def _generate_run_template_config_map(run: Body) -> Body:
    metadata = run["metadata"]
    name = str(run["spec"]["runtimeRef"]["name"])
    # Protected like its runtime until it is a record: an engine removes what left Git before it applies the
    # CronJob that no longer mounts it, and never gets to that if something in between is refused.
    annotations = {**metadata["annotations"], **syncing.build_wave_annotations(TEMPLATE_WAVE)}
    own = {"name": f"{name}-template", "namespace": metadata["namespace"]}
    labels = {key: value for key, value in metadata["labels"].items() if not key.startswith("kueue.")}
    return {
        "apiVersion": "v1",
        "kind": TEMPLATE,
        "metadata": {**own, "labels": labels, "annotations": annotations},
        "data": {KEY: dump_object_as_block_yaml(run)},
    }


def generate_scheduler_account_and_access(tenant: Tenant) -> list[Body]:
    """Return a team's account that creates runs, its binding, and its pods' access to the API server."""
    values = {
        "tenant": tenant,
        "account": SCHEDULER_ACCOUNT,
        "labels": generate_tenant_labels(tenant),
        "annotations": generate_tenant_annotations(tenant, "ServiceAccount"),
        "egress": tenant.schedules,
    }
    return render_to_objects("tenant/scheduler.yaml.j2", values)
