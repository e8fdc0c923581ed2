"""The stages of a command, from the workspace to findings and texts. Only here is their order known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gangplan.component import no_match
from gangplan.emit import Stage
from gangplan.engines import pick
from gangplan.errors import InternalError
from gangplan.findings import Finding, Location, about, in_order
from gangplan.pipeline.blame import without_echoes
from gangplan.pipeline.checks import check_together
from gangplan.pipeline.clusters import expand_cluster
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.runs import expand_specs
from gangplan.pipeline.scan import scan, without, without_repeats
from gangplan.pipeline.scope import select, within
from gangplan.pipeline.worker import Expanded, WorkerOptions, WorkerState, worker_of
from gangplan.policy.checks import check_policies
from gangplan.resolve.checks import check_site
from gangplan.resolve.compat import check_versions
from gangplan.resolve.platform import resolve_platform
from gangplan.resolve.scans import check_scans
from gangplan.resolve.tenant_checks import check_tenants
from gangplan.resolve.upgrade import with_versions
from gangplan.resolve.waiver_checks import check_waivers
from gangplan.rules.core import JOB_NAME_TWICE
from gangplan.validate.kueue.contention import RunDemand
from gangplan.waivers import Subject, excuse, excuse_by_file
from gangplan.workspace import OVERLAYS, SPECS, SpecFile, Workspace, load_spec

# Specs per task: enough to make a kustomize start worth while, few enough to keep all workers busy.
CHUNK = 50


@dataclass(slots=True)
class _Course:
    """A command on its way through the stages: what it has, and what it found so far.

    `workspace` has the versions that were asked for. What tasks yield and only the whole can be judged by:
    patches that matched, by cluster; jobs by cluster, namespace and name; what runs ask of Kueue, by cluster.
    """

    request: Request
    workspace: Workspace
    stage: Stage | None
    result: Result
    files: list[SpecFile] = field(default_factory=list)
    worker: WorkerState | None = None
    matched: dict[str, set[int]] = field(default_factory=dict)
    places: dict[tuple[str, str, str], Location] = field(default_factory=dict)
    demands: dict[str, dict[str, tuple[Location, RunDemand]]] = field(default_factory=dict)

    @property
    def started(self) -> WorkerState:
        """The worker. Raises InternalError before it is started."""
        if self.worker is None:
            raise InternalError("a worker was used before it was started")
        return self.worker

    def take(self, outcome: Expanded) -> None:
        """Add what a task yields."""
        result = self.result
        result.findings += outcome.findings
        result.changes += outcome.changes
        result.runs += outcome.runs
        result.texts |= outcome.texts
        result.objects += outcome.objects
        result.active += outcome.active
        result.policies |= outcome.policies
        for cluster, indexes in outcome.matched.items():
            self.matched.setdefault(cluster, set()).update(indexes)
        for cluster, job, place, demand in outcome.demands:
            self.demands.setdefault(cluster, {})[job] = (place, demand)
        for cluster, namespace, job, place in outcome.jobs:
            self._check_unique(cluster, namespace, job, place)

    def _check_unique(self, cluster: str, namespace: str, job: str, place: Location) -> None:
        """Two files of one namespace must not describe one job."""
        first = self.places.setdefault((cluster, namespace, job), place)
        if first != place:
            message = f"job '{job}' is defined twice in namespace {namespace}; first in {first}"
            help = "Rename one of the files, or set name: in one."
            self.result.findings.append(Finding(JOB_NAME_TWICE, place, message, help))


def run(request: Request, workspace: Workspace, stage: Stage | None) -> Result:
    """Everything up to the texts, which are kept where there is no stage to put them on."""
    result = Result(workspace, list(workspace.findings))
    if workspace.is_refused:
        return result
    at_versions = with_versions(workspace, request.versions, request.clusters)
    course = _Course(request, at_versions, stage, result)
    for step in STAGES if workspace.catalog is not None and workspace.clusters else UNRESOLVED:
        step(course)
    return result


def _check_platform(course: _Course) -> None:
    """Clusters, teams, policies and waivers, before any spec is looked at."""
    course.result.findings += platform_findings(course.workspace)


def _read_specs(course: _Course) -> None:
    """Specs that cannot be read, where nothing can be resolved."""
    files = course.workspace.spec_files
    course.result.findings += [one for file in files for one in load_spec(course.workspace.root, file)[1]]
    course.result.specs = len(files)


def _choose_scope(course: _Course) -> None:
    """The clusters, teams and specs that flags and named files mean. Raises UserError."""
    request, result = course.request, course.result
    result.scope, course.files = select(
        course.workspace, request.clusters, request.teams, request.specs, Path.cwd()
    )
    result.specs, result.files = len(course.files), tuple(file.file for file in course.files)


def _start_worker(course: _Course) -> None:
    """What all tasks work with."""
    request, result = course.request, course.result
    options = WorkerOptions(
        request.clusters,
        course.stage,
        course.stage is None,
        request.keep_runs,
        request.versions,
        request.with_flows,
        closed_clusters(course.workspace, result.findings),
        result.scope,
    )
    course.worker = worker_of(course.workspace, options)


def _expand_specs(course: _Course) -> None:
    """Runs: resolved, planned, generated, built, checked and staged, by as many workers as are asked for."""
    files = course.files
    engine = pick(course.request.engine, course.request.jobs, len(files))
    chunks = [tuple(files[start : start + CHUNK]) for start in range(0, len(files), CHUNK)]
    for outcome in engine.map(expand_specs, chunks, course.started):
        course.take(outcome)


def _expand_clusters(course: _Course) -> None:
    """What stands on each cluster before any run: its platform, its tenants."""
    scope, worker = course.result.scope, course.started
    standing = {name for name in course.workspace.clusters if scope.tenants(name) is not None}
    for cluster in sorted(standing - worker.options.closed):
        course.take(expand_cluster(worker, cluster, scope.tenants(cluster) or ()))


def _check_together(course: _Course) -> None:
    """Runs that stand in each other's way, cluster by cluster."""
    for cluster, demands in sorted(course.demands.items()):
        pools = course.workspace.clusters[cluster].spec.node_pools
        named = {place: name.split("/") for name, (place, _) in demands.items()}
        for finding in check_together(cluster, pools, demands):
            team, job = named[finding.where]
            excused = excuse([finding], course.workspace.waivers, Subject(cluster, team, job))
            course.result.findings += about(cluster, excused)


def _drop_echoes(course: _Course) -> None:
    """One cause is told once, however many runs suffer from it."""
    course.result.findings = without_echoes(course.result.findings)


def _check_patches(course: _Course) -> None:
    """A patch that matches nothing is a mistake: kustomize would pass it in silence."""
    result = course.result
    if result.has_errors:
        return
    for cluster in filter(result.scope.has_whole, course.workspace.clusters):
        jobs = {job for name, _, job in course.places if name == cluster}
        for index, patch in enumerate(course.workspace.components[cluster].patches):
            if index not in course.matched.get(cluster, set()):
                result.findings.append(no_match(cluster, patch, jobs))


def _keep_scope(course: _Course) -> None:
    """Every error, and of the rest what is about the part that is worked on."""
    result = course.result
    result.findings = within(result.findings, result.scope, course.places)


def _scan_for_secrets(course: _Course) -> None:
    """The findings in order, with those about secrets; no other finding repeats a secret."""
    result = course.result
    found, values = scan(course.workspace.root, result.scope.reads)
    result.findings = in_order([*without_repeats(without(result.findings, values), found), *found])


# The order, for all commands that render. Each stage adds to the course what it finds.
STAGES: tuple[Callable[[_Course], None], ...] = (
    _check_platform,
    _choose_scope,
    _start_worker,
    _expand_specs,
    _expand_clusters,
    _check_together,
    _drop_echoes,
    _check_patches,
    _keep_scope,
    _scan_for_secrets,
)
# What is left where there is no catalog or no cluster: a spec that cannot be read is told now too.
UNRESOLVED = (_check_platform, _read_specs, _scan_for_secrets)


def platform_findings(workspace: Workspace) -> list[Finding]:
    """What is wrong with clusters and teams before any spec is looked at."""
    findings: list[Finding] = []
    for name, cluster in workspace.clusters.items():
        findings += workspace.component_findings[name]
        findings += check_versions(cluster, resolve_platform(cluster))
        findings += check_site(workspace, cluster)
    findings += check_scans(workspace.root)
    findings = excuse_by_file([*findings, *check_tenants(workspace)], workspace.waivers)
    findings += check_policies(workspace)
    if workspace.waivers:
        findings += check_waivers(workspace)
    return findings


def closed_clusters(workspace: Workspace, findings: list[Finding]) -> frozenset[str]:
    """Clusters with an error in their own files, or in those of a team on them; the others go on.

    Nothing is written as long as there is any error, but every problem is told in one run.
    """
    files = {finding.where.file for finding in findings if finding.is_error}
    parts = [file.split("/") for file in files]
    broken = {part[1] for part in parts if part[0] == OVERLAYS and len(part) > 1}
    teams = {part[1] for part in parts if part[0] == SPECS and part[2:] == ["team.yaml"]}
    on_them = {name for name, cluster in workspace.clusters.items() if teams & set(cluster.spec.teams)}
    return frozenset(broken | on_them)
