"""Fields of a Job that creates a run after others: where each comes from."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.containers import pulled
from gangplan.trace.context import RunContext, constant
from gangplan.trace.files import own
from gangplan.trace.metadata import annotation, label, namespace
from gangplan.trace.table import Table

TEMPLATE = "pipeline/after.yaml.j2"
# Words of the script before the names of the runs that are waited for.
_FIRST = 4


def _name(run: RunContext, stars: Path) -> list[Cause]:
    return [*run.run_name(), run.spec("after").aside()]


def _client(run: RunContext, stars: Path) -> list[Cause]:
    named = run.cluster("schedules", "client")
    return [named, *pulled(run, str(run.value("cluster", "schedules", "client")))]


def _user(run: RunContext, stars: Path) -> list[Cause]:
    if stars[0] not in ("runAsUser", "runAsGroup"):
        return constant(TEMPLATE)
    name = str(run.value("cluster", "schedules", "client"))
    field = "uid" if stars[0] == "runAsUser" else "gid"
    return [run.image("user", field, name=name), run.cluster("schedules", "client").aside()]


def _place(run: RunContext, stars: Path) -> list[Cause]:
    around = [*run.pool(run.job.launcher_pool.name), *asides(run.framework())]
    return [own("the pod that creates the run goes where launchers go"), *around]


def _grace(run: RunContext, stars: Path) -> list[Cause]:
    return run.chosen("gracePeriod")


def _word(run: RunContext, stars: Path) -> list[Cause]:
    if stars[0] == 1:
        return run.run_name()
    if isinstance(stars[0], int) and stars[0] >= _FIRST:
        return [run.spec("after")]
    return constant(TEMPLATE)


def _openshift(run: RunContext, stars: Path) -> list[Cause]:
    return [own("OpenShift: images run as their own user"), run.cluster("versions", "openshift").aside()]


def _object(run: RunContext, stars: Path) -> list[Cause]:
    return [*constant(TEMPLATE, "every run that comes after others"), run.spec("after").aside()]


_POD = "spec template"
JOB = Table(
    ("metadata name", _name),
    ("metadata namespace", namespace),
    ("metadata labels *", label),
    ("metadata annotations *", annotation),
    (f"{_POD} metadata labels *", label),
    (f"{_POD} metadata annotations *", _openshift),
    (f"{_POD} spec terminationGracePeriodSeconds", _grace),
    (f"{_POD} spec securityContext *", _user),
    (f"{_POD} spec nodeSelector *", _place),
    (f"{_POD} spec tolerations **", _place),
    (f"{_POD} spec containers 0 image", _client),
    (f"{_POD} spec containers 0 args *", _word),
    (f"{_POD} spec volumes 0 configMap name", _name),
    ("**", _object),
)
