"""The two sides, gangplan and the control plane: their verdicts on one object among those of its run."""

from __future__ import annotations

import copy
import json
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gangplan.plan.names import HASH_LENGTH
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.gate import find_object_problems
from gangplan.validate.problems import format_path
from tests import plain
from tests.e2e.fidelity.jobset import jobs_of, jobset_of, mpi_pods, pod_of
from tests.lab.client import Answer, ApiError, Client
from tests.lab.profiles import Profile

Object = dict[str, Any]
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
# Trainer and Kueue look for the runtime of a run in caches of their own.
UNSEEN = re.compile(r"must be created before the TrainJob|vtrainjob\.kb\.io.*runtime '.*' not found")
PATIENCE = 30.0
# Fields that would prevent an MPIJob's deletion or cause it, and mean nothing to the operator.
HOLDING = ("finalizers", "ownerReferences")
# Kueue, the operator and the garbage collector release an MPIJob one after another.
GONE = 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """One side's verdict. `stage` says when the control plane refused: at once, or later and at which
    object."""

    accepted: bool
    message: str = ""
    stage: str = ""
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "accepted" if self.accepted else f"refused{self.stage and f' ({self.stage})'}: {self.message}"


def versions_of(profile: Profile) -> SchemaVersions:
    """Return the minors of a profile."""
    minors = [
        text.rpartition(".")[0]
        for text in (profile.kubernetes, profile.trainer, profile.kueue, profile.jobset)
    ]
    mpi = profile.mpi_operator.rpartition(".")[0] or None
    return SchemaVersions(minors[0], minors[1], minors[2], minors[3], mpi)


def gangplan_says(bodies: Sequence[Object], versions: SchemaVersions) -> Verdict:
    """Return whether `gangplan validate` would pass these objects."""
    for problems in find_object_problems(bodies, versions):
        if problems:
            said = [
                f"{format_path(problem.path)}: {problem.message} [{problem.rule}]" for problem in problems
            ]
            return Verdict(False, "; ".join(said))
    return Verdict(True)


@dataclass(slots=True)
class ControlPlane:
    """Asks a running lab. It leaves only namespaces and, while a run is asked about, that run's valid
    runtime."""

    client: Client
    versions: SchemaVersions
    _seen: set[str] = field(default_factory=set)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def says(self, bodies: Sequence[Object], index: int) -> Verdict:
        """Return whether object `index` of `bodies` is accepted, now and when pods are created from it."""
        body = bodies[index]
        if body.get("kind") == "TrainingRuntime" and _train_job(bodies):
            return self._runtime(*self._renamed(bodies), index)
        if body.get("kind") == "TrainJob" and self._has(bodies, "TrainingRuntime"):
            return self._run(bodies, index)
        if body.get("kind") == "MPIJob":
            return self._mpi_job(body)
        return self._at_once(body, "")

    def prepare(self, bodies: Sequence[Object]) -> None:
        """Create the namespaces of the objects, without any policy of their own."""
        for body in bodies:
            name = body["metadata"].get("namespace")
            if name and name not in self._seen:
                self._seen.add(name)
                if self.client.find("Namespace", name) is None:
                    self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                # The account that pods get; a controller creates it.
                self.client.wait("ServiceAccount", "default", name, until=lambda _: True)

    @staticmethod
    def _has(bodies: Sequence[Object], kind: str) -> bool:
        return any(body.get("kind") == kind for body in bodies)

    # --- one object ------------------------------------------------------------------------------------

    def _at_once(self, body: Object, stage: str, *, create: bool = False) -> Verdict:
        try:
            answer = self._send(body, create=create)
        except ApiError as error:
            if error.is_passing("PATCH"):  # no answer: a webhook is unavailable
                raise
            return Verdict(False, error.message, stage)
        except (LookupError, TypeError, ValueError) as error:
            return Verdict(False, f"no such kind: {error}", stage)
        return Verdict(True, warnings=answer.warnings)

    def _send(self, body: Object, *, create: bool = False, dry_run: bool = True) -> Answer:
        """Send by server-side apply, as GitOps engines do, or by POST if there is no name for a path."""
        metadata = body.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name, namespace = metadata.get("name"), metadata.get("namespace")
        plain = isinstance(name, str) and NAME.fullmatch(name) and (namespace is None or _plain(namespace))
        resource = self.client.resource(f"{body['apiVersion']}/{body['kind']}")
        if plain and not create and (not resource.namespaced or namespace):
            return self.client.apply(body, dry_run=dry_run)
        query = {
            "fieldValidation": "Strict",
            "fieldManager": "gangplan",
            **({"dryRun": "All"} if dry_run else {}),
        }
        path = resource.path(namespace if _plain(namespace) else "default")
        return self.client.request("POST", path, body, query=query)

    # --- a runtime -------------------------------------------------------------------------------------

    def _renamed(self, bodies: Sequence[Object]) -> tuple[list[Object], str]:
        """Return the same run under an unused name: what was applied once cannot be applied with changes."""
        train_job = _train_job(bodies)
        assert train_job is not None
        name = train_job["spec"]["runtimeRef"]["name"]
        with self._lock:
            self._count += 1
            fresh = f"{name[:-HASH_LENGTH]}{self._count:0{HASH_LENGTH}d}"
        return json.loads(json.dumps(list(bodies)).replace(name, fresh)), fresh

    def _runtime(self, bodies: list[Object], name: str, index: int) -> Verdict:
        runtime = bodies[index]
        train_job = _train_job(bodies)
        assert train_job is not None
        first = self._at_once(runtime, "")
        if not first.accepted:
            return first
        later = self._later(train_job, runtime)
        if not later.accepted:
            return later
        return self._with_runtime(runtime, train_job, first.warnings + later.warnings)

    def _with_runtime(self, runtime: Object, train_job: Object, warnings: tuple[str, ...]) -> Verdict:
        """Return whether Trainer accepts the run once this runtime really exists."""
        self._send(runtime, dry_run=False)
        metadata = runtime["metadata"]
        try:
            is_named = metadata["name"] == train_job["spec"]["runtimeRef"]["name"]
            verdict = self._patiently(train_job, "late: TrainJob", PATIENCE if is_named else 0.0)
        finally:
            self.client.delete("TrainingRuntime", metadata["name"], metadata.get("namespace", "default"))
        return verdict if not verdict.accepted else Verdict(True, warnings=warnings + verdict.warnings)

    def _patiently(self, body: Object, stage: str, patience: float) -> Verdict:
        deadline = time.monotonic() + patience
        while True:
            verdict = self._at_once(body, stage)
            if verdict.accepted or not UNSEEN.search(verdict.message) or time.monotonic() > deadline:
                return verdict
            time.sleep(0.005)

    # --- a run -----------------------------------------------------------------------------------------

    def _run(self, bodies: Sequence[Object], index: int) -> Verdict:
        runtime = next(body for body in bodies if body["kind"] == "TrainingRuntime")
        name = runtime["metadata"]["name"]
        wanted = bodies[index].get("spec")
        reference = wanted.get("runtimeRef") if isinstance(wanted, dict) else None
        is_named = isinstance(reference, dict) and reference.get("name") == name
        if name not in self._seen:
            self._seen.add(name)
            self._send(runtime, dry_run=False)
        first = self._patiently(bodies[index], "", PATIENCE if is_named else 0.0)
        if not first.accepted:
            return first
        later = self._later(bodies[index], runtime)
        return later if not later.accepted else Verdict(True, warnings=first.warnings + later.warnings)

    def forget(self, bodies: Sequence[Object]) -> None:
        """Delete the runtime of a run."""
        for body in bodies:
            if body["kind"] == "TrainingRuntime" and body["metadata"]["name"] in self._seen:
                self.client.delete("TrainingRuntime", body["metadata"]["name"], body["metadata"]["namespace"])
                self._seen.discard(body["metadata"]["name"])

    # --- an MPIJob -------------------------------------------------------------------------------------

    def _mpi_job(self, body: Object) -> Verdict:
        """Return whether the server accepts an MPIJob, the operator's answer, and whether its pods are
        accepted."""
        first = self._at_once(body, "")
        metadata = body.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not first.accepted or not isinstance(metadata, dict) or not _plain(name):
            return first
        warnings = first.warnings
        for pod in mpi_pods(self._send(body).object):  # as the operator reads it: 1000.0 is stored as 1000
            try:
                warnings += self.client.create(pod, dry_run=True).warnings
            except ApiError as error:
                return Verdict(False, error.message, "late: Pod")
        said = self._operator(body, str(name), str(metadata.get("namespace") or "default"))
        return Verdict(False, said, "late: the operator") if said else Verdict(True, warnings=warnings)

    def _operator(self, body: Object, name: str, namespace: str) -> str:
        """Return why the operator rejects an MPIJob, by its event, or '' if it accepts it; Kueue keeps it
        suspended."""
        policy = body["spec"].get("runPolicy") or {}
        if policy.get("managedBy") not in (None, "kubeflow.org/mpi-operator"):
            return ""  # not managed by the operator
        kept = {key: one for key, one in body["metadata"].items() if key not in HOLDING}
        self._send({**body, "metadata": kept}, dry_run=False)
        deadline, said = time.monotonic() + PATIENCE, ""
        try:
            while time.monotonic() < deadline:
                said = self._refusal(name, namespace)
                status = self.client.get("MPIJob", name, namespace).get("status") or {}
                if said or status.get("conditions"):
                    break
                time.sleep(0.02)
        finally:
            self.client.delete("MPIJob", name, namespace)
            self.client.wait_gone("MPIJob", name, namespace, timeout=GONE)
            for event in self._events(name, namespace):
                self.client.delete("Event", event["metadata"]["name"], namespace)
        return said

    def _refusal(self, name: str, namespace: str) -> str:
        found = self._events(name, namespace)
        return next((str(one["message"]) for one in found if one["reason"] == "ValidationError"), "")

    def _events(self, name: str, namespace: str) -> list[Object]:
        return [
            one for one in self.client.list("Event", namespace) if one["involvedObject"].get("name") == name
        ]

    # --- what controllers will make --------------------------------------------------------------------

    def _later(self, train_job: Object, runtime: Object) -> Verdict:
        """Dry-run the creation of the JobSet that Trainer creates, its Jobs, and their pods."""
        jobset = jobset_of(copy.deepcopy(train_job), copy.deepcopy(runtime), self.versions)
        try:
            made = self.client.create(jobset, dry_run=True)
        except ApiError as error:
            return Verdict(False, error.message, "late: JobSet")
        warnings = made.warnings
        for job in jobs_of(made.object):
            try:
                answer = self.client.create(job, dry_run=True)
            except ApiError as error:
                return Verdict(False, error.message, "late: Job")
            warnings += answer.warnings
            pod = pod_of(answer.object)
            if pod is None:
                continue
            try:
                warnings += self.client.create(pod, dry_run=True).warnings
            except ApiError as error:
                return Verdict(False, error.message, "late: Pod")
        return Verdict(True, warnings=warnings)


def _train_job(bodies: Sequence[Object]) -> Object | None:
    """Return the TrainJob among some objects, or the one that a schedule creates from the text of a
    ConfigMap."""
    for body in bodies:
        if body["kind"] == "TrainJob":
            return body
    texts = (
        body["data"].get("run.yaml") for body in bodies if body["kind"] == "ConfigMap" and "data" in body
    )
    return next((plain.load(text) for text in texts if text), None)


def _plain(name: Any) -> bool:
    return isinstance(name, str) and bool(NAME.fullmatch(name))
