"""Models of Argo CD, Flux and Kueue, as far as they decide what happens to the objects of a run.

Each step names the function that it follows: Argo CD 3.5.1 with its gitops-engine, fluxcd/pkg `ssa` with
kustomize-controller 1.x, Kueue 0.19.2, and the webhooks of Trainer 2.3. The lab proves the model of Argo CD
(`tests/e2e/test_argocd.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Object = dict[str, Any]
Key = tuple[str, str, str]
ARGO, FLUX = "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/"
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
FIXED = ("runtimeRef", "trainer", "activeDeadlineSeconds", "managedBy")


class RefusedError(Exception):
    """A refusal of the API server; `is_immutable` as engines understand its message."""


def key_of(body: Object) -> Key:
    """Return kind, namespace and name."""
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def notes(body: Object) -> dict[str, str]:
    """Return the annotations."""
    return body["metadata"].get("annotations") or {}


def options(body: Object) -> set[str]:
    """Return Argo CD's sync options."""
    return {one.strip() for one in notes(body).get(f"{ARGO}sync-options", "").split(",")}


@dataclass
class Live:
    """An object in the cluster: as last applied, and what controllers made of it."""

    body: Object
    uid: int
    is_suspended: bool = False
    has_workload: bool = False
    restarts: int = 0

    @property
    def runs(self) -> bool:
        """Whether it has pods."""
        return self.body["kind"] == "TrainJob" and not self.is_suspended

    @property
    def queue(self) -> str:
        """The name of its queue, empty where Kueue does not manage it."""
        return str((self.body["metadata"].get("labels") or {}).get(QUEUE, ""))


@dataclass
class Cluster:
    """The API server, and Kueue where the cluster has it."""

    has_kueue: bool = True
    queues: frozenset[str] = frozenset({"training"})
    live: dict[Key, Live] = field(default_factory=dict)
    uids: Any = field(default_factory=count)

    def check(self, body: Object) -> None:
        """Do a dry run. Raises RefusedError as CRDs and webhooks do (trainjob_webhook.go, validation.go)."""
        old = self.live.get(key_of(body))
        if old is None or body["kind"] != "TrainJob":
            return
        for name in FIXED:
            default = "trainer.kubeflow.org/trainjob-controller" if name == "managedBy" else None
            if old.body["spec"].get(name, default) != body["spec"].get(name, default):
                raise RefusedError(f"spec.{name}: field is immutable")
        before, after = (one["metadata"].get("labels") or {} for one in (old.body, body))
        is_suspended = body["spec"].get("suspend", old.is_suspended)
        if self.has_kueue and before.get(QUEUE) != after.get(QUEUE) and not is_suspended:
            raise RefusedError("metadata.labels[queue-name]: field is immutable")
        if self.has_kueue and before.get(PRIORITY) and not after.get(PRIORITY):
            raise RefusedError("WorkloadPriorityClass cannot be removed from a workload")

    def ask(self, body: Object) -> None:
        """Dry-run new objects, too; Trainer refuses a run without its runtime. Raises RefusedError."""
        if body["kind"] == "TrainJob":
            home, name = body["metadata"].get("namespace", ""), body["spec"]["runtimeRef"]["name"]
            if ("TrainingRuntime", home, name) not in self.live:
                raise RefusedError(f"runtime '{name}' not found")
        self.check(body)

    def apply(self, body: Object) -> None:
        """Apply on the server side; controllers keep fields that it does not name. Raises RefusedError."""
        self.ask(body)
        key = key_of(body)
        old = self.live.get(key)
        if old is None:
            self.live[key] = Live(deepcopy(body), next(self.uids), self.has_kueue and bool(_queue(body)))
        else:
            old.body = deepcopy(body)
        if "suspend" in body.get("spec", {}):
            self.live[key].is_suspended = body["spec"]["suspend"]

    def delete(self, key: Key) -> None:
        """Delete an object and what it owns: Workload, JobSet, pods."""
        del self.live[key]

    def settle(self) -> None:
        """Let Kueue act until nothing changes any more (jobframework/reconciler.go, ReconcileGenericJob)."""
        for one in self.live.values() if self.has_kueue else ():
            if one.body["kind"] != "TrainJob" or not one.queue:
                continue  # "queue-name label is not set, ignoring the job"
            if one.is_suspended and (one.has_workload or one.queue in self.queues):
                one.restarts += one.has_workload  # step 7: admitted and still suspended, so it is started
                one.has_workload, one.is_suspended = True, False

    @property
    def held(self) -> set[str]:
        """The runs whose Workload holds quota."""
        return {key[2] for key, one in self.live.items() if one.has_workload}

    @property
    def running(self) -> set[str]:
        """The runs that have pods."""
        return {key[2] for key, one in self.live.items() if one.runs}

    def kinds(self, run: str) -> set[str]:
        """Return the kinds of the objects that a run has."""
        label = "gangplan.dev/run"
        return {key[0] for key, one in self.live.items() if one.body["metadata"]["labels"].get(label) == run}


def _queue(body: Object) -> str:
    return str((body["metadata"].get("labels") or {}).get(QUEUE, ""))


@dataclass
class ArgoCD:
    """The Argo CD application of the runs of a cluster."""

    cluster: Cluster
    application: Object
    tracked: set[Key] = field(default_factory=set)
    synced: str = ""
    status: str = "Unknown"

    def refresh(self, revision: str, bodies: Sequence[Object]) -> None:
        """Compare, and sync if a sync is due (appcontroller.go, autoSync)."""
        policy = self.application["spec"]["syncPolicy"]["automated"]
        targets = {key_of(body): body for body in bodies}
        found = self._compare(targets)
        if found is None:
            self.status = "Unknown"  # a ComparisonError: no sync is started
            return
        changed, extra, is_synced = found
        self.status = "Synced" if is_synced else "OutOfSync"
        if is_synced or (revision == self.synced and not policy["selfHeal"]):
            return
        if not policy["prune"] and not changed:
            return
        if policy["prune"] and not targets and not policy.get("allowEmpty"):
            return
        for key in sorted(changed, key=lambda key: int(notes(targets[key]).get(f"{ARGO}sync-wave", "0"))):
            self._put(targets[key])
        for key in extra:  # pruneObject reads the live object, not Git
            # An object whose pruning is to be confirmed waits for a person.
            guards = {"Prune=false", "Prune=confirm"} & options(self.cluster.live[key].body)
            if policy["prune"] and not guards:
                self.cluster.delete(key)
                self.tracked.discard(key)
        self.synced = revision
        self.cluster.settle()
        again = self._compare(targets)
        self.status = "Synced" if again is not None and again[2] else "OutOfSync"

    def _compare(self, targets: Mapping[Key, Object]) -> tuple[list[Key], list[Key], bool] | None:
        """Return what to apply, what is extraneous, and whether all is Synced (state.go, CompareAppState)."""
        changed, extra, is_synced = [], [], True
        for key, body in targets.items():
            if notes(body).get(f"{ARGO}hook") == "Skip":
                continue  # neither a status nor a task (sync_phase.go)
            live = self.cluster.live.get(key)
            try:
                self.cluster.check(body)  # ServerSideDiff: a refused dry run fails the whole comparison
            except RefusedError:
                return None
            if live is None or _seen(live.body) != _seen(body):
                changed.append(key)
                is_synced = False
        for key in sorted(self.tracked - targets.keys()):
            if key in self.cluster.live:
                extra.append(key)
                compare = notes(self.cluster.live[key].body).get(f"{ARGO}compare-options", "")
                is_synced &= "IgnoreExtraneous" in compare
        return changed, extra, is_synced

    def _put(self, body: Object) -> None:
        """Apply one object (sync_context.go, applyObject)."""
        key = key_of(body)
        both = options(body) | (options(self.cluster.live[key].body) if key in self.cluster.live else set())
        if {"Replace=true", "Force=true"} <= both and key in self.cluster.live:
            self.cluster.delete(key)
        self.cluster.apply(body)
        self.tracked.add(key)


def _seen(body: Object) -> str:
    """Return the compared text: `ignoreDifferences` of the application leaves out fields of controllers."""
    shown = deepcopy(body)
    for name in ("suspend", "managedBy"):
        shown.get("spec", {}).pop(name, None)
    return json.dumps(shown, sort_keys=True)


@dataclass
class Flux:
    """The Kustomizations of a cluster, each of which depends on the previous one."""

    cluster: Cluster
    kustomizations: Sequence[Object]
    inventories: dict[str, set[Key]] = field(default_factory=dict)
    error: str = ""

    def refresh(self, revision: str, bodies: Sequence[Object]) -> None:
        """Reconcile once: at a new revision, and at each interval."""
        self.error = ""
        for one in self.kustomizations:
            if not self.error:
                self._reconcile(one, bodies)

    def _reconcile(self, kustomization: Object, bodies: Sequence[Object]) -> None:
        patches = kustomization["spec"].get("patches", ())
        targets = [body for one in bodies if (body := _patched(patches, one)) is not None]
        try:
            ready = [body for body in targets if self._is_ready(body)]  # a dry run of all comes first
            for body in ready:
                self.cluster.apply(body)
        except RefusedError as refused:
            self.error = str(refused)  # nothing is pruned after a failed apply
            return
        keys = {key_of(body) for body in targets}
        inventory = self.inventories.get(kustomization["metadata"]["name"], set())
        for key in sorted(inventory - keys) if kustomization["spec"]["prune"] else ():
            # ssa.Delete reads the live object, not Git.
            if (
                key in self.cluster.live
                and notes(self.cluster.live[key].body).get(f"{FLUX}prune") != "disabled"
            ):
                self.cluster.delete(key)
        self.inventories[kustomization["metadata"]["name"]] = keys
        self.cluster.settle()

    def _is_ready(self, body: Object) -> bool:
        """Return whether to apply an object (the first half of ssa.ApplyAll). Raises RefusedError."""
        key, given = key_of(body), notes(body)
        policy = given.get(f"{FLUX}ssa", "")
        if policy == "Ignore" or (policy == "IfNotPresent" and key in self.cluster.live):
            return False
        try:
            self.cluster.ask(body)
        except RefusedError as refused:
            if given.get(f"{FLUX}force") != "enabled" or "immutable" not in str(refused):
                raise
            self.cluster.delete(key)
        return True


def _patched(patches: Sequence[Object], body: Object) -> Object | None:
    """Return an object after the patches of a Kustomization, or None where a patch deletes it.

    The patches are additions to objects chosen by kind and annotations, and deletions.
    """
    body = deepcopy(body)
    for patch in patches:
        target = patch["target"]
        if "labelSelector" in target:  # deletes what is neither of a run nor its launch scripts
            wanted = {term.removeprefix("!") for term in target["labelSelector"].split(",")}
            assert wanted & body["metadata"]["labels"].keys()
        elif "$patch: delete" in patch["patch"]:
            if re.fullmatch(target["kind"], body["kind"]):
                return None
        elif body["kind"] == target["kind"] and _selects(
            target["annotationSelector"].split(","), notes(body)
        ):
            for path, value in _additions(patch["patch"]):
                at: Any = body
                for step in path[:-1]:
                    at = at[step]
                at[path[-1]] = value
    return body


def _selects(terms: Iterable[str], annotations: Mapping[str, str]) -> bool:
    for term in terms:
        name, is_not, value = term.partition("!=")
        if not is_not:
            name, _, value = term.partition("=")
        if (annotations.get(name) == value) == bool(is_not):
            return False
    return True


def _additions(patch: str) -> Iterable[tuple[list[str], Any]]:
    from tests import plain

    for one in plain.load(patch):
        assert one["op"] == "add"
        yield [step.replace("~1", "/") for step in one["path"].split("/")[1:]], one["value"]
