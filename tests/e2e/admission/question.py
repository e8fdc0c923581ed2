"""A run in a world, and its objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.e2e.admission.scene import Entry, Scene

Object = dict[str, Any]
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE, SLICE_SIZE = "kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size"


@dataclass(slots=True)
class Question:
    """Whether a run would be admitted, alone in its world, and where its pods would go."""

    scene: Scene
    entry: Entry
    name: str
    shape: str
    bodies: list[Object]
    edits: list[str] = field(default_factory=list)
    is_synced_whole: bool = True  # False: the runtime never reaches the cluster

    @property
    def train_job(self) -> Object:
        """The TrainJob."""
        return next(body for body in self.bodies if body["kind"] == "TrainJob")

    @property
    def runtime(self) -> Object:
        """The TrainingRuntime."""
        return next(body for body in self.bodies if body["kind"] == "TrainingRuntime")

    @property
    def judged(self) -> list[Object]:
        """What gangplan is asked about: the objects that reach the cluster."""
        return [body for body in self.bodies if self.is_synced_whole or body["kind"] != "TrainingRuntime"]

    def job(self, role: str) -> Object | None:
        """Return a replicated job of the runtime."""
        jobs = self.runtime["spec"]["template"]["spec"]["replicatedJobs"]
        return next((job for job in jobs if job["name"] == role), None)

    def pod(self, role: str = "node") -> Object:
        """Return the pod template of a role."""
        job = self.job(role)
        assert job is not None
        found: Object = job["template"]["spec"]["template"]
        return found

    @property
    def roles(self) -> list[str]:
        """The names of the replicated jobs."""
        return [job["name"] for job in self.runtime["spec"]["template"]["spec"]["replicatedJobs"]]

    def container(self, role: str = "node") -> Object:
        """Return the container that runs ranks or the launcher."""
        found: Object = self.pod(role)["spec"]["containers"][0]
        return found
