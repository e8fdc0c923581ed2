"""Explain in plain words why a run waits or failed, from Kueue's messages and the states of its pods.

Messages of Kueue: pkg/cache/scheduler and pkg/scheduler/flavorassigner of v0.15.2 to v0.19.2, which report
amounts only in text. Unknown messages are passed on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gangplan.model.amounts import format_with_unit
from gangplan.model.exits import LAUNCH_EXITS, PREFLIGHT_EXITS
from gangplan.model.quantity import Quantity, QuantityError, parse_quantity
from gangplan.objects import Body

_MORE = re.compile(
    r"insufficient (?:unused )?quota for (?P<resource>\S+) in flavor (?P<flavor>[^\s,;]+), (?P<more>\S+) more needed"
)
_NEVER = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>[^\s,;]+), .*?> maximum capacity \((?P<most>[^)]+)\)"
)
_PREEMPTED = re.compile(r"^Preempted to accommodate a workload .*? due to (?P<why>[^;]+)")
_TOPOLOGY = re.compile(r'topology "(?P<name>[^"]+)" allows to fit only (?P<fit>\d+) out of (?P<all>\d+) pod')
_TAINT = re.compile(r"untolerated taint \{(?P<taint>[^ }]+)[^}]*\} in flavor (?P<flavor>[^\s,;]+)")
_PATH = re.compile(r"preemptor path: (?P<path>[^\s;]+)")
# Whole messages, or their beginnings.
_KNOWN = (
    (
        "The workload is deactivated",
        "deactivated: somebody set spec.active of its Workload to false, or it failed to start too often",
    ),
    ("Pending the preemption of", "waits for runs that it preempts to end"),
    (
        "Workload no longer fits after processing another workload",
        "another run was admitted before it in the same cycle",
    ),
    ("ClusterQueue", None),
    ("LocalQueue", None),
    ("The workload has failed admission checks", "an admission check refused it"),
)
_LETTERS = 300
_CODES = {one.code: one.meaning for one in (*LAUNCH_EXITS.values(), *PREFLIGHT_EXITS.values())}
# Waiting reasons of containers that do not go away by themselves (kubelet, pkg/kubelet/images, kuberuntime).
_STUCK = {
    "ErrImagePull": "its image cannot be pulled",
    "ImagePullBackOff": "its image cannot be pulled",
    "InvalidImageName": "the name of its image is invalid",
    "CreateContainerConfigError": "a Secret or ConfigMap that it names does not exist",
    "CreateContainerError": "its container cannot be created",
    "CrashLoopBackOff": "its container ends again and again",
}


def explain_kueue_message(message: str) -> str:
    """Return a message of Kueue's in plain words."""
    said = _explain_waiting_for_quota(message)
    if said:
        return said
    if match := _TOPOLOGY.search(message):
        return f"waits for nodes close together: only {match['fit']} of {match['all']} pods fit into the topology '{match['name']}'"
    if match := _TAINT.search(message):
        return f"pool {match['flavor']} has the taint {match['taint']}, which the run does not tolerate"
    for start, words in _KNOWN:
        if message.startswith(start):
            return words or _shorten_message(message)
    return f"Kueue says: {_shorten_message(message)}" if message else ""


def _explain_waiting_for_quota(message: str) -> str:
    """Return what is missing in each pool: the largest amount for any pod set, because Kueue adds them up."""
    never = [
        f"pool {one['flavor']} can never give it more than {_format_resource_amount(one['resource'], one['most'])}"
        for one in _NEVER.finditer(message)
    ]
    missing: dict[tuple[str, str], tuple[int, str]] = {}
    for one in _MORE.finditer(message):
        key = one["flavor"], one["resource"]
        missing[key] = max(missing.get(key, (-1, "")), (_parse_nano_amount(one["more"]), one["more"]))
    waits = [
        f"{_format_resource_amount(resource, more)} more in pool {flavor}"
        for (flavor, resource), (_, more) in missing.items()
    ]
    parts = [f"waits for quota: {' or '.join(waits)}"] if waits else []
    return "; ".join([*parts, *dict.fromkeys(never)])


def _parse_nano_amount(text: str) -> int:
    try:
        return parse_quantity(text).nano
    except QuantityError:
        return 0


def _format_resource_amount(resource: str, text: str) -> str:
    try:
        amount: Quantity = parse_quantity(text)
    except QuantityError:
        return f"{text} {resource}"
    return format_with_unit(resource, amount)


def explain_kueue_preemption(message: str) -> str:
    """Return why Kueue preempted a run for another one."""
    match, by = _PREEMPTED.match(message), _PATH.search(message)
    if match is None:
        return explain_kueue_message(message)
    queue = f" in queue {by['path'].rpartition('/')[2]}" if by else ""
    return f"preempted for a run{queue}: {match['why'].strip()}"


def explain_kueue_eviction(reason: str, message: str) -> str:
    """Return why Kueue evicted a run for a reason other than preemption."""
    words = {
        "PodsReadyTimeout": "its pods were not ready in time, and it went back to the queue",
        "AdmissionCheck": "an admission check took its place back",
        "ClusterQueueStopped": "its ClusterQueue was stopped",
        "LocalQueueStopped": "its LocalQueue was stopped",
        "NodeFailures": "nodes under it failed",
    }
    return words.get(reason) or explain_kueue_message(message)


def explain_unready_live_pods(pods: Sequence[Body]) -> str:
    """Return what keeps a run's pods from being ready: the most common reasons, with the number of pods."""
    found: dict[str, int] = {}
    for pod in pods:
        why = _explain_unready_live_pod(pod)
        if why:
            found[why] = found.get(why, 0) + 1
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return "; ".join(f"{count} of {len(pods)} pods: {why}" for why, count in ordered[:2])


def _explain_unready_live_pod(pod: Body) -> str:
    status = pod.get("status") or {}
    for one in status.get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] == "False":
            if one.get("reason") == "SchedulingGated":
                return "held back until Kueue has placed it"
            return f"no node fits: {_shorten_message(str(one.get('message') or one.get('reason')), 160)}"
    for container in _iterate_container_statuses(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if reason in _STUCK:
            return f"{_STUCK[reason]} ({_shorten_message(str(waiting.get('message') or reason), 160)})"
    if status.get("phase") == "Pending":
        return "being created"
    return "" if _is_ready(status) or status.get("phase") in ("Succeeded", "Failed") else "not ready yet"


def _is_ready(status: Mapping[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())


def explain_failed_live_pods(pods: Iterable[Body]) -> str:
    """Return how the first pod that failed ended: its exit code and the meaning."""
    ended: list[tuple[str, str]] = []
    for pod in pods:
        status = pod.get("status") or {}
        for container in _iterate_container_statuses(status):
            end = (container.get("state") or {}).get("terminated") or {}
            code = end.get("exitCode")
            if code:
                meaning = _CODES.get(code) or _describe_exit_code(end, code)
                words = f"{pod['metadata']['name']} ended with {code}{f': {meaning}' if meaning else ''}"
                ended.append((str(end.get("finishedAt") or ""), words))
        if status.get("phase") == "Failed" and status.get("reason"):
            words = f"{pod['metadata']['name']}: {status['reason']}, {_shorten_message(str(status.get('message') or ''), 160)}"
            ended.append((str(status.get("startTime") or ""), words.rstrip(", ")))
    return min(ended)[1] if ended else ""


def _describe_exit_code(end: Mapping[str, Any], code: int) -> str:
    if end.get("reason") == "OOMKilled":
        return "out of memory"
    return {137: "killed, perhaps out of memory", 143: "told to end"}.get(code, "")


def _iterate_container_statuses(status: Mapping[str, Any]) -> Iterable[Body]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _shorten_message(text: str, most: int = _LETTERS) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 3]}..."
