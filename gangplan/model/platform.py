"""The facts of one cluster: what is installed there, and in which versions."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gangplan.model.backend import BACKENDS, Backend
from gangplan.model.crds import NO_CRDS, CrdFiles
from gangplan.model.quantity import Quantity
from gangplan.model.support import KueueLine, TrainerLine, look_up_kueue_line, look_up_trainer_line
from gangplan.model.syncing import SYNC_ENGINES
from gangplan.model.trial import TrialPods
from gangplan.model.version import NOT_INSTALLED, ToolVersion
from gangplan.records import dataclass

GangScheduler = Literal["kueue", "volcano", "coscheduling", "none"]


@dataclass(frozen=True, slots=True)
class DnsService:
    """The DNS pods of a cluster, as NetworkPolicy selects them; `addresses` answer on port 53 without
    pods."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    ports: tuple[int, ...]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Platform:
    """The facts of one cluster that decide what objects contain.

    `gang` is what starts all pods of a run together; `kueue` is None unless that is Kueue. `start_wait_s` is
    how long a run may take until all its pods are ready, in seconds. With `hands_on`, runs go to worker
    clusters. `runtime_classes` are the RuntimeClasses that exist; None if the cluster file does not say.
    """

    cluster: str
    environment: str
    region: str
    kubernetes: ToolVersion
    trainer: ToolVersion  # NOT_INSTALLED, like jobset, if all runs are MPIJobs
    jobset: ToolVersion
    kueue: ToolVersion | None
    openshift: ToolVersion | None
    domain: str
    dns: DnsService
    gang: GangScheduler = "kueue"
    mpi_operator: ToolVersion | None = None
    start_wait_s: int = 1800
    hands_on: bool = False
    runtime_classes: tuple[str, ...] | None = None
    currency: str = "USD"
    crds: CrdFiles = NO_CRDS
    engines: tuple[str, ...] = tuple(SYNC_ENGINES)

    @property
    def trainer_line(self) -> TrainerLine:
        """The behaviour of this line of Trainer."""
        return look_up_trainer_line(self.trainer.line)

    @property
    def kueue_line(self) -> KueueLine | None:
        """The behaviour of this line of Kueue; None without Kueue."""
        return look_up_kueue_line(self.kueue.line) if self.kueue else None

    @property
    def has_trainer(self) -> bool:
        """Whether Kubeflow Trainer is installed, and JobSet with it."""
        return self.trainer != NOT_INSTALLED

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The backends that are installed on the cluster."""
        there = {"trainer": self.has_trainer, "mpiOperator": self.mpi_operator is not None}
        return tuple(made for made in BACKENDS.values() if there[made.stated])

    @property
    def has_pod_group(self) -> bool:
        """Whether Trainer creates a PodGroup, which a separate scheduler starts as a unit."""
        return self.gang in ("volcano", "coscheduling")


@dataclass(slots=True)
class ClusterMemo:
    """What is derived from a cluster's file, cached after the first use.

    `most` is what each team can have at most: team -> pool -> resource -> amount. `sweeps` are the marks of
    the sweeps, by file, for which `trials` has the pods of their trials, each shape once.
    """

    most: dict[str, dict[str, dict[str, Quantity]]] | None = None
    sweeps: dict[str, str] = field(default_factory=dict)
    trials: dict[str, list[TrialPods]] = field(default_factory=dict)
