"""Fields of a CronJob, and the way of its pods to the API server: where each comes from."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.containers import pulled
from gangplan.trace.context import RunContext, constant
from gangplan.trace.files import own
from gangplan.trace.metadata import annotation, label, namespace
from gangplan.trace.place import StandingPlace
from gangplan.trace.table import Table

TEMPLATE = "schedule/cronjob.yaml.j2"
# Words of the script before the schedules that are followed, without the patience.
_FIRST = 4
_FIELDS = {
    "concurrencyPolicy": "concurrency",
    "schedule": "cron",
    "startingDeadlineSeconds": "startingDeadline",
    "timeZone": "timeZone",
}


def _asked(run: RunContext, *path: str) -> Cause:
    """A field of the schedule, or what leads to the schedule of another job."""
    follows = run.job.schedule is not None and run.job.schedule.follows
    return run.spec("after") if follows else run.spec("schedule", *path)


def _named(run: RunContext, stars: Path) -> list[Cause]:
    return run.named()


def _runtime(run: RunContext, stars: Path) -> list[Cause]:
    return run.run_name()


def _when(run: RunContext, stars: Path) -> list[Cause]:
    field = _FIELDS.get(str(stars[0]))
    return [_asked(run, field), _asked(run).aside()] if field else constant(TEMPLATE)


def _suspended(run: RunContext, stars: Path) -> list[Cause]:
    return [run.spec("state"), _asked(run).aside()]


def _client(run: RunContext, stars: Path) -> list[Cause]:
    named = run.cluster("schedules", "client")
    return [named, *pulled(run, str(run.value("cluster", "schedules", "client")))]


def _user(run: RunContext, stars: Path) -> list[Cause]:
    field = "uid" if stars[0] == "runAsUser" else "gid"
    if not str(stars[0]).startswith("runAs") or stars[0] == "runAsNonRoot":
        return constant(TEMPLATE)
    name = str(run.value("cluster", "schedules", "client"))
    return [run.image("user", field, name=name), run.cluster("schedules", "client").aside()]


def _place(run: RunContext, stars: Path) -> list[Cause]:
    around = [*run.pool(run.job.launcher_pool.name), *asides(run.framework())]
    return [own("the pod that creates runs goes where launchers go"), *around]


def _grace(run: RunContext, stars: Path) -> list[Cause]:
    return run.chosen("gracePeriod")


def _word(run: RunContext, stars: Path) -> list[Cause]:
    if stars[0] == 1:
        return run.named()
    if isinstance(stars[0], int) and stars[0] > _FIRST:
        return [run.spec("after")]
    return constant(TEMPLATE)


def _openshift(run: RunContext, stars: Path) -> list[Cause]:
    return [own("OpenShift: images run as their own user"), run.cluster("versions", "openshift").aside()]


def _object(run: RunContext, stars: Path) -> list[Cause]:
    return [*constant(TEMPLATE, "every schedule"), _asked(run).aside()]


_POD = "spec jobTemplate spec template"
CRON_JOB = Table(
    ("metadata name", _named),
    ("metadata namespace", namespace),
    ("metadata labels *", label),
    ("metadata annotations *", annotation),
    ("spec suspend", _suspended),
    ("spec jobTemplate metadata labels *", label),
    (f"{_POD} metadata labels *", label),
    (f"{_POD} metadata annotations *", _openshift),
    (f"{_POD} spec terminationGracePeriodSeconds", _grace),
    (f"{_POD} spec securityContext *", _user),
    (f"{_POD} spec nodeSelector *", _place),
    (f"{_POD} spec tolerations **", _place),
    (f"{_POD} spec containers 0 image", _client),
    (f"{_POD} spec containers 0 args *", _word),
    (f"{_POD} spec volumes 0 configMap name", _runtime),
    ("spec jobTemplate **", _object),
    ("spec *", _when),
    ("**", _object),
)


def way_out(place: StandingPlace, stars: Path) -> list[Cause]:
    """The addresses of the API server."""
    listed = place.value("cluster", "schedules", "egress") or []
    found = [place.cluster("egress", name) for name in listed]
    return [*found, place.cluster("schedules", "egress").aside()]
