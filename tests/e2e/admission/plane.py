"""The real side: scenes set up in a lab, runs submitted to them, and what Kueue and the scheduler did."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gangplan.validate.world import HOSTNAME_LABEL, NodeGroup
from tests.e2e.admission.question import Question
from tests.e2e.admission.recording import Seen
from tests.e2e.admission.scene import Scene
from tests.e2e.admission.watcher import EVERY, PATIENCE, Watcher
from tests.lab.client import ApiError, Client, TooLateError, condition
from tests.lab.lab import Lab

Object = dict[str, Any]
#: Trainer looks for the runtime of a run in its own cache.
UNSEEN = re.compile(r"must be created before the TrainJob|vtrainjob\.kb\.io.*runtime '.*' not found")
#: Kueue does too: its complaint about an existing runtime passes.
UNREAD = re.compile(r"runtime '.*' not found")
#: Seconds: until a refusal no longer counts as Trainer's cache being late; how long a final state must last;
#: how long a Workload may still appear after a complaint; how long Kueue may decide, or pods may take to be
#: created.
CACHE, SETTLED, NO_WORKLOAD, SLOW = 15.0, 1.0, 2.0, 30.0
#: After so many changes, Kueue will go on changing its message: it retries the head of a strict queue
#: endlessly.
TURNS = 12
#: Reasons that are not final (Kueue 0.19 with UnadmittedWorkloadsObservability).
PASSING = ("PendingEvaluation", "WaitingForPreemptedWorkloads", "WaitingForPodsReady")
#: The kinds in a scene, in the order in which they are deleted.
KINDS = (
    *("LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "AdmissionCheck"),
    *("WorkloadPriorityClass", "RuntimeClass", "Namespace"),
)


def node_descriptions(groups: Sequence[NodeGroup]) -> list[Object]:
    """Return node groups as nodes of the lab; no two groups share a domain."""
    return [_node(group, index) for group in groups for index in range(group.count)]


def _node(group: NodeGroup, index: int) -> Object:
    labels = dict(group.labels)
    for level, nodes in group.domains:
        if level != HOSTNAME_LABEL:
            labels[level] = f"{group.name}-{level.rpartition('/')[2]}-{index // nodes}"
    allocatable = {
        resource: str(int(amount)) if amount.denominator == 1 else f"{int(amount * 1000)}m"
        for resource, amount in group.free.items()
    }
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in group.taints]
    return {"name": f"{group.name}-{index}", "labels": labels, "taints": taints, "allocatable": allocatable}


def _first(scene: Scene, body: Object) -> Object:
    """Return an object as it is first created.

    A cycle of cohorts is closed only once the queues exist. A queue created under a cycle makes Kueue
    (v0.15.2 to v0.19.2) crash at the next change of any namespace: its namespace selector is never read
    (cache/scheduler/clusterqueue.go updateClusterQueue returns early; cache.go MatchingClusterQueues).
    """
    if scene.mistake == "circle" and scene.cohorts and body is scene.cohorts[0]:
        return {**body, "spec": {key: value for key, value in body["spec"].items() if key != "parentName"}}
    return body


#: The label with a pod's role, and the prefix of the roles of unnamed steps.
ROLE, STEP = "gangplan.dev/role", "step-"


@dataclass(slots=True)
class Plane:
    """A lab in which scenes are set up."""

    lab: Lab
    watcher: Watcher
    patience: float = 1.0  # the factor by which settling takes longer

    @property
    def client(self) -> Client:
        """The administrator's client."""
        return self.lab.client

    # --- scenes ----------------------------------------------------------------------------------------

    def build(self, scene: Scene) -> None:
        """Create nodes and objects, and return once every queue has reported whether it is active."""
        self.lab.add_nodes(node_descriptions(scene.groups))
        for body in scene.standing:
            self.client.apply_patiently(_first(scene, body))
        for body in scene.standing:
            if _first(scene, body) is not body:
                self.client.apply_patiently(body)
        for body in (*scene.queues, *scene.locals):
            metadata = body["metadata"]
            self.client.wait(
                body["kind"],
                metadata["name"],
                metadata.get("namespace"),
                until=lambda item: condition(item, "Active"),
                timeout=PATIENCE,
            )
        time.sleep(SETTLED)  # Kueue updates the queues of a tree one after another

    def raze(self, scene: Scene) -> None:
        """Delete everything of a scene; objects with finalizers go in their own time."""
        for kind in KINDS:
            for body in scene.standing:
                if body["kind"] == kind:
                    metadata = body["metadata"]
                    self.client.delete(kind, metadata["name"], metadata.get("namespace"))
        for group in scene.groups:
            for index in range(group.count):
                self.client.delete("Node", f"{group.name}-{index}")

    # --- runs ------------------------------------------------------------------------------------------

    def ask(self, question: Question) -> Seen:
        """Submit a run, observe the outcome, and delete it; the world is idle before and after."""
        try:
            refusal = self.submit(question)
            if refusal:
                return Seen("refused", "", refusal)
            return self._decided(question)
        finally:
            self.remove(question)

    def submit(self, question: Question) -> str:
        """Apply the objects of a run; return the server's message if it refuses one for good."""
        self.watcher.forget(question.name)
        for body in question.judged:
            deadline = time.monotonic() + CACHE
            while True:
                try:
                    self.client.apply(body)
                    break
                except ApiError as error:
                    if error.status >= 500:  # no answer: a webhook is unavailable
                        raise
                    if not UNSEEN.search(error.message) or time.monotonic() > deadline:
                        return f"{body['kind']}: {error.message}"
                    time.sleep(0.05)
        return ""

    def remove(self, question: Question) -> None:
        """Delete a run and wait until its Workload and pods are gone."""
        namespace = question.entry.namespace
        for body in reversed(question.bodies):
            self.client.delete(body["kind"], question.name, namespace)
        time.sleep(2 * EVERY)  # a Workload may just be being created
        watcher = self.watcher
        self._until(
            lambda: (
                not watcher.workload(namespace, question.name) and not watcher.pods(namespace, question.name)
            ),
            f"{question.name} does not go",
        )

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise TooLateError(what)
            time.sleep(EVERY / 2)

    def _decided(self, question: Question) -> Seen:
        """Wait for Kueue's final state: one that no longer changes, or states that alternate."""
        began = since = time.monotonic()
        words: list[tuple[str, str]] = [("", "")]
        while True:
            workload = self.watcher.workload(question.entry.namespace, question.name)
            complaint = self.watcher.complaint(question.name)
            if workload is None and time.monotonic() - began > self._awaited(question, complaint):
                if complaint or self.patience > 1:  # Kueue 0.15 reports a missing priority only in its log
                    return Seen("silent", "", complaint)
                raise TooLateError(f"{question.name}: neither Workload nor complaint")
            if workload is not None:
                if condition(workload, "Admitted") == "True":
                    return self._placed(question, workload)
                if (now := reserved(workload)) != words[-1]:
                    since = time.monotonic()
                    words.append(now)
                reason, message = now
                unwritten = not reason and self.watcher.is_unwritten(workload["metadata"]["name"])
                is_final = unwritten or (bool(reason) and reason not in PASSING)
                if time.monotonic() - since > (self.patience * SETTLED if is_final else SLOW):
                    return Seen("pending", reason, message)
                if len(words) > TURNS:
                    return Seen("pending", reason, message, turns=tuple(dict.fromkeys(words[1:])))
            time.sleep(EVERY / 2)

    def _awaited(self, question: Question, complaint: str) -> float:
        """Return how many seconds a Workload may take to appear, with and without a complaint from Kueue."""
        if not complaint:
            return PATIENCE
        is_late = question.is_synced_whole and UNREAD.search(complaint)
        return self.patience * (SLOW if is_late else NO_WORKLOAD)

    # --- pods ------------------------------------------------------------------------------------------

    def _placed(self, question: Question, workload: Object) -> Seen:
        """Wait until every created pod has a node or is reported unschedulable."""
        sets = workload["status"]["admission"]["podSetAssignments"]
        counts = {one["name"]: int(one["count"]) for one in sets}
        wanted, since, said, denied = sum(counts.values()), time.monotonic(), (-1, -1), ""
        asked_after = SETTLED
        while True:
            pods = self.watcher.pods(question.entry.namespace, question.name)
            self._end_steps(pods)
            bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
            told = [pod for pod in pods if _unschedulable(pod)]
            if (len(pods), bound + len(told)) != said:
                since, said = time.monotonic(), (len(pods), bound + len(told))
            still = time.monotonic() - since
            if not pods and still > asked_after:
                denied, asked_after = self._denied(question), asked_after + SETTLED
            is_told = bool(denied) or (bool(told) and bound + len(told) == len(pods))
            if bound == wanted or still > (self.patience * SETTLED if is_told else SLOW):
                break
            time.sleep(EVERY / 2)
        why = "" if bound == wanted else _unschedulable(told[0]) if told else denied or "pods are missing"
        assignment = {one["name"]: dict(one.get("flavors") or {}) for one in sets}
        requests = {one["name"]: dict(one.get("resourceUsage") or {}) for one in sets}
        return Seen(
            *("admitted", "", "", assignment, counts, requests),
            bound=bound,
            pods=wanted,
            unbound=why,
        )

    def _end_steps(self, pods: list[Object]) -> None:
        """Complete the running pods of steps: whatever follows them waits for that."""
        for pod in pods:
            name = pod["metadata"]["labels"].get(ROLE, "")
            if name.startswith(STEP) and pod.get("status", {}).get("phase") == "Running":
                done = {"status": {"phase": "Succeeded"}}
                with contextlib.suppress(ApiError):  # gone, or completed in an earlier pass
                    self.client.patch(
                        "Pod", pod["metadata"]["name"], done, pod["metadata"]["namespace"], "status"
                    )

    def _denied(self, question: Question) -> str:
        """Return why a Job's pods are not even created."""
        for event in self.client.list("Event", question.entry.namespace):
            name = event["metadata"]["name"]
            if name.startswith(f"{question.name}-") and event["reason"] == "FailedCreate":
                return str(event["message"])
        return ""


def reserved(workload: Object) -> tuple[str, str]:
    """Return reason and message of the condition QuotaReserved, empty without one."""
    for found in workload.get("status", {}).get("conditions") or ():
        if found["type"] == "QuotaReserved":
            return found["reason"], found["message"]
    return "", ""


def _unschedulable(pod: Object) -> str:
    """Return the scheduler's message about a pod without a node."""
    for found in pod.get("status", {}).get("conditions") or ():
        if (
            found["type"] == "PodScheduled"
            and found["status"] == "False"
            and found["reason"] == "Unschedulable"
        ):
            return str(found["message"])
    return ""
