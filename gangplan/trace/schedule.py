"""Causes of the fields of objects that create runs later: a CronJob, or a Job that waits for runs."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path
from gangplan.trace.context import RunContext, constant
from gangplan.trace.metadata import annotation, label
from gangplan.trace.others import pulled
from gangplan.trace.place import StandingPlace
from gangplan.trace.table import Row, Table

_SCHEDULE, _AFTER = "schedule/cronjob.yaml.j2", "pipeline/after.yaml.j2"
# The number of the script's words before the schedules or runs that it waits for.
_FIRST = 4
_FIELDS = {
    "concurrencyPolicy": "concurrency",
    "schedule": "cron",
    "startingDeadlineSeconds": "startingDeadline",
    "timeZone": "timeZone",
}


def _asked(run: RunContext, *path: str) -> Cause:
    """Return a field of the schedule, or what leads to the schedule of another job."""
    follows = run.job.schedule is not None and run.job.schedule.follows
    return run.spec("after") if follows else run.spec("schedule", *path)


def _when(run: RunContext, stars: Path) -> list[Cause]:
    field = _FIELDS.get(str(stars[0]))
    return [_asked(run, field), _asked(run).aside()] if field else constant(_SCHEDULE)


def _suspended(run: RunContext, stars: Path) -> list[Cause]:
    return [run.spec("state"), _asked(run).aside()]


def _client(run: RunContext, stars: Path) -> list[Cause]:
    return [run.cluster("schedules", "client"), *pulled(run, run.word("client"))]


def _word(run: RunContext, stars: Path) -> list[Cause]:
    is_dated = run.body["kind"] == "CronJob"
    if stars[0] == 1:
        return run.named() if is_dated else run.run_name()
    if isinstance(stars[0], int) and stars[0] >= _FIRST + is_dated:
        return [run.spec("after")]
    return constant(_SCHEDULE if is_dated else _AFTER)


def _object(run: RunContext, stars: Path) -> list[Cause]:
    return [*constant(_SCHEDULE, "every schedule"), _asked(run).aside()]


_PLACE = "= the pod that creates {} goes where launchers go | job.launcher_pool | ~job.framework"
_USER = "catalog.images.{{client}}.user.{} | ~cluster.schedules.client"


def _rows(name: str, pod: str, what: str) -> tuple[Row, ...]:
    """Return the rows of an object that creates a pod with kubectl."""
    return (
        ("metadata name", name),
        ("metadata namespace", "job.namespace"),
        ("metadata labels *", label),
        ("metadata annotations *", annotation),
        (f"{pod} metadata labels *", label),
        (
            f"{pod} metadata annotations *",
            "= OpenShift: images run as their own user | ~cluster.versions.openshift",
        ),
        (f"{pod} spec terminationGracePeriodSeconds", "job.gracePeriod"),
        (f"{pod} spec securityContext runAsUser", _USER.format("uid")),
        (f"{pod} spec securityContext runAsGroup", _USER.format("gid")),
        (f"{pod} spec nodeSelector *", _PLACE.format(what)),
        (f"{pod} spec tolerations **", _PLACE.format(what)),
        (f"{pod} spec containers 0 image", _client),
        (f"{pod} spec containers 0 args *", _word),
    )


_POD = "spec jobTemplate spec template"
CRON_JOB = Table(
    *_rows("job.name", _POD, "runs"),
    ("spec suspend", _suspended),
    ("spec jobTemplate metadata labels *", label),
    (f"{_POD} spec securityContext *", lambda run, stars: constant(_SCHEDULE)),
    (f"{_POD} spec volumes 0 configMap name", "job.run_name"),
    ("spec jobTemplate **", _object),
    ("spec *", _when),
    ("**", _object),
)
_NAME = "job.run_name | ~spec.after"
JOB = Table(
    *_rows(_NAME, "spec template", "the run"),
    ("spec template spec securityContext *", lambda run, stars: constant(_AFTER)),
    ("spec template spec volumes 0 configMap name", _NAME),
    (
        "**",
        f"= gangplan writes it for every run that comes after others (templates/{_AFTER}) | ~spec.after",
    ),
)


def way_out(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of the API server's addresses."""
    listed = place.value("cluster", "schedules", "egress") or []
    found = [place.cluster("egress", name) for name in listed]
    return [*found, place.cluster("schedules", "egress").aside()]
