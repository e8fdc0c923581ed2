"""What a status means: one table per kind, from which health checks for Argo CD (Lua) and Flux (CEL) are
written.

The first row whose tests all hold decides. `tests/gitops/statuses/` holds statuses recorded from the real
controllers, with the word that the table, the Lua and the CEL must each give.

Sources: conditions of trainer v2.1.0 to v2.3.0 (pkg/apis/trainer/v1alpha1), jobset v0.10.1 to v0.12.0
(api/jobset), mpi-operator v0.8.2 (pkg/controller/mpi_job_controller_status.go), kueue v0.15.2 to v0.19.2
(apis/kueue/v1beta2, pkg/cache/scheduler/clusterqueue.go, pkg/controller/core/localqueue_controller.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.gitops.record import QUEUE, STATE, STOPPED
from gangplan.model import backend
from gangplan.objects import Body
from gangplan.records import dataclass

# Argo CD's words (gitops-engine, pkg/health) and Flux's (kstatus).
HEALTHY, PROGRESSING, DEGRADED, SUSPENDED = "Healthy", "Progressing", "Degraded", "Suspended"
CURRENT, IN_PROGRESS, FAILED = "current", "inProgress", "failed"


@dataclass(frozen=True, slots=True)
class Condition:
    """An entry of `status.conditions` with this type and status, and with one of these reasons if there are
    any."""

    type: str
    status: str = "True"
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field that has exactly this value; names in the path may contain dots and slashes."""

    path: tuple[str, ...]
    value: str | bool


@dataclass(frozen=True, slots=True)
class Present:
    """A field that exists and is not null."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """A spec that was changed since the object was created."""


Test = Condition | Field | Present | Changed


@dataclass(frozen=True, slots=True)
class Row:
    """A state: its word, what Argo CD and Flux call it, its tests, and the condition whose message gives
    details."""

    word: str
    argocd: str
    flux: str
    tests: tuple[Test, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind and its states. The last row has no tests: the controller has not reported anything yet."""

    group: str
    name: str
    version: str
    rows: tuple[Row, ...]


_JOBSET, _KUEUE = "jobset.x-k8s.io", "kueue.x-k8s.io"
_RECORD = Field(("metadata", "annotations", STATE), STOPPED)
_QUEUED = Present(("metadata", "labels", QUEUE))
_SUSPENDED = Condition("Suspended")
_NEW = Row("new", PROGRESSING, IN_PROGRESS)

TRAINJOB = Kind(
    backend.TRAINJOB.group,
    backend.TRAINJOB.kind,
    "v1alpha1",
    (
        Row("stopped", HEALTHY, CURRENT, (_RECORD,)),
        Row("failed", DEGRADED, FAILED, (Condition("Failed"),), "Failed"),
        Row("complete", HEALTHY, CURRENT, (Condition("Complete"),), "Complete"),
        # Kueue changes `suspend` when it starts a run and again when it preempts it.
        Row("preempted", PROGRESSING, IN_PROGRESS, (_SUSPENDED, _QUEUED, Changed())),
        Row("queued", PROGRESSING, IN_PROGRESS, (_SUSPENDED, _QUEUED)),
        Row("suspended", SUSPENDED, IN_PROGRESS, (_SUSPENDED,)),
        Row("running", PROGRESSING, IN_PROGRESS, (Condition("Suspended", "False"),)),
        Row("running", PROGRESSING, IN_PROGRESS, (Present(("status", "jobsStatus")),)),
        _NEW,
    ),
)
MPIJOB = Kind(
    backend.MPIJOB.group,
    backend.MPIJOB.kind,
    "v2beta1",
    (
        Row("stopped", HEALTHY, CURRENT, (_RECORD,)),
        Row("failed", DEGRADED, FAILED, (Condition("Failed"),), "Failed"),
        Row("complete", HEALTHY, CURRENT, (Condition("Succeeded"),), "Succeeded"),
        # `suspend` and what Kueue writes into the pods change as in a TrainJob.
        Row("preempted", PROGRESSING, IN_PROGRESS, (_SUSPENDED, _QUEUED, Present(("status", "startTime")))),
        Row("queued", PROGRESSING, IN_PROGRESS, (_SUSPENDED, _QUEUED)),
        Row("suspended", SUSPENDED, IN_PROGRESS, (_SUSPENDED,)),
        Row("running", PROGRESSING, IN_PROGRESS, (Condition("Running"),)),
        Row("running", PROGRESSING, IN_PROGRESS, (Condition("Suspended", "False"),)),
        _NEW,
    ),
)
JOBSET = Kind(
    _JOBSET,
    "JobSet",
    "v1alpha2",
    (
        Row("failed", DEGRADED, FAILED, (Condition("Failed"),), "Failed"),
        Row("complete", HEALTHY, CURRENT, (Condition("Completed"),), "Completed"),
        Row("suspended", SUSPENDED, IN_PROGRESS, (_SUSPENDED,)),
        Row("running", PROGRESSING, IN_PROGRESS, (Present(("status", "replicatedJobsStatus")),)),
        _NEW,
    ),
)
WORKLOAD = Kind(
    _KUEUE,
    "Workload",
    "v1beta2",
    (
        Row("complete", HEALTHY, CURRENT, (Condition("Finished", "True", ("Succeeded",)),), "Finished"),
        Row("failed", DEGRADED, FAILED, (Condition("Finished"),), "Finished"),
        Row("suspended", SUSPENDED, IN_PROGRESS, (Field(("spec", "active"), False),)),
        Row("running", PROGRESSING, IN_PROGRESS, (Condition("Admitted"),)),
        Row("preempted", PROGRESSING, IN_PROGRESS, (Condition("Preempted"),), "Preempted"),
        Row("evicted", PROGRESSING, IN_PROGRESS, (Condition("Evicted"),), "Evicted"),
        Row("queued", PROGRESSING, IN_PROGRESS, (Present(("status", "conditions")),), "QuotaReserved"),
        _NEW,
    ),
)
# These pass with time, or when something else is applied; every other reason is a mistake in the queue
# itself.
_WAITS = ("FlavorNotFound", "AdmissionCheckNotFound", "TopologyNotFound", "Terminating", "Unknown")
# Argo CD waits until an object that is not in the last wave is Healthy or Degraded: with `Suspended`, a
# stopped queue would keep every later change from the cluster (gitops-engine of 3.5.1, syncContext.Sync).
_HELD = Row("held", HEALTHY, CURRENT, (Condition("Active", "False", ("Stopped",)),), "Active")
CLUSTERQUEUE = Kind(
    _KUEUE,
    "ClusterQueue",
    "v1beta2",
    (
        Row("ready", HEALTHY, CURRENT, (Condition("Active"),)),
        _HELD,
        Row("waiting", PROGRESSING, IN_PROGRESS, (Condition("Active", "False", _WAITS),), "Active"),
        # A worker cluster cannot be reached: that must not keep Flux from applying what depends on the queue.
        Row(
            "inactive",
            DEGRADED,
            CURRENT,
            (Condition("Active", "False", ("AdmissionCheckInactive",)),),
            "Active",
        ),
        Row("inactive", DEGRADED, FAILED, (Condition("Active", "False"),), "Active"),
        _NEW,
    ),
)
LOCALQUEUE = Kind(
    _KUEUE,
    "LocalQueue",
    "v1beta2",
    (
        Row("ready", HEALTHY, CURRENT, (Condition("Active"),)),
        _HELD,
        Row("waiting", PROGRESSING, IN_PROGRESS, (Condition("Active", "False"),), "Active"),
        _NEW,
    ),
)
KINDS = (TRAINJOB, MPIJOB, JOBSET, WORKLOAD, CLUSTERQUEUE, LOCALQUEUE)


def state_of(kind: Kind, body: Body) -> Row:
    """Return the first row of a kind that holds for an object as the cluster has it."""
    return next(row for row in kind.rows if all(_holds(test, body) for test in row.tests))


def _holds(test: Test, body: Mapping[str, Any]) -> bool:
    if isinstance(test, Condition):
        return any(
            one["type"] == test.type
            and one["status"] == test.status
            and (not test.reasons or one.get("reason") in test.reasons)
            for one in _at(body, ("status", "conditions")) or ()
        )
    if isinstance(test, Field):
        return bool(_at(body, test.path) == test.value)
    if isinstance(test, Present):
        return _at(body, test.path) is not None
    return bool((_at(body, ("metadata", "generation")) or 1) > 1)


def _at(body: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = body
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
