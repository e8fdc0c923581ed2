"""Causes of the fields of objects that create runs later: a CronJob, or a Job that waits for runs."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.trace.cause import Cause
from gangplan.trace.context import RunContext, trace_template_causes
from gangplan.trace.metadata import trace_annotation_causes, trace_label_causes
from gangplan.trace.others import trace_pull_causes
from gangplan.trace.place import ClusterObjectContext
from gangplan.trace.table import CauseRow, CauseTable

_SCHEDULE, _AFTER = "schedule/cronjob.yaml.j2", "pipeline/after.yaml.j2"
# The number of the script's words before the schedules or runs that it waits for.
_FIRST = 4
_FIELDS = {
    "concurrencyPolicy": "concurrency",
    "schedule": "cron",
    "startingDeadlineSeconds": "startingDeadline",
    "timeZone": "timeZone",
}


def _trace_schedule_cause(run: RunContext, *path: str) -> Cause:
    """Return a field of the schedule, or what leads to the schedule of another job."""
    follows = run.job.schedule is not None and run.job.schedule.follows
    return run.spec("after") if follows else run.spec("schedule", *path)


def _trace_schedule_field_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    field = _FIELDS.get(str(stars[0]))
    return (
        [_trace_schedule_cause(run, field), _trace_schedule_cause(run).aside()]
        if field
        else trace_template_causes(_SCHEDULE)
    )


def _trace_suspend_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    return [run.spec("state"), _trace_schedule_cause(run).aside()]


def _trace_kubectl_image_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    return [run.cluster("schedules", "client"), *trace_pull_causes(run, run.word("client"))]


def _trace_kubectl_argument_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    is_dated = run.body["kind"] == "CronJob"
    if stars[0] == 1:
        return run.named() if is_dated else run.run_name()
    if isinstance(stars[0], int) and stars[0] >= _FIRST + is_dated:
        return [run.spec("after")]
    return trace_template_causes(_SCHEDULE if is_dated else _AFTER)


def _trace_schedule_object_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    return [*trace_template_causes(_SCHEDULE, "every schedule"), _trace_schedule_cause(run).aside()]


_PLACE = "= the pod that creates {} goes where launchers go | job.launcher_pool | ~job.framework"
_USER = "catalog.images.{{client}}.user.{} | ~cluster.schedules.client"


def _build_rows_tracing_kubectl_pod(name: str, pod: str, what: str) -> tuple[CauseRow, ...]:
    """Return the rows of an object that creates a pod with kubectl."""
    return (
        ("metadata name", name),
        ("metadata namespace", "job.namespace"),
        ("metadata labels *", trace_label_causes),
        ("metadata annotations *", trace_annotation_causes),
        (f"{pod} metadata labels *", trace_label_causes),
        (
            f"{pod} metadata annotations *",
            "= OpenShift: images run as their own user | ~cluster.versions.openshift",
        ),
        (f"{pod} spec terminationGracePeriodSeconds", "job.gracePeriod"),
        (f"{pod} spec securityContext runAsUser", _USER.format("uid")),
        (f"{pod} spec securityContext runAsGroup", _USER.format("gid")),
        (f"{pod} spec nodeSelector *", _PLACE.format(what)),
        (f"{pod} spec tolerations **", _PLACE.format(what)),
        (f"{pod} spec containers 0 image", _trace_kubectl_image_causes),
        (f"{pod} spec containers 0 args *", _trace_kubectl_argument_causes),
    )


_POD = "spec jobTemplate spec template"
CRON_JOB_TABLE = CauseTable(
    *_build_rows_tracing_kubectl_pod("job.name", _POD, "runs"),
    ("spec suspend", _trace_suspend_causes),
    ("spec jobTemplate metadata labels *", trace_label_causes),
    (f"{_POD} spec securityContext *", lambda run, stars: trace_template_causes(_SCHEDULE)),
    (f"{_POD} spec volumes 0 configMap name", "job.run_name"),
    ("spec jobTemplate **", _trace_schedule_object_causes),
    ("spec *", _trace_schedule_field_causes),
    ("**", _trace_schedule_object_causes),
)
_NAME = "job.run_name | ~spec.after"
WAITING_JOB_TABLE = CauseTable(
    *_build_rows_tracing_kubectl_pod(_NAME, "spec template", "the run"),
    ("spec template spec securityContext *", lambda run, stars: trace_template_causes(_AFTER)),
    ("spec template spec volumes 0 configMap name", _NAME),
    (
        "**",
        f"= gangplan writes it for every run that comes after others (templates/{_AFTER}) | ~spec.after",
    ),
)


def trace_api_address_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of the API server's addresses."""
    listed = place.value("cluster", "schedules", "egress") or []
    found = [place.cluster("egress", name) for name in listed]
    return [*found, place.cluster("schedules", "egress").aside()]
