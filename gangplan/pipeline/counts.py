"""Checks whether a namespace has room for all runs that Git has for it: active ones, records and archived
ones.

A ResourceQuota counts objects whether they have ended or not, and refuses the next one: the sync then fails
for this run and every later one. Each run is one TrainJob, one TrainingRuntime and one JobSet, and with Kueue
one Workload (Trainer 2.1 to 2.3, Kueue 0.15 to 0.19); or one MPIJob instead of the first three. For a run by
MPI, its controller adds a ConfigMap with the hostfile and a Secret with the SSH keys (Trainer 2.1 to 2.3,
pkg/runtime/framework/plugins/mpi; MPI operator 0.6 to 0.8, pkg/controller/mpi_job_controller.go).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from gangplan.component import Component
from gangplan.emit import TreeChange, is_launch_file, is_run_file
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
# the runtime is left of them). Then runs by MPI, and ConfigMaps that exist without a run.
RUNTIMES, WORKLOADS = f"count/trainingruntimes.{TRAINJOB.group}", "count/workloads.kueue.x-k8s.io"
_TRAINJOBS, _MPIJOBS = TRAINJOB.plural, MPIJOB.plural
COUNTED: Mapping[str, tuple[str, ...]] = {
    "count/jobsets.jobset.x-k8s.io": (_TRAINJOBS, "dated"),
    f"count/{TRAINJOB.resource}": (_TRAINJOBS, "dated"),
    RUNTIMES: (_TRAINJOBS, "templates"),
    f"count/{MPIJOB.resource}": (_MPIJOBS,),
    WORKLOADS: (_TRAINJOBS, _MPIJOBS, "dated"),
    **dict.fromkeys(("configmaps", "count/configmaps"), ("by MPI", "configmaps")),
    **dict.fromkeys(("secrets", "count/secrets"), ("by MPI",)),
}
RUNS = tuple(f"count/{one.resource}" for one in BACKENDS.values())
# From this percentage on, it is time to make room; the cluster's alert starts there as well.
NEARLY = 90
_MPIJOB = f"\nkind: {MPIJOB.kind}\n"
_BY_MPI = "mpiImplementation: "
_CONFIG_MAP = re.compile(r"^kind: ConfigMap$", re.MULTILINE)
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
        cluster, part, team, *_ = path.split("/")
        if part == "runs" and scope.has_whole(cluster):
            runs[cluster, team] += is_run_file(path)
            paths.setdefault((cluster, team), []).append(path)
    dated: Counter[tuple[str, str]] = Counter()
    for one in known.values():
        if one.kept and scope.has_whole(one.cluster):
            dated[one.cluster, one.team] += one.kept - 1  # its file is counted
    found = []
    for (cluster, team), count in sorted(runs.items()):
        if _may_quota_be_nearly_full(workspace, cluster, count + dated[cluster, team]):
            own = paths.get((cluster, team), [])
            if not any(map(is_run_file, own)):  # the team was taken as a whole
                own = _list_rendered_team_files(workspace, cluster, team)
            counts = Counter[str]()
            for path in own:
                counts.update(_count_objects_of_file(workspace, path, known.get(path)))
            found += _check_team_run_quotas(
                workspace, cluster, team, counts, build_cluster_world_before_runs(worker, cluster)
            )
    return found


def _list_rendered_team_files(workspace: Workspace, cluster: str, team: str) -> list[str]:
    """Return the files that a team has in the tree: its runs and launch scripts."""
    folder = f"{cluster}/runs/{team}"
    names = os.listdir(workspace.root / RENDERED / folder)
    return [f"{folder}/{name}" for name in names if name.endswith(".yaml")]


def _count_objects_of_file(workspace: Workspace, path: str, facts: RunFacts | None) -> dict[str, int]:
    """Return what a quota counts of a file of a team, by kind.

    A run's name follows from its contents, so a file of that name in the tree shows what it is.
    """
    if is_launch_file(path):
        return {"configmaps": 1}
    if facts is not None:
        kept = facts.kept - 1 if facts.kept else 0
        by_mpi = (kept + 1) * facts.uses_mpi
        plural = BACKENDS[facts.made_of].plural
        return {plural: 1, "dated": kept, "by MPI": by_mpi, "configmaps": facts.config_maps}
    try:
        text = (workspace.root / RENDERED / path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {_TRAINJOBS: 1}
    config_maps = len(_CONFIG_MAP.findall(text))
    if _MPIJOB in text:
        return {_MPIJOBS: 1, "by MPI": 1, "configmaps": config_maps}
    if _DATED.search(text):
        return {"templates": 1, "configmaps": config_maps}
    return {_TRAINJOBS: 1, "by MPI": int(_BY_MPI in text), "configmaps": config_maps}


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

    `counts` are the team's files by what they are, and the objects that come with them.
    """
    file = workspace.clusters[cluster]
    namespace = namespace_of(file.spec, team, workspace.teams[team].spec)
    own = [body for body in world.standing if body["metadata"].get("namespace") == namespace]
    found = []
    for body in own:
        if body["kind"] != "ResourceQuota":
            continue
        for key, amount in sorted((body["spec"].get("hard") or {}).items()):
            if key not in COUNTED or (key == WORKLOADS and file.spec.gang != "kueue"):
                continue
            most = parse_quantity(str(amount)).nano // NANO
            held = {one: counts[one] for one in COUNTED[key] if counts.get(one)}
            if "configmaps" in held:
                held["configmaps"] += _count_config_maps_of_cluster(file, own)
            count = sum(held.values())
            if count and count * 100 >= most * NEARLY:
                where = _find_run_limit_place(file, workspace.components[cluster], body, key)
                what = f"{most} {key.removeprefix('count/').partition('.')[0]} on {cluster}"
                message = f"namespace {namespace} may hold {what}, and {_describe_held_objects(held, team)}"
                found.append(_build_run_count_finding(where, message, is_over=count > most))
    return found


def _count_config_maps_of_cluster(file: ClusterFile, own: Iterable[Body]) -> int:
    """Return the ConfigMaps of a namespace that belong to no run: rendered ones, and the certificates that
    Kubernetes (RootCAConfigMap, since 1.20) and OpenShift (service-ca) put into each namespace."""
    rendered = sum(1 for body in own if body["kind"] == "ConfigMap")
    return rendered + (2 if file.spec.versions.openshift else 1)


def _describe_held_objects(held: Mapping[str, int], team: str) -> str:
    """Return in words what Git has for a namespace."""
    count = sum(held.values())
    if "by MPI" in held:
        others = count - held["by MPI"]
        words = f"{count} are needed for what Git has of {team}: {held['by MPI']} for runs by MPI, one each"
        return words + (f", and {others} more" if others else "")
    words = (
        f"Git has {count} run{'s' * (count != 1)} of {team} for it: active ones, records and archived ones"
    )
    return words + (f", and {held['dated']} that schedules keep" if "dated" in held else "")


def _find_run_limit_place(file: ClusterFile, component: Component, body: Body, key: str) -> Location:
    """Return the limit in the cluster's file, or the patch that sets it."""
    where = component.place_of(("spec", "hard", key), body)
    is_patched = where != Location(component.file, 1, 1)
    return where if is_patched or key not in RUNS else file.document.where(("limits", "objects", "runs"))


def _build_run_count_finding(where: Location, message: str, *, is_over: bool) -> Finding:
    help = "Retire runs that are over (gangplan retire), or raise the limit."
    return Finding(RUN_COUNT, where, message, help, level=None if is_over else Severity.WARNING)
