"""The real side: scenes set up in a lab, runs put into them, and what Kueue and the scheduler did."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gangplan.validate.world import HOSTNAME, NodeGroup
from tests.e2e.admission.question import Question
from tests.e2e.admission.recording import Seen
from tests.e2e.admission.scene import Scene
from tests.e2e.admission.watcher import EVERY, PATIENCE, Watcher
from tests.lab.client import ApiError, Client, TooLateError, condition
from tests.lab.lab import Lab

Object = dict[str, Any]
#: Trainer looks into a cache of its own for the runtime of a run.
UNSEEN = re.compile(r"must be created before the TrainJob|vtrainjob\.kb\.io.*runtime '.*' not found")
#: Kueue too: its complaint of a runtime that is there passes.
UNREAD = re.compile(r"runtime '.*' not found")
#: Seconds: until a refusal counts as Trainer's cache being late; what must stay as it is to be final; how
#: long a Workload may still come after a complaint; how long Kueue may think, or pods take to be made.
CACHE, SETTLED, NO_WORKLOAD, SLOW = 15.0, 1.0, 2.0, 30.0
#: After so many changes, Kueue changes its words for ever: it tries the head of a strict queue without end.
TURNS = 12
#: Reasons that are not the last word (Kueue 0.19 with UnadmittedWorkloadsObservability).
PASSING = ("PendingEvaluation", "WaitingForPreemptedWorkloads", "WaitingForPodsReady")
#: Kinds that a scene is made of, in the order in which they are taken away.
KINDS = (
    *("LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "AdmissionCheck"),
    *("WorkloadPriorityClass", "RuntimeClass", "Namespace"),
)


def node_descriptions(groups: Sequence[NodeGroup]) -> list[Object]:
    """Node groups as nodes of the lab; domains of two groups are never the same."""
    return [_node(group, index) for group in groups for index in range(group.count)]


def _node(group: NodeGroup, index: int) -> Object:
    labels = dict(group.labels)
    for level, nodes in group.domains:
        if level != HOSTNAME:
            labels[level] = f"{group.name}-{level.rpartition('/')[2]}-{index // nodes}"
    allocatable = {
        resource: str(int(amount)) if amount.denominator == 1 else f"{int(amount * 1000)}m"
        for resource, amount in group.free.items()
    }
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in group.taints]
    return {"name": f"{group.name}-{index}", "labels": labels, "taints": taints, "allocatable": allocatable}


def _first(scene: Scene, body: Object) -> Object:
    """An object as it is created.

    A circle of cohorts is closed when the queues are there. A queue created under a circle makes Kueue
    (v0.15.2 to v0.19.2) crash at the next change of any namespace: its namespace selector is never read
    (cache/scheduler/clusterqueue.go updateClusterQueue returns early; cache.go MatchingClusterQueues).
    """
    if scene.mistake == "circle" and scene.cohorts and body is scene.cohorts[0]:
        return {**body, "spec": {key: value for key, value in body["spec"].items() if key != "parentName"}}
    return body


#: Where the pods of a run say what they are, and how those of steps without a name begin.
ROLE, STEP = "gangplan.dev/role", "step-"


@dataclass(slots=True)
class Plane:
    """A lab that scenes are set up in."""

    lab: Lab
    watcher: Watcher
    patience: float = 1.0  # by which everything that must settle takes longer

    @property
    def client(self) -> Client:
        """The administrator's client."""
        return self.lab.client

    # --- scenes ----------------------------------------------------------------------------------------

    def build(self, scene: Scene) -> None:
        """Nodes and objects; returns when every queue has said whether it is active."""
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
        time.sleep(SETTLED)  # Kueue tells the queues of a tree one after the other

    def raze(self, scene: Scene) -> None:
        """Take everything of a scene away; what waits for finalizers goes in its own time."""
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
        """Put a run in, look what becomes of it, and take it away; the world is idle before and after."""
        try:
            refusal = self.submit(question)
            if refusal:
                return Seen("refused", "", refusal)
            return self._decided(question)
        finally:
            self.remove(question)

    def submit(self, question: Question) -> str:
        """Apply the objects of a run; the words of the server if it refuses one for good."""
        self.watcher.forget(question.name)
        for body in question.judged:
            deadline = time.monotonic() + CACHE
            while True:
                try:
                    self.client.apply(body)
                    break
                except ApiError as error:
                    if error.status >= 500:  # no answer: a webhook is not there
                        raise
                    if not UNSEEN.search(error.message) or time.monotonic() > deadline:
                        return f"{body['kind']}: {error.message}"
                    time.sleep(0.05)
        return ""

    def remove(self, question: Question) -> None:
        """Delete a run and wait until nothing of it holds anything."""
        namespace = question.entry.namespace
        for body in reversed(question.bodies):
            self.client.delete(body["kind"], question.name, namespace)
        time.sleep(2 * EVERY)  # a Workload that is just being made
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
        """Wait for Kueue's last word: what does not change any more, or what it says in turns."""
        began = since = time.monotonic()
        words: list[tuple[str, str]] = [("", "")]
        while True:
            workload = self.watcher.workload(question.entry.namespace, question.name)
            complaint = self.watcher.complaint(question.name)
            if workload is None and time.monotonic() - began > self._awaited(question, complaint):
                if complaint or self.patience > 1:  # Kueue 0.15 tells its log alone of a missing priority
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
        """Seconds that a Workload may take to come, where Kueue complained and where it did not."""
        if not complaint:
            return PATIENCE
        is_late = question.is_synced_whole and UNREAD.search(complaint)
        return self.patience * (SLOW if is_late else NO_WORKLOAD)

    # --- pods ------------------------------------------------------------------------------------------

    def _placed(self, question: Question, workload: Object) -> Seen:
        """Wait until every pod that comes has a node, or is told that there is none."""
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
        """Let the pods of steps end well once they run: whatever comes after them waits for that."""
        for pod in pods:
            name = pod["metadata"]["labels"].get(ROLE, "")
            if name.startswith(STEP) and pod.get("status", {}).get("phase") == "Running":
                done = {"status": {"phase": "Succeeded"}}
                with contextlib.suppress(ApiError):  # gone, or told by a pass before
                    self.client.patch(
                        "Pod", pod["metadata"]["name"], done, pod["metadata"]["namespace"], "status"
                    )

    def _denied(self, question: Question) -> str:
        """Why a Job's pods are not even made."""
        for event in self.client.list("Event", question.entry.namespace):
            name = event["metadata"]["name"]
            if name.startswith(f"{question.name}-") and event["reason"] == "FailedCreate":
                return str(event["message"])
        return ""


def reserved(workload: Object) -> tuple[str, str]:
    """Reason and message of the condition QuotaReserved; empty where there is none."""
    for found in workload.get("status", {}).get("conditions") or ():
        if found["type"] == "QuotaReserved":
            return found["reason"], found["message"]
    return "", ""


def _unschedulable(pod: Object) -> str:
    """What the scheduler says about a pod that it has no node for."""
    for found in pod.get("status", {}).get("conditions") or ():
        if (
            found["type"] == "PodScheduled"
            and found["status"] == "False"
            and found["reason"] == "Unschedulable"
        ):
            return str(found["message"])
    return ""
