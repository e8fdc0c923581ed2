"""Find causes in the status of a pod."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.diagnose.evidence import RunPart, SavedObject, Sighting
from gangplan.diagnose.things import (
    EXIT_CODES,
    LAUNCH,
    coerce_mapping,
    find_message_sightings,
    find_run_part_of_saved_pod,
)
from gangplan.objects import Body

_WAITING = {
    "ErrImagePull": "image-pull",
    "ImagePullBackOff": "image-pull",
    "ErrImageNeverPull": "image-not-found",
    "InvalidImageName": "image-name",
    "ImageInspectError": "image-pull",
    "CreateContainerConfigError": "config-missing",
    "CreateContainerError": "program-missing",
    "RunContainerError": "program-missing",
}
_POD_REASONS = {
    "Evicted": "evicted-disk",
    "DeadlineExceeded": "deadline",
    "NodeLost": "node-lost",
    "NodeShutdown": "node-lost",
    "Terminated": "node-lost",
    "Shutdown": "node-lost",
    "UnexpectedAdmissionError": "gpu-allocation",
    "NodeAffinity": "no-matching-node",
    "Preempting": "node-lost",
}
_DISRUPTIONS = {
    "DeletionByTaintManager": "node-lost",
    "DeletionByPodGC": "node-lost",
    "EvictionByEvictionAPI": "node-lost",
    "PreemptionByScheduler": "node-lost",
}


def find_pod_sightings(thing: SavedObject) -> Iterator[Sighting]:
    """Yield the causes in the status of a pod."""
    status, who = coerce_mapping(thing.body.get("status")), find_run_part_of_saved_pod(thing)
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    conditions = [one for one in status.get("conditions") or () if isinstance(one, dict)]
    if status.get("phase") == "Failed" and reason:
        cause = "no-room" if reason.startswith("OutOf") else _POD_REASONS.get(reason, "")
        when = next(
            (one.get("lastTransitionTime") for one in conditions if one.get("type") == "DisruptionTarget"), ""
        )
        yield from find_message_sightings(
            thing, who, f"{reason}: {message}", cause, when or status.get("startTime")
        )
    for one in conditions:
        kind, why, said = one.get("type"), str(one.get("reason") or ""), str(one.get("message") or "")
        at = one.get("lastTransitionTime")
        if kind == "PodScheduled" and one.get("status") == "False" and why == "Unschedulable":
            yield from find_message_sightings(thing, who, said, "no-room", at)
        elif kind == "DisruptionTarget" and one.get("status") == "True" and why in _DISRUPTIONS:
            yield Sighting(
                _DISRUPTIONS[why], thing.file, 0, thing.words, f"{why}: {said}"[:400], who, str(at or ""),
                {"node": str(coerce_mapping(thing.body.get("spec")).get("nodeName") or "")},
            )  # fmt: skip
    for group in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(group) or ():
            yield from _find_container_sightings(thing, who, coerce_mapping(container))


def _find_container_sightings(thing: SavedObject, who: RunPart, container: Body) -> Iterator[Sighting]:
    name = str(container.get("name") or "")
    waiting = coerce_mapping(coerce_mapping(container.get("state")).get("waiting"))
    reason = str(waiting.get("reason") or "")
    if reason in _WAITING:
        said = f"{reason}: {waiting.get('message') or ''}"
        yield from find_message_sightings(
            thing, who, said, _WAITING[reason], "", container=name, image=str(container.get("image") or "")
        )
    for state in (container.get("state"), container.get("lastState")):
        end = coerce_mapping(coerce_mapping(state).get("terminated"))
        code = end.get("exitCode")
        if end and code:
            yield from _find_container_exit_sightings(thing, who, name, end, int(code))


def _find_container_exit_sightings(
    thing: SavedObject, who: RunPart, name: str, end: Body, code: int
) -> Iterator[Sighting]:
    reason, at = str(end.get("reason") or ""), end.get("finishedAt")
    message = str(end.get("message") or "")
    facts = {"container": name, "code": str(code)}
    text = f"container {name} ended with exit code {code} ({reason or 'Error'})"
    if reason == "OOMKilled":
        limit = _read_memory_limit_of_saved_pod(thing, name)
        more = {**facts, **({"limit": limit} if limit else {})}
        said = f"{text}, its limit is {limit}" if limit else text
        yield Sighting("out-of-memory", thing.file, 0, thing.words, said, who, str(at or ""), more)
        return
    cause = LAUNCH.get(code) or EXIT_CODES.get(code) or "program-failed"
    if reason in ("StartError", "ContainerCannotRun"):
        yield from find_message_sightings(thing, who, f"{text}: {message}", "program-missing", at, **facts)
        return
    said = f"{text}: {message}" if message else text
    yield Sighting(cause, thing.file, 0, thing.words, said[:400], who, str(at or ""), facts)


def _read_memory_limit_of_saved_pod(thing: SavedObject, name: str) -> str:
    spec = coerce_mapping(thing.body.get("spec"))
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        if isinstance(container, dict) and container.get("name") == name:
            return str(
                coerce_mapping(coerce_mapping(container.get("resources")).get("limits")).get("memory") or ""
            )
    return ""
