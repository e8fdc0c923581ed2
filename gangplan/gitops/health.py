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

from gangplan.gitops.record import KUEUE_QUEUE_LABEL, STATE_ANNOTATION, STOPPED_STATE
from gangplan.model import backend
from gangplan.objects import Body
from gangplan.records import dataclass

# Argo CD's words (gitops-engine, pkg/health) and Flux's (kstatus).
HEALTHY, PROGRESSING, DEGRADED, SUSPENDED = "Healthy", "Progressing", "Degraded", "Suspended"
KSTATUS_CURRENT, IN_PROGRESS, KSTATUS_FAILED = "current", "inProgress", "failed"


@dataclass(frozen=True, slots=True)
class ConditionTest:
    """An entry of `status.conditions` with this type and status, and with one of these reasons if there are
    any."""

    type: str
    status: str = "True"
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A field that has exactly this value; names in the path may contain dots and slashes."""

    path: tuple[str, ...]
    value: str | bool


@dataclass(frozen=True, slots=True)
class PresenceTest:
    """A field that exists and is not null."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """A spec that was changed since the object was created."""


HealthTest = ConditionTest | FieldTest | PresenceTest | Changed


@dataclass(frozen=True, slots=True)
class HealthState:
    """A state: its word, what Argo CD and Flux call it, its tests, and the condition whose message gives
    details."""

    word: str
    argocd: str
    flux: str
    tests: tuple[HealthTest, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HealthKind:
    """A kind and its states. The last row has no tests: the controller has not reported anything yet."""

    group: str
    name: str
    version: str
    rows: tuple[HealthState, ...]


_JOBSET, _KUEUE = "jobset.x-k8s.io", "kueue.x-k8s.io"
_RECORD = FieldTest(("metadata", "annotations", STATE_ANNOTATION), STOPPED_STATE)
_QUEUED = PresenceTest(("metadata", "labels", KUEUE_QUEUE_LABEL))
_SUSPENDED = ConditionTest("Suspended")
_NEW = HealthState("new", PROGRESSING, IN_PROGRESS)

TRAINJOB_HEALTH = HealthKind(
    backend.TRAINJOB.group,
    backend.TRAINJOB.kind,
    "v1alpha1",
    (
        HealthState("stopped", HEALTHY, KSTATUS_CURRENT, (_RECORD,)),
        HealthState("failed", DEGRADED, KSTATUS_FAILED, (ConditionTest("Failed"),), "Failed"),
        HealthState("complete", HEALTHY, KSTATUS_CURRENT, (ConditionTest("Complete"),), "Complete"),
        # Kueue changes `suspend` when it starts a run and again when it preempts it.
        HealthState("preempted", PROGRESSING, IN_PROGRESS, (_SUSPENDED, _QUEUED, Changed())),
        HealthState("queued", PROGRESSING, IN_PROGRESS, (_SUSPENDED, _QUEUED)),
        HealthState("suspended", SUSPENDED, IN_PROGRESS, (_SUSPENDED,)),
        HealthState("running", PROGRESSING, IN_PROGRESS, (ConditionTest("Suspended", "False"),)),
        HealthState("running", PROGRESSING, IN_PROGRESS, (PresenceTest(("status", "jobsStatus")),)),
        _NEW,
    ),
)
MPIJOB_HEALTH = HealthKind(
    backend.MPIJOB.group,
    backend.MPIJOB.kind,
    "v2beta1",
    (
        HealthState("stopped", HEALTHY, KSTATUS_CURRENT, (_RECORD,)),
        HealthState("failed", DEGRADED, KSTATUS_FAILED, (ConditionTest("Failed"),), "Failed"),
        HealthState("complete", HEALTHY, KSTATUS_CURRENT, (ConditionTest("Succeeded"),), "Succeeded"),
        # `suspend` and what Kueue writes into the pods change as in a TrainJob.
        HealthState(
            "preempted",
            PROGRESSING,
            IN_PROGRESS,
            (_SUSPENDED, _QUEUED, PresenceTest(("status", "startTime"))),
        ),
        HealthState("queued", PROGRESSING, IN_PROGRESS, (_SUSPENDED, _QUEUED)),
        HealthState("suspended", SUSPENDED, IN_PROGRESS, (_SUSPENDED,)),
        HealthState("running", PROGRESSING, IN_PROGRESS, (ConditionTest("Running"),)),
        HealthState("running", PROGRESSING, IN_PROGRESS, (ConditionTest("Suspended", "False"),)),
        _NEW,
    ),
)
JOBSET = HealthKind(
    _JOBSET,
    "JobSet",
    "v1alpha2",
    (
        HealthState("failed", DEGRADED, KSTATUS_FAILED, (ConditionTest("Failed"),), "Failed"),
        HealthState("complete", HEALTHY, KSTATUS_CURRENT, (ConditionTest("Completed"),), "Completed"),
        HealthState("suspended", SUSPENDED, IN_PROGRESS, (_SUSPENDED,)),
        HealthState("running", PROGRESSING, IN_PROGRESS, (PresenceTest(("status", "replicatedJobsStatus")),)),
        _NEW,
    ),
)
WORKLOAD = HealthKind(
    _KUEUE,
    "Workload",
    "v1beta2",
    (
        HealthState(
            "complete",
            HEALTHY,
            KSTATUS_CURRENT,
            (ConditionTest("Finished", "True", ("Succeeded",)),),
            "Finished",
        ),
        HealthState("failed", DEGRADED, KSTATUS_FAILED, (ConditionTest("Finished"),), "Finished"),
        HealthState("suspended", SUSPENDED, IN_PROGRESS, (FieldTest(("spec", "active"), False),)),
        HealthState("running", PROGRESSING, IN_PROGRESS, (ConditionTest("Admitted"),)),
        HealthState("preempted", PROGRESSING, IN_PROGRESS, (ConditionTest("Preempted"),), "Preempted"),
        HealthState("evicted", PROGRESSING, IN_PROGRESS, (ConditionTest("Evicted"),), "Evicted"),
        HealthState(
            "queued", PROGRESSING, IN_PROGRESS, (PresenceTest(("status", "conditions")),), "QuotaReserved"
        ),
        _NEW,
    ),
)
# These pass with time, or when something else is applied; every other reason is a mistake in the queue
# itself.
_WAITS = ("FlavorNotFound", "AdmissionCheckNotFound", "TopologyNotFound", "Terminating", "Unknown")
# Argo CD waits until an object that is not in the last wave is Healthy or Degraded: with `Suspended`, a
# stopped queue would keep every later change from the cluster (gitops-engine of 3.5.1, syncContext.Sync).
_HELD = HealthState(
    "held", HEALTHY, KSTATUS_CURRENT, (ConditionTest("Active", "False", ("Stopped",)),), "Active"
)
CLUSTERQUEUE_HEALTH = HealthKind(
    _KUEUE,
    "ClusterQueue",
    "v1beta2",
    (
        HealthState("ready", HEALTHY, KSTATUS_CURRENT, (ConditionTest("Active"),)),
        _HELD,
        HealthState(
            "waiting", PROGRESSING, IN_PROGRESS, (ConditionTest("Active", "False", _WAITS),), "Active"
        ),
        # A worker cluster cannot be reached, or its kubeconfig is not there yet: as with a held queue, that
        # must not keep an engine from applying what comes later.
        HealthState(
            "check inactive",
            HEALTHY,
            KSTATUS_CURRENT,
            (ConditionTest("Active", "False", ("AdmissionCheckInactive",)),),
            "Active",
        ),
        HealthState("inactive", DEGRADED, KSTATUS_FAILED, (ConditionTest("Active", "False"),), "Active"),
        _NEW,
    ),
)
LOCALQUEUE_HEALTH = HealthKind(
    _KUEUE,
    "LocalQueue",
    "v1beta2",
    (
        HealthState("ready", HEALTHY, KSTATUS_CURRENT, (ConditionTest("Active"),)),
        _HELD,
        HealthState("waiting", PROGRESSING, IN_PROGRESS, (ConditionTest("Active", "False"),), "Active"),
        _NEW,
    ),
)
HEALTH_KINDS = (TRAINJOB_HEALTH, MPIJOB_HEALTH, JOBSET, WORKLOAD, CLUSTERQUEUE_HEALTH, LOCALQUEUE_HEALTH)


def find_health_state(kind: HealthKind, body: Body) -> HealthState:
    """Return the first row of a kind that holds for an object as the cluster has it."""
    return next(
        row for row in kind.rows if all(_matches_gitops_health_test(test, body) for test in row.tests)
    )


def _matches_gitops_health_test(test: HealthTest, body: Mapping[str, Any]) -> bool:
    if isinstance(test, ConditionTest):
        return any(
            one["type"] == test.type
            and one["status"] == test.status
            and (not test.reasons or one.get("reason") in test.reasons)
            for one in _get_gitops_health_test_field(body, ("status", "conditions")) or ()
        )
    if isinstance(test, FieldTest):
        return bool(_get_gitops_health_test_field(body, test.path) == test.value)
    if isinstance(test, PresenceTest):
        return _get_gitops_health_test_field(body, test.path) is not None
    return bool((_get_gitops_health_test_field(body, ("metadata", "generation")) or 1) > 1)


def _get_gitops_health_test_field(body: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = body
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
