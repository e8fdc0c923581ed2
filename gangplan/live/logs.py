"""The logs of a run: select its pods, and read their lines with the name of each pod in front.

JobSet labels pods with the run and the role, and Job with the index (`jobset.sigs.k8s.io/jobset-name`,
`jobset.sigs.k8s.io/replicatedjob-name`, `batch.kubernetes.io/job-completion-index`): JobSet 0.10 to 0.12 and
Kubernetes 1.30 to 1.37 alike. Pods of a run never restart their containers, so an earlier attempt is an
earlier pod.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gangplan.errors import ToolError
from gangplan.live.access import MAX_CONNECTIONS, Access, ApiRefusedError
from gangplan.live.rendered import RunInGit
from gangplan.live.rights import Right
from gangplan.model.backend import MPIJOB, SCHEDULE_LABEL, TRAINJOB, Backend
from gangplan.objects import Body
from gangplan.records import dataclass

_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
_INDEX = "batch.kubernetes.io/job-completion-index"
_LAUNCHER, _CONTAINER = "launcher", "node"  # plan/names; templates/runtime.yaml.j2
#: The most pods that are followed at once; each has its own connection.
MOST = MAX_CONNECTIONS


def list_rights_to_read_logs(namespace: str, made: Sequence[Backend] = (TRAINJOB,)) -> tuple[Right, ...]:
    """Return the rights that reading logs in a namespace needs."""
    return (
        Right("", "pods", "list", namespace),
        Right("", "pods/log", "get", namespace),
        *(Right(one.group, one.plural, "get", namespace) for one in made),
    )


def find_last_scheduled_run(access: Access, namespace: str, schedule: RunInGit) -> RunInGit:
    """Return the last run of a schedule that still exists: names end in the start time.

    Raises ToolError if there is none.
    """
    path = f"/apis/{TRAINJOB.api_version}/namespaces/{namespace}/{TRAINJOB.plural}"
    bodies = access.items(path, {"labelSelector": f"{SCHEDULE_LABEL}={schedule.job}"})
    name = max((str(body["metadata"]["name"]) for body in bodies), default=None)
    if name is None:
        raise ToolError(
            f"schedule {schedule.job} has started no run on cluster {schedule.cluster} that is still there",
            f"gangplan plan {schedule.source} shows its next starts.",
        )
    return replace(schedule, name=name, held=None)


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The selected pods: the launcher, some workers by index, or all; of the previous attempt if asked.

    If nothing is selected, it is the launcher, to which MPI passes the output of all ranks; without one, all
    workers.
    """

    launcher: bool = False
    workers: tuple[int, ...] = ()
    all: bool = False
    previous: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A pod whose log is read, its container, and the label in front of its lines."""

    label: str
    pod: str
    container: str
    is_previous_container: bool = False


def list_live_run_pods(
    access: Access, namespace: str, run: str, made: Sequence[Backend] = (TRAINJOB,)
) -> list[Body]:
    """Return the pods of a run, which may be made of any of these kinds. Raises ToolError."""
    for one in made:
        query = {"labelSelector": f"{one.run_label}={run}"}
        if found := access.items(f"/api/v1/namespaces/{namespace}/pods", query):
            return found
    return []


def select_log_sources(pods: Sequence[Body], which: PodSelection, run: str) -> list[Source]:
    """Return the selected pods, the launcher first. Raises ToolError if there are none."""
    attempts: dict[tuple[str, int], list[Body]] = {}
    for pod in sorted(pods, key=lambda one: str(one["metadata"].get("creationTimestamp") or "")):
        key = _find_pod_role_and_index(pod)
        attempts.setdefault(key, []).append(pod)
    places = sorted(attempts, key=lambda one: (one[0] != _LAUNCHER, one))
    wanted = [place for place in places if _is_pod_selected_for_live_logs(place, which, places)]
    missing = [f"worker {number}" for number in which.workers if not _has_worker_pod(places, number)]
    missing += ["launcher"] if which.launcher and not any(role == _LAUNCHER for role, _ in places) else []
    if missing:
        there = ", ".join(_format_pod_role_label(place) for place in places[:8])
        more = f" and {len(places) - 8} more" if len(places) > 8 else ""
        raise ToolError(f"run {run} has no {' and no '.join(missing)}", f"It has: {there}{more}.")
    found = [
        one for place in wanted if (one := _select_log_source(place, attempts[place], which)) is not None
    ]
    if not found:
        raise ToolError(f"run {run} has had no attempt before this one", "Leave out --previous.")
    return found


def _find_pod_role_and_index(pod: Body) -> tuple[str, int]:
    """Return role and number of a pod; a worker of an MPIJob has its number in its name."""
    labels = pod["metadata"].get("labels") or {}
    role = labels.get(MPIJOB.role_label)
    if role is None:
        return labels.get(_ROLE, ""), int(labels.get(_INDEX, 0))
    number = pod["metadata"]["name"].rpartition("-")[2]
    return role, int(number) if role != _LAUNCHER and number.isdigit() else 0


def _has_worker_pod(places: Sequence[tuple[str, int]], number: int) -> bool:
    return any(role != _LAUNCHER and index == number for role, index in places)


def _is_pod_selected_for_live_logs(
    place: tuple[str, int], which: PodSelection, places: Sequence[tuple[str, int]]
) -> bool:
    role, index = place
    if which.all:
        return True
    if which.launcher or which.workers:
        return which.launcher if role == _LAUNCHER else index in which.workers
    return role == _LAUNCHER or not any(one == _LAUNCHER for one, _ in places)


def _format_pod_role_label(place: tuple[str, int]) -> str:
    role, index = place
    return "launcher" if role == _LAUNCHER else f"worker {index}"


def _select_log_source(
    place: tuple[str, int], attempts: Sequence[Body], which: PodSelection
) -> Source | None:
    """Return the last pod of a place, or the one before it.

    A restarted container has a previous attempt of its own.
    """
    pod = attempts[-1]
    restarted = any(
        one.get("restartCount") for one in (pod.get("status") or {}).get("containerStatuses") or ()
    )
    if which.previous and not restarted:
        if len(attempts) < 2:
            return None
        pod = attempts[-2]
    names = [str(one["name"]) for one in (pod.get("spec") or {}).get("containers") or ()]
    container = _CONTAINER if _CONTAINER in names or not names else names[0]
    return Source(
        _format_pod_role_label(place), pod["metadata"]["name"], container, which.previous and restarted
    )


def read_run_pod_logs(
    access: Access, namespace: str, chosen: Sequence[Source], follow: bool, tail: int | None
) -> Iterator[tuple[str, str, bool]]:
    """Yield lines with the label of their pod, and whether the line is gangplan's own remark.

    Pods are read one after the other, or all at once if they are followed. Raises ToolError.
    """
    if not follow:
        for source in chosen:
            yield from _iterate_pod_log_lines(access, namespace, source, follow, tail)
        return
    if len(chosen) > MOST:
        raise ToolError(
            f"{len(chosen)} pods are too many to follow at once", f"Name up to {MOST} with --worker N."
        )
    arrived: queue.SimpleQueue[tuple[str, str, bool] | Exception | None] = queue.SimpleQueue()

    def run(source: Source) -> None:
        try:
            for line in _iterate_pod_log_lines(access, namespace, source, follow, tail):
                arrived.put(line)
            arrived.put(None)
        except Exception as error:  # noqa: BLE001  the reader raises it
            arrived.put(error)

    for source in chosen:
        threading.Thread(target=run, args=(source,), daemon=True).start()
    left = len(chosen)
    while left:
        one = arrived.get()
        if isinstance(one, Exception):
            raise one
        if one is None:
            left -= 1
        else:
            yield one


def _iterate_pod_log_lines(
    access: Access, namespace: str, source: Source, follow: bool, tail: int | None
) -> Iterator[tuple[str, str, bool]]:
    query: Mapping[str, str] = {
        "container": source.container,
        **({"follow": "true"} if follow else {}),
        **({"previous": "true"} if source.is_previous_container else {}),
        **({"tailLines": str(tail)} if tail is not None else {}),
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{source.pod}/log"
    try:
        for line in access.lines(path, query, follow):
            yield source.label, line, False
    except ApiRefusedError as error:
        if error.status not in (400, 404, 500):  # it has not started, is gone, or its node does not answer
            raise
        yield source.label, f"no log: {' '.join(error.words.split())}", True
