"""The stages in order: load, select, expand (on workers), commit. The only place that knows the order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gangplan.emit import Change, Outcome, Stage
from gangplan.emit.lock import locked
from gangplan.engines import pick
from gangplan.findings import Finding, Location, about, in_order
from gangplan.overlay import load_component, no_match
from gangplan.pipeline import worker
from gangplan.pipeline.blame import without_echoes
from gangplan.pipeline.checks import check_together
from gangplan.pipeline.foreign import Today, foreign
from gangplan.pipeline.scan import scan, without, without_repeats
from gangplan.pipeline.scope import EVERYTHING, Scope, select, within
from gangplan.pipeline.worker import Expanded, Options, Run
from gangplan.policy.checks import check_policies
from gangplan.resolve.checks import check_site
from gangplan.resolve.compat import check_versions
from gangplan.resolve.platform import resolve_platform
from gangplan.resolve.scans import check_scans
from gangplan.resolve.tenant_checks import check_tenants
from gangplan.resolve.upgrade import Pairs, with_versions
from gangplan.resolve.waiver_checks import check_waivers
from gangplan.rules.core import JOB_NAME_TWICE
from gangplan.spec.namespaces import namespace_of
from gangplan.validate.kueue.contention import Demand
from gangplan.waivers import Subject, excuse, excuse_by_file
from gangplan.workspace import OVERLAYS, RENDERED, SPECS, SpecFile, Workspace, load, load_spec

# Specs per task: enough to make a kustomize start worth while, few enough to keep all workers busy.
CHUNK = 50


@dataclass(frozen=True, slots=True)
class Request:
    """What a command asks for."""

    root: Path
    clusters: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()  # the files that are named, specs or others
    engine: str = "auto"
    jobs: int = 0
    keep_runs: bool = False
    versions: Pairs = ()  # render as if the clusters had these
    with_flows: bool = False  # a preview also says who may talk to whom


@dataclass(slots=True)
class Result:
    """What came of it."""

    findings: list[Finding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    specs: int = 0
    objects: int = 0
    files: tuple[str, ...] = ()  # the specs, by their files
    active: int = 0  # runs that are not archived
    policies: set[str] = field(default_factory=set)  # those that judged
    scope: Scope = EVERYTHING  # what was worked on
    strangers: list[Finding] = field(default_factory=list)  # of --check: what is not gangplan's in the tree

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(finding.is_error for finding in self.findings)

    @property
    def differences(self) -> list[Change]:
        """The changes that are not 'same'."""
        return [change for change in self.changes if change.outcome is not Outcome.SAME]


def render(request: Request, tree: Path | None = None, check: bool = False) -> Result:
    """Render into `tree` (default: rendered/). With `check`, nothing is written: `changes` tell the drift."""
    with _staged(request.root, tree or request.root / RENDERED) as stage:
        result = _expand(request, stage=stage, keeps_texts=False)
        if result.has_errors:
            return result
        wanted = {change.path for change in result.changes}
        removed = stage.obsolete(wanted, result.scope.covers)
        result.changes += [Change(path, Outcome.REMOVED) for path in removed]
        result.changes.sort(key=lambda change: change.path)
        if check:
            _attach_texts(result, stage)
            result.strangers = foreign(stage.tree)
        else:
            stage.commit(removed)
        return result


def preview(request: Request) -> Result:
    """Render without writing: the runs and the texts stay in memory."""
    return _expand(request, stage=None, keeps_texts=True)


def strangers(request: Request, result: Result, folder: Path) -> list[Finding]:
    """What stands in rendered/ and is not gangplan's; `folder` holds what is rendered now."""
    tree = request.root / RENDERED
    if result.has_errors:  # then not all is rendered that would be
        return foreign(tree)
    workspace = load(request.root)[0]
    homes = {
        (name, team): namespace_of(cluster.spec, team, workspace.teams[team].spec)
        for name, cluster in workspace.clusters.items()
        for team in cluster.spec.teams
        if team in workspace.teams
    }
    return foreign(tree, Today(folder, homes), result.scope.covers)


@contextmanager
def rendered_aside(request: Request) -> Iterator[tuple[Result, Path]]:
    """Render into a temporary folder for as long as the caller looks at it."""
    with tempfile.TemporaryDirectory(prefix="gangplan-") as folder:
        stage = Stage(Path(folder) / "nothing", Path(folder) / "tree")
        stage.folder.mkdir()
        yield _expand(request, stage=stage, keeps_texts=False), stage.folder


@contextmanager
def _staged(root: Path, tree: Path) -> Iterator[Stage]:
    """The stage of a tree, under its lock; whatever happens, the stage is gone afterwards."""
    is_default = tree == root / RENDERED
    state = root / ".gangplan" if is_default else tree.parent / f".{tree.name}.gangplan"
    with locked(state):
        stage = Stage.beside(tree, state)
        try:
            yield stage
        finally:
            stage.discard()
            if not is_default:
                (state / "lock").unlink(missing_ok=True)
                state.rmdir()


def platform_findings(root: Path, workspace: Workspace) -> list[Finding]:
    """What is wrong with clusters and teams before any spec is looked at."""
    findings: list[Finding] = []
    for name, cluster in workspace.clusters.items():
        findings += load_component(root, name)[1]
        findings += check_versions(cluster, resolve_platform(cluster))
        findings += check_site(workspace, cluster)
    findings += check_scans(root)
    findings = excuse_by_file([*findings, *check_tenants(workspace)], workspace.waivers)
    findings += check_policies(workspace)
    if workspace.waivers:
        findings += check_waivers(workspace)
    return findings


def _expand(request: Request, stage: Stage | None, keeps_texts: bool) -> Result:
    """Everything up to the texts."""
    loaded, findings = load(request.root)
    if loaded.is_refused:
        return Result(findings)
    workspace = with_versions(loaded, request.versions, request.clusters)
    findings = [*findings, *platform_findings(request.root, workspace)]
    if workspace.catalog is None or not workspace.clusters:
        # Nothing can be resolved without these, but a spec that cannot be read is told now too.
        specs = [finding for file in workspace.spec_files for finding in load_spec(request.root, file)[1]]
        result = Result([*findings, *specs], specs=len(workspace.spec_files))
        return _with_secrets(request.root, result)
    scope, files = select(workspace, request.clusters, request.teams, request.specs, Path.cwd())
    result = Result(list(findings), specs=len(files), files=tuple(file.file for file in files), scope=scope)
    closed = closed_clusters(workspace, findings)
    collector = _Collector(workspace, result, closed)
    collector.collect(request, files, stage, keeps_texts)
    result.findings = within(result.findings, scope, collector.places)
    return _with_secrets(request.root, result)


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


def _with_secrets(root: Path, result: Result) -> Result:
    """The findings in order, with those about secrets; no other finding repeats a secret."""
    found, values = scan(root, result.scope.reads)
    result.findings = in_order([*without_repeats(without(result.findings, values), found), *found])
    return result


@dataclass(slots=True)
class _Collector:
    """Puts the tasks' outcomes together, and finds what only the whole shows."""

    workspace: Workspace
    result: Result
    closed: frozenset[str] = frozenset()
    matched: dict[str, set[int]] = field(default_factory=dict)
    places: dict[tuple[str, str, str], Location] = field(default_factory=dict)
    demands: dict[str, dict[str, tuple[Location, Demand]]] = field(default_factory=dict)

    def collect(
        self, request: Request, files: list[SpecFile], stage: Stage | None, keeps_texts: bool
    ) -> None:
        """Run all tasks and take their outcomes in order."""
        options = Options(
            request.root,
            request.clusters,
            stage,
            keeps_texts,
            request.keep_runs,
            request.versions,
            request.with_flows,
            self.closed,
            self.result.scope,
        )
        engine = pick(request.engine, request.jobs, len(files))
        chunks = [tuple(files[start : start + CHUNK]) for start in range(0, len(files), CHUNK)]
        for outcome in engine.map(worker.expand_specs, chunks, worker.set_up, (options,)):
            self._take(outcome)
        scope = self.result.scope
        standing = [name for name in self.workspace.clusters if scope.tenants(name) is not None]
        if standing:
            worker.set_up(options)
        for cluster in sorted(set(standing) - self.closed):
            self._take(worker.expand_cluster(cluster, scope.tenants(cluster) or ()))
        self._check_together()
        self.result.findings = without_echoes(self.result.findings)
        if not self.result.has_errors:
            self._check_patches()

    def _take(self, outcome: Expanded) -> None:
        self.result.findings += outcome.findings
        self.result.changes += outcome.changes
        self.result.runs += outcome.runs
        self.result.texts |= outcome.texts
        self.result.objects += outcome.objects
        self.result.active += outcome.active
        self.result.policies |= outcome.policies
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
            message = f"job '{job}' is described twice in namespace {namespace}; first in {first}"
            self.result.findings.append(
                Finding(JOB_NAME_TWICE, place, message, "Rename one of the files, or set name: in one.")
            )

    def _check_together(self) -> None:
        """Runs that stand in each other's way, cluster by cluster."""
        for cluster, demands in sorted(self.demands.items()):
            pools = self.workspace.clusters[cluster].spec.node_pools
            named = {place: name.split("/") for name, (place, _) in demands.items()}
            for finding in check_together(cluster, pools, demands):
                team, job = named[finding.where]
                subject = Subject(cluster, team, job)
                excused = excuse([finding], self.workspace.waivers, subject)
                self.result.findings += about(cluster, excused)

    def _check_patches(self) -> None:
        """A patch that matches nothing is a mistake: kustomize would pass it in silence."""
        for cluster in filter(self.result.scope.has_whole, self.workspace.clusters):
            component, _ = load_component(self.workspace.root, cluster)
            jobs = {job for name, _, job in self.places if name == cluster}
            for index, patch in enumerate(component.patches):
                if index not in self.matched.get(cluster, set()):
                    self.result.findings.append(no_match(cluster, patch, jobs))


def _attach_texts(result: Result, stage: Stage) -> None:
    """For --check: the new text of each file that differs, so that the difference can be shown."""
    for change in result.differences:
        if change.outcome is not Outcome.REMOVED:
            result.texts[change.path] = (stage.folder / change.path).read_text(encoding="utf-8")
