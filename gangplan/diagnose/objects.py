"""Find causes in the statuses and events of saved objects.

Sources: core/v1 and batch/v1 of Kubernetes v1.33 to v1.36 (pkg/kubelet, pkg/controller/job), conditions of
Trainer v2.1 to v2.3, JobSet v0.10 to v0.12 (pkg/constants) and Kueue v0.15 to v0.19 (apis/kueue/v1beta2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gangplan.diagnose.controllers import of_job, of_workload
from gangplan.diagnose.evidence import Sighting, Thing, Who, who_of_pod
from gangplan.diagnose.pods import of_pod
from gangplan.diagnose.things import by_job, conditions_of, mapped, run_of, said_by, who_of
from gangplan.model.backend import BY_KIND

_EVENTS = {
    "FailedMount": "mount-failed",
    "FailedAttachVolume": "mount-failed",
    "FailedCreatePodSandBox": "pod-network",
    "NodeNotReady": "node-lost",
    "TaintManagerEviction": "node-lost",
}
# Reasons of events whose messages are read; others report success.
_TOLD = frozenset(
    {
        *_EVENTS, "FailedCreate", "FailedScheduling", "Failed", "BackOff", "Evicted", "FailedToCreateWorkload",
        "JobCreationFailed", "SystemOOM", "OOMKilling", "UnexpectedAdmissionError", "FailedPrepareDynamicResources",
        "ProvisioningFailed", "FailedBinding", "InspectFailed", "FailedCreatePodContainer", "ErrImageNeverPull",
    }
)  # fmt: skip
# Kueue's webhooks for pods, Jobs and JobSets look up owners in a cache that may lag behind (v0.15.2 to
# v0.19.2, pkg/controller/jobframework, FindAncestorJobManagedByKueue): the controller tries again and
# succeeds.
_CREATING = frozenset({"FailedCreate", "JobCreationFailed"})
_UNSEEN = re.compile(r'"m(?:pod|job|jobset)\.kb\.io" denied the request: [-\w.]+ "[^"]+" not found')


def sightings_of(things: Sequence[Thing]) -> Iterator[Sighting]:
    """Yield the sightings in objects, each with the run that it belongs to."""
    homes = _homes(things)
    for thing in things:
        if thing.kind == "Pod":
            yield from of_pod(thing)
        elif thing.kind == "Event":
            yield from _event(thing, homes)
        elif thing.kind == "Workload":
            yield from of_workload(thing)
        elif thing.kind in (*BY_KIND, "JobSet", "Job"):
            yield from of_job(thing, homes)
        elif thing.kind in ("LocalQueue", "ClusterQueue"):
            yield from _queue(thing)
        elif thing.kind == "Node":
            yield from _node(thing)


def _homes(things: Sequence[Thing]) -> dict[tuple[str, str], Who]:
    """Return the part of a run that each object belongs to, by kind and name, which events refer to."""
    found: dict[tuple[str, str], Who] = {}
    for thing in things:
        run = run_of(thing)
        if run:
            found[thing.kind, thing.name] = who_of(thing) if thing.kind == "Pod" else Who(run)
    return found


def _event(thing: Thing, homes: Mapping[tuple[str, str], Who]) -> Iterator[Sighting]:
    body = thing.body
    reason = str(body.get("reason") or "")
    of = mapped(body.get("involvedObject") or body.get("regarding"))
    kind, name = str(of.get("kind") or ""), str(of.get("name") or "")
    if reason not in _TOLD:
        return
    who = homes.get((kind, name)) or (who_of_pod(name) if kind == "Pod" else by_job(kind, name))
    at = (
        body.get("lastTimestamp")
        or body.get("eventTime")
        or mapped(body.get("metadata")).get("creationTimestamp")
    )
    message = f"{reason}: {body.get('message') or body.get('note') or ''}"
    if reason in _CREATING and _UNSEEN.search(message):
        return
    otherwise = "pods-refused" if reason == "FailedCreate" else _EVENTS.get(reason, "")
    for one in said_by(thing, who, message, otherwise, at):
        yield Sighting(one.cause, one.file, 0, f"Event of {kind} {name}", one.text, who, one.at, one.facts)


def _queue(thing: Thing) -> Iterator[Sighting]:
    for one in conditions_of(thing):
        if one.get("type") == "Active" and one.get("status") == "False":
            at = str(one.get("lastTransitionTime") or "")
            yield Sighting(
                "queue-inactive", thing.file, 0, thing.words, str(one.get("message") or ""), Who(), at
            )


def _node(thing: Thing) -> Iterator[Sighting]:
    for one in conditions_of(thing):
        if one.get("type") == "Ready" and one.get("status") != "True":
            at = str(one.get("lastTransitionTime") or "")
            said = f"not ready: {one.get('message') or one.get('reason') or ''}"
            yield Sighting(
                "node-lost", thing.file, 0, thing.words, said[:400], Who(), at, {"node": thing.name}
            )
