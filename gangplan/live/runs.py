"""Join the runs of a cluster with those in Git: one row for each run that is in either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from gangplan.errors import ToolError
from gangplan.live.access import Access, ApiRefusedError
from gangplan.live.reasons import explain_failed_live_pods, explain_unready_live_pods
from gangplan.live.rendered import RunInGit
from gangplan.live.rights import Right
from gangplan.live.states import RUN_STATES, RunState, determine_live_run_state
from gangplan.model.backend import BACKEND_BY_KIND, TRAINJOB, Backend
from gangplan.objects import Body
from gangplan.records import dataclass

_VISIBILITY = "visibility.kueue.x-k8s.io"
MODEL = "gangplan.dev/model"  # NAME:VERSION, an annotation
RUN, TEAM, JOB = "gangplan.dev/run", "gangplan.dev/team", "gangplan.dev/job"
RIGHTS = (
    Right("kueue.x-k8s.io", "workloads", "list"),
    Right("", "pods", "list"),
    Right("", "events", "list"),
)


def list_run_rights(made: Sequence[Backend]) -> tuple[Right, ...]:
    """Return the rights that reading runs of these kinds needs."""
    return (*(Right(one.group, one.plural, "list") for one in made), *RIGHTS)


# Names in one label selector; the URL of a request must not become too long.
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run. `git` is "active", "stopped", or empty if it is not in Git; `position` counts from 1."""

    cluster: str
    team: str
    name: str
    namespace: str
    state: RunState
    git: str = ""
    source: str = ""
    position: int | None = None
    model: str = ""  # the model that it registers

    @property
    def place(self) -> tuple[str, str, int, str]:
        """Its sort key in a list."""
        return self.cluster, self.team, RUN_STATES.index(self.state.word), self.name


def join_live_runs_with_git(
    access: Access,
    cluster: str,
    homes: Mapping[str, str],
    in_git: Iterable[RunInGit],
    kueue: str,
    is_all: bool,
    made: Sequence[Backend] = (TRAINJOB,),
) -> list[RunRow]:
    """Return the runs of the teams in `homes` (namespace by team), from the cluster and from Git.

    `kueue` is the version of its API, empty if Kueue is not used; with `is_all`, one request covers the whole
    cluster. `made` are the kinds of objects that runs are made of there. Raises ToolError.
    """
    ours = {(one.team, one.name): one for one in in_git}
    rows: list[RunRow] = []
    for namespace in [""] if is_all else sorted(set(homes.values())):
        rows += _list_cluster_runs(access, cluster, homes, namespace, ours, kueue, made)
    seen = {(row.team, row.name) for row in rows}
    words = {(row.team, row.name): row.state.word for row in rows}
    for key, file in ours.items():
        if key not in seen and file.team in homes:
            gone = _find_absent_run_state(file, words)
            rows.append(
                RunRow(
                    cluster,
                    file.team,
                    file.name,
                    homes[file.team],
                    gone,
                    _describe_git_state(file),
                    file.source,
                )
            )
    return sorted(rows, key=lambda row: row.place)


def _find_absent_run_state(file: RunInGit, words: Mapping[tuple[str, str], str]) -> RunState:
    """Return the state of a run that is in Git but not on the cluster; a template may wait for runs."""
    held = file.held
    if held is None:
        why = "in rendered/, and not on the cluster: not synced yet, or pruned"
        return RunState("missing", "", "a record that is not on the cluster" if file.is_record else why)
    if file.is_record:
        return RunState("stopped", "", "a template from which no more runs are created")
    if held.by == "schedule":
        return RunState("stopped" if held.is_suspended else "scheduled", "", held.starts)
    ends = {run: words.get((file.team, run), "") for run in held.waits}
    still = [run for run, word in ends.items() if word != "complete"]
    if not held.waits:
        why = "a pipeline creates it"
    elif failed := [run for run in still if ends[run] == "failed"]:
        why = f"it is not created: {failed[0]} has failed"
    elif still:
        why = f"until {' and '.join(still)} {'is' if len(still) == 1 else 'are'} complete"
    else:
        why = f"about to be created: all runs before it are complete; else see kubectl logs job/{held.job}"
    return RunState("waiting", "", why)


def _list_cluster_runs(
    access: Access,
    cluster: str,
    homes: Mapping[str, str],
    namespace: str,
    ours: Mapping[tuple[str, str], RunInGit],
    kueue: str,
    made: Sequence[Backend],
) -> Iterator[RunRow]:
    """Yield the runs of a cluster in a namespace, or everywhere."""
    prefix = f"/namespaces/{namespace}" if namespace else ""
    paths = {one: f"/apis/{one.api_version}{prefix}/{one.plural}" for one in made}
    bodies = [
        {**body, "kind": one.kind}
        for one, path in paths.items()
        for body in access.items(path, {"labelSelector": RUN})
    ]
    if not bodies and all(access.find(path, {"limit": "1"}) is None for path in paths.values()):
        kinds = " or ".join(one.resource for one in made)
        raise ToolError(
            f"the API server of context '{access.context}' serves no {kinds}, so it has no runs",
            f"Install {made[0].controller} there, or choose another context with --context.",
        )
    workloads = access.items(f"/apis/{kueue}{prefix}/workloads") if kueue and bodies else []
    by_run = {
        (one["metadata"]["namespace"], owner["name"]): one
        for one in workloads
        for owner in one["metadata"].get("ownerReferences") or ()
        if owner.get("kind") in BACKEND_BY_KIND
    }
    rows = []
    for body in bodies:
        metadata = body["metadata"]
        team = metadata["labels"].get(TEAM, "")
        if homes.get(team) != metadata["namespace"]:
            continue  # anybody may write that label, so it does not prove that the run is the team's
        workload = by_run.get((metadata["namespace"], metadata["name"]))
        file = ours.get((team, metadata["name"])) or _find_schedule_template_of_live_run(
            ours.get((team, metadata["labels"][RUN]))
        )
        row = RunRow(
            cluster,
            team,
            metadata["name"],
            metadata["namespace"],
            determine_live_run_state(body, workload),
            _describe_git_state(file) if file else "",
            file.source if file else "",
            model=(metadata.get("annotations") or {}).get(MODEL, ""),
        )
        rows.append((row, workload))
    plain = [row for row, _ in rows]
    for row in _add_pod_reasons(access, plain, _find_local_queue_positions(access, rows), made):
        yield _explain_git_mismatch_of_live_run(row)


def _find_schedule_template_of_live_run(file: RunInGit | None) -> RunInGit | None:
    """Return the file of the template from which a schedule created a run, found by the run's label."""
    if file is None or file.held is None:
        return None
    is_schedule = file.held.by == "schedule" or file.is_record
    return replace(file, is_record=False) if is_schedule else None


def _describe_git_state(file: RunInGit) -> str:
    return "stopped" if file.is_record else "active"


def _explain_git_mismatch_of_live_run(row: RunRow) -> RunRow:
    """Add a reason if Git does not have a run, or has it as a record while the cluster still runs it."""
    said = row.state.reason
    if not row.git and row.state.word not in ("complete", "failed"):
        more = "not in rendered/: removed from Git, or from another branch"
    elif row.git == "stopped" and row.state.word != "stopped":
        more = "stopped in Git, and not synced yet"
    else:
        return row
    words = f"{said}; {more}" if said else more
    return replace(row, state=replace(row.state, reason=words))


def _find_local_queue_positions(
    access: Access, rows: Sequence[tuple[RunRow, Body | None]]
) -> dict[tuple[str, str], int]:
    """Return the positions of waiting runs in their LocalQueues, if Kueue's visibility API is readable.

    Kueue counts from 0 (apis/visibility, PendingWorkload; v1beta1 and v1beta2 alike).
    """
    names: dict[tuple[str, str], dict[str, str]] = {}
    for row, workload in rows:
        if workload is not None and row.state.word in ("queued", "preempted"):
            queue = str((workload.get("spec") or {}).get("queueName") or "")
            names.setdefault((row.namespace, queue), {})[workload["metadata"]["name"]] = row.name
    found: dict[tuple[str, str], int] = {}
    group = _read_optional_live_object(access, f"/apis/{_VISIBILITY}") if names else None
    if group is None:
        return found
    version = str(group["preferredVersion"]["groupVersion"])
    for (namespace, queue), known in names.items():
        path = f"/apis/{version}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
        for one in (_read_optional_live_object(access, path) or {}).get("items") or ():
            run = known.get(one["metadata"]["name"])
            if run is not None:
                found[namespace, run] = int(one["positionInLocalQueue"]) + 1
    return found


def _read_optional_live_object(access: Access, path: str) -> Body | None:
    """Return the body at a path; None if it is forbidden or missing, since it is optional."""
    try:
        found: Body | None = access.find(path)
    except ApiRefusedError:
        return None
    return found


def _add_pod_reasons(
    access: Access,
    rows: Sequence[RunRow],
    positions: Mapping[tuple[str, str], int],
    made: Sequence[Backend],
) -> Iterator[RunRow]:
    """Yield the rows with reasons from their pods, for runs that wait for pods or failed."""
    asked: dict[str, list[str]] = {}
    for row in rows:
        if row.state.word in ("admitted", "failed"):
            asked.setdefault(row.namespace, []).append(row.name)
    pods: dict[tuple[str, str], list[Body]] = {}
    for namespace, names in asked.items():
        for label, start in product((one.run_label for one in made), range(0, len(names), _AT_ONCE)):
            query = {"labelSelector": f"{label} in ({','.join(names[start : start + _AT_ONCE])})"}
            for pod in access.items(f"/api/v1/namespaces/{namespace}/pods", query):
                pods.setdefault((namespace, pod["metadata"]["labels"][label]), []).append(pod)
    for row in rows:
        key, found = (row.namespace, row.name), row.state
        if found.word == "admitted":
            why = explain_unready_live_pods(pods.get(key, [])) or _find_last_warning_event(access, row)
            found = replace(found, reason="; ".join(filter(None, (found.reason, why))))
        elif found.word == "failed":
            found = replace(found, reason=explain_failed_live_pods(pods.get(key, [])) or found.reason)
            if row.model:
                said = f"model {row.model} is not registered, and the run that trained it has succeeded"
                found = replace(found, reason="; ".join(filter(None, (said, found.reason))))
        elif found.word in ("new", "suspended", "queued") and not found.reason:
            found = replace(found, reason=_find_last_warning_event(access, row))
        yield replace(row, state=found, position=positions.get(key))


def _find_last_warning_event(access: Access, row: RunRow) -> str:
    """Return the last warning about a run, as its controller wrote it."""
    query = {"fieldSelector": f"involvedObject.name={row.name},type=Warning"}
    events = access.items(f"/api/v1/namespaces/{row.namespace}/events", query)
    if not events:
        return ""
    last = max(events, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
    return " ".join(str(last.get("message") or "").split())
