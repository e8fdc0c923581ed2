"""Everything that a cluster has of one run: its objects, its events, and the ends of its logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.live.access import Access, ApiRefusedError
from gangplan.live.logs import list_live_run_pods
from gangplan.live.rights import Right
from gangplan.model.backend import MPIJOB, TRAINJOB, Backend
from gangplan.objects import Body

_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
#: Lines read of each pod's log, and the most pods whose logs are read.
TAIL, PODS = 2_000, 64


# The first object that a controller creates for a run: its kind and its path.
_CHILDREN = {
    TRAINJOB.kind: ("JobSet", "jobset.x-k8s.io/v1alpha2/{place}/jobsets/{run}"),
    MPIJOB.kind: ("Job", "batch/v1/{place}/jobs/{run}-launcher"),
}


def list_rights_to_inspect_run(namespace: str, made: Sequence[Backend] = (TRAINJOB,)) -> tuple[Right, ...]:
    """Return the rights that reading everything of a run needs."""
    return (
        *(Right(one.group, one.plural, "get", namespace) for one in made),
        Right("", "pods", "list", namespace),
        Right("", "pods/log", "get", namespace),
        Right("", "events", "list", namespace),
    )


def read_live_run_objects(
    access: Access, namespace: str, run: str, kueue: str, made: Sequence[Backend] = (TRAINJOB,)
) -> list[Body]:
    """Return the objects of a run, each with its kind; empty without the TrainJob or MPIJob.

    They are the TrainJob and JobSet, or the MPIJob and its launcher's Job, and pods, Workload and events.
    `kueue` is the version of its API, empty if Kueue is not used. Raises ToolError.
    """
    place = f"namespaces/{namespace}"
    bodies: list[Body] = []
    for made_of in made:
        found = access.find(f"/apis/{made_of.api_version}/{place}/{made_of.plural}/{run}")
        if found is not None:
            bodies.append(_add_object_kind(found, made_of.kind))
            break
    else:
        return []
    child, path = _CHILDREN[made_of.kind]
    bodies += [
        _add_object_kind(one, child)
        for one in _read_optional_live_object(access, f"/apis/{path.format(place=place, run=run)}")
    ]
    bodies += [_add_object_kind(one, "Pod") for one in list_live_run_pods(access, namespace, run, (made_of,))]
    if kueue:
        for one in _list_optional_objects(access, f"/apis/{kueue}/{place}/workloads"):
            if any(owner.get("name") == run for owner in one["metadata"].get("ownerReferences") or ()):
                bodies.append(_add_object_kind(one, "Workload"))
    for one in access.items(f"/api/v1/{place}/events"):
        of = str((one.get("involvedObject") or {}).get("name") or "")
        if of == run or of.startswith((f"{run}-", f"trainjob-{run}-", f"mpijob-{run}-")):
            bodies.append(_add_object_kind(one, "Event"))
    return bodies


def read_pod_log_ends(access: Access, namespace: str, pods: Sequence[Body]) -> Iterator[tuple[Body, str]]:
    """Yield the ends of pods' logs, each with its pod: failed pods first, then the launcher, then others.

    A container without a log is left out. Raises ToolError.
    """
    for pod in sorted(pods, key=_build_pod_sort_key)[:PODS]:
        name = pod["metadata"]["name"]
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            query = {"container": str(status["name"]), "tailLines": str(TAIL)}
            path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
            try:
                said = "\n".join(access.lines(path, query, False))
            except ApiRefusedError as error:
                if error.status not in (
                    400,
                    404,
                    500,
                ):  # it has not started, is gone, or its node does not answer
                    raise
                continue
            if said:
                yield pod, f"{said}\n"


def _build_pod_sort_key(pod: Body) -> tuple[bool, bool, str]:
    phase = (pod.get("status") or {}).get("phase")
    return phase != "Failed", pod["metadata"]["labels"].get(_ROLE) != "launcher", pod["metadata"]["name"]


def _add_object_kind(body: Body, kind: str) -> Body:
    """Return the body with its kind, which items of lists do not have."""
    return {**body, "kind": kind}


def _read_optional_live_object(access: Access, path: str) -> list[Body]:
    try:
        found = access.find(path)
    except ApiRefusedError:
        return []
    return [found] if found else []


def _list_optional_objects(access: Access, path: str) -> list[Body]:
    try:
        return access.items(path)
    except ApiRefusedError:
        return []
