"""Checks whether a namespace has room for all runs that Git has for it: active ones, records and archived
ones.

A ResourceQuota counts objects whether they have ended or not, and refuses the next one: the sync then fails
for this run and every later one. Each run is one TrainJob, one TrainingRuntime and one JobSet, and with Kueue
one Workload (Trainer 2.1 to 2.3, Kueue 0.15 to 0.19); or one MPIJob instead of the first three.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gangplan.component import Component
from gangplan.emit import TreeChange, is_run_file
from gangplan.findings import Finding, Location
from gangplan.kueue.units import NANO
from gangplan.model.backend import BACKENDS, MPIJOB, TRAINJOB
from gangplan.model.quantity import parse_quantity
from gangplan.model.run_facts import RunFacts
from gangplan.objects import Body
from gangplan.pipeline.worker import WorkerState, build_cluster_world_before_runs
from gangplan.plan.names import DATED_SUFFIX
from gangplan.rules.model import Severity
from gangplan.rules.runs import RUN_COUNT
from gangplan.spec.namespaces import namespace_of
from gangplan.validate.world import World
from gangplan.workspace import RENDERED, ClusterFile, Workspace

# What quotas count: TrainJobs, MPIJobs, dated runs (which share a runtime), and records of templates (only
# the runtime is left of them).
RUNTIMES, WORKLOADS = f"count/trainingruntimes.{TRAINJOB.group}", "count/workloads.kueue.x-k8s.io"
_TRAINJOBS, _MPIJOBS = TRAINJOB.plural, MPIJOB.plural
COUNTED: Mapping[str, tuple[str, ...]] = {
    "count/jobsets.jobset.x-k8s.io": (_TRAINJOBS, "dated"),
    f"count/{TRAINJOB.resource}": (_TRAINJOBS, "dated"),
    RUNTIMES: (_TRAINJOBS, "templates"),
    f"count/{MPIJOB.resource}": (_MPIJOBS,),
    WORKLOADS: (_TRAINJOBS, _MPIJOBS, "dated"),
}
RUNS = tuple(f"count/{one.resource}" for one in BACKENDS.values())
# From this percentage on, it is time to make room; the cluster's alert starts there as well.
NEARLY = 90
_MPIJOB = f"\nkind: {MPIJOB.kind}\n"
# The run of a schedule's template, in the ConfigMap that holds it.
_DATED = re.compile(rf"^ +name: \S*-{DATED_SUFFIX}$", re.MULTILINE)
_STUB: Body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "training"}}


def check_namespace_object_counts(
    worker: WorkerState,
    changes: Iterable[TreeChange],
    texts: Iterable[str],
    facts: Iterable[RunFacts] = (),
    standing: Mapping[tuple[str, str], int] = {},
) -> list[Finding]:
    """Report namespaces without enough room, on clusters that are worked on as a whole.

    The files of all runs are in `changes` if there is a stage, else in `texts`. For teams that were taken as
    a whole, `standing` has the number of their runs, by cluster and team. Schedules in `facts` count with the
    runs that they keep in the cluster.
    """
    scope, workspace = worker.options.scope, worker.workspace
    known = {one.path: one for one in facts}
    runs = Counter({one: count for one, count in standing.items() if scope.has_whole(one[0])})
    paths: dict[tuple[str, str], list[str]] = {}
    for path in {*(change.path for change in changes), *texts}:
        cluster, _, team, *_ = path.split("/")
        if is_run_file(path) and scope.has_whole(cluster):
            runs[cluster, team] += 1
            paths.setdefault((cluster, team), []).append(path)
    dated: Counter[tuple[str, str]] = Counter()
    for one in known.values():
        if one.kept and scope.has_whole(one.cluster):
            dated[one.cluster, one.team] += one.kept - 1  # its file is counted
    found = []
    for (cluster, team), count in sorted(runs.items()):
        if _may_quota_be_nearly_full(workspace, cluster, count + dated[cluster, team]):
            own = paths.get((cluster, team)) or _list_rendered_team_runs(workspace, cluster, team)
            counts = Counter(_find_run_quota_kind(workspace, path, known.get(path)) for path in own)
            counts["dated"] = dated[cluster, team]
            found += _check_team_run_quotas(
                workspace, cluster, team, counts, build_cluster_world_before_runs(worker, cluster)
            )
    return found


def _list_rendered_team_runs(workspace: Workspace, cluster: str, team: str) -> Iterator[str]:
    """Yield the runs that a team has in the tree."""
    folder = f"{cluster}/runs/{team}"
    for name in os.listdir(workspace.root / RENDERED / folder):
        if name.endswith(".yaml") and is_run_file(f"{folder}/{name}"):
            yield f"{folder}/{name}"


def _find_run_quota_kind(workspace: Workspace, path: str, facts: RunFacts | None) -> str:
    """Return as what a quota counts a run.

    A run's name follows from its contents, so a file of that name in the tree shows what it is.
    """
    if facts is not None:
        return BACKENDS[facts.made_of].plural
    try:
        text = (workspace.root / RENDERED / path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _TRAINJOBS
    if _MPIJOB in text:
        return _MPIJOBS
    return "templates" if _DATED.search(text) else _TRAINJOBS


def _may_quota_be_nearly_full(workspace: Workspace, cluster: str, count: int) -> bool:
    """Return whether a quota could be nearly full: the one of the cluster's file, or one that a patch
    sets."""
    limit = workspace.clusters[cluster].spec.limits.objects.runs
    patches = workspace.components[cluster].patches
    return count * 100 >= limit * NEARLY or any(one.target.matches_kind(_STUB) for one in patches)


def _check_team_run_quotas(
    workspace: Workspace, cluster: str, team: str, counts: Mapping[str, int], world: World
) -> list[Finding]:
    """Check the quotas of a team's namespace.

    `counts` are the files of runs by what they are, and the runs that schedules keep in addition.
    """
    file = workspace.clusters[cluster]
    namespace = namespace_of(file.spec, team, workspace.teams[team].spec)
    found = []
    for body in world.standing:
        if body["kind"] != "ResourceQuota" or body["metadata"].get("namespace") != namespace:
            continue
        for key, amount in sorted((body["spec"].get("hard") or {}).items()):
            if key not in COUNTED or (key == WORKLOADS and file.spec.gang != "kueue"):
                continue
            most = parse_quantity(str(amount)).nano // NANO
            count = sum(counts.get(one, 0) for one in COUNTED[key])
            if count and count * 100 >= most * NEARLY:
                where = _find_run_limit_place(file, workspace.components[cluster], body, key)
                dated = counts.get("dated", 0) if "dated" in COUNTED[key] else 0
                found.append(
                    _build_run_count_finding(where, cluster, team, namespace, key, (count, dated), most)
                )
    return found


def _find_run_limit_place(file: ClusterFile, component: Component, body: Body, key: str) -> Location:
    """Return the limit in the cluster's file, or the patch that sets it."""
    where = component.place_of(("spec", "hard", key), body)
    is_patched = where != Location(component.file, 1, 1)
    return where if is_patched or key not in RUNS else file.document.where(("limits", "objects", "runs"))


def _build_run_count_finding(
    where: Location, cluster: str, team: str, namespace: str, key: str, counts: tuple[int, int], most: int
) -> Finding:
    count, dated = counts
    what = key.removeprefix("count/").partition(".")[0]
    message = (
        f"namespace {namespace} may hold {most} {what} on {cluster}, and Git has {count} runs of {team}"
        " for it: active ones, records and archived ones"
        + (f", and {dated} that schedules keep" if dated else "")
    )
    is_over = count > most
    help = "Retire runs that are over (gangplan retire), or raise the limit."
    return Finding(RUN_COUNT, where, message, help, level=None if is_over else Severity.WARNING)
