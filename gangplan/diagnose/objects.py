"""Find causes in the statuses and events of saved objects.

Sources: core/v1 and batch/v1 of Kubernetes v1.33 to v1.36 (pkg/kubelet, pkg/controller/job), conditions of
Trainer v2.1 to v2.3, JobSet v0.10 to v0.12 (pkg/constants) and Kueue v0.15 to v0.19 (apis/kueue/v1beta2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gangplan.diagnose.controllers import find_job_sightings, find_workload_sightings
from gangplan.diagnose.evidence import RunPart, SavedObject, Sighting, parse_run_part_from_evidence_pod_name
from gangplan.diagnose.pods import find_pod_sightings
from gangplan.diagnose.things import (
    coerce_mapping,
    conditions_of,
    find_message_sightings,
    find_run_of_saved_object,
    find_run_part_of_saved_pod,
    parse_run_part_from_job_name,
)
from gangplan.model.backend import BACKEND_BY_KIND

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


def find_object_sightings(things: Sequence[SavedObject]) -> Iterator[Sighting]:
    """Yield the sightings in objects, each with the run that it belongs to."""
    homes = _map_saved_objects_to_run_parts(things)
    for thing in things:
        if thing.kind == "Pod":
            yield from find_pod_sightings(thing)
        elif thing.kind == "Event":
            yield from _find_event_sightings(thing, homes)
        elif thing.kind == "Workload":
            yield from find_workload_sightings(thing)
        elif thing.kind in (*BACKEND_BY_KIND, "JobSet", "Job"):
            yield from find_job_sightings(thing, homes)
        elif thing.kind in ("LocalQueue", "ClusterQueue"):
            yield from _find_queue_sightings(thing)
        elif thing.kind == "Node":
            yield from _find_node_sightings(thing)


def _map_saved_objects_to_run_parts(things: Sequence[SavedObject]) -> dict[tuple[str, str], RunPart]:
    """Return the part of a run that each object belongs to, by kind and name, which events refer to."""
    found: dict[tuple[str, str], RunPart] = {}
    for thing in things:
        run = find_run_of_saved_object(thing)
        if run:
            found[thing.kind, thing.name] = (
                find_run_part_of_saved_pod(thing) if thing.kind == "Pod" else RunPart(run)
            )
    return found


def _find_event_sightings(thing: SavedObject, homes: Mapping[tuple[str, str], RunPart]) -> Iterator[Sighting]:
    body = thing.body
    reason = str(body.get("reason") or "")
    of = coerce_mapping(body.get("involvedObject") or body.get("regarding"))
    kind, name = str(of.get("kind") or ""), str(of.get("name") or "")
    if reason not in _TOLD:
        return
    who = homes.get((kind, name)) or (
        parse_run_part_from_evidence_pod_name(name)
        if kind == "Pod"
        else parse_run_part_from_job_name(kind, name)
    )
    at = (
        body.get("lastTimestamp")
        or body.get("eventTime")
        or coerce_mapping(body.get("metadata")).get("creationTimestamp")
    )
    message = f"{reason}: {body.get('message') or body.get('note') or ''}"
    if reason in _CREATING and _UNSEEN.search(message):
        return
    otherwise = "pods-refused" if reason == "FailedCreate" else _EVENTS.get(reason, "")
    for one in find_message_sightings(thing, who, message, otherwise, at):
        yield Sighting(one.cause, one.file, 0, f"Event of {kind} {name}", one.text, who, one.at, one.facts)


def _find_queue_sightings(thing: SavedObject) -> Iterator[Sighting]:
    for one in conditions_of(thing):
        if one.get("type") == "Active" and one.get("status") == "False":
            at = str(one.get("lastTransitionTime") or "")
            yield Sighting(
                "queue-inactive", thing.file, 0, thing.words, str(one.get("message") or ""), RunPart(), at
            )


def _find_node_sightings(thing: SavedObject) -> Iterator[Sighting]:
    for one in conditions_of(thing):
        if one.get("type") == "Ready" and one.get("status") != "True":
            at = str(one.get("lastTransitionTime") or "")
            said = f"not ready: {one.get('message') or one.get('reason') or ''}"
            yield Sighting(
                "node-lost", thing.file, 0, thing.words, said[:400], RunPart(), at, {"node": thing.name}
            )
