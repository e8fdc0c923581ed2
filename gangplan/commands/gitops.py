"""`gangplan gitops argocd` and `gangplan gitops flux`: what a sync engine reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.commands.absent import no_cluster
from gangplan.commands.common import print_findings
from gangplan.errors import Exit, UserError
from gangplan.gitops.argocd import ArgoCluster, ArgoOptions, argocd_objects
from gangplan.gitops.ci import check_folder
from gangplan.gitops.flux import flux_objects
from gangplan.gitops.made import headed
from gangplan.gitops.settings import settings_of
from gangplan.gitops.source import RepositorySource
from gangplan.model.support import TRAINER
from gangplan.model.version import parse_version
from gangplan.objects import dump_all
from gangplan.pipeline.request import Request
from gangplan.policy.export import guardrails
from gangplan.records import dataclass
from gangplan.resolve.site import has_cronjobs
from gangplan.rules.model import Severity
from gangplan.spec.cluster import Cluster
from gangplan.spec.namespaces import namespace_of
from gangplan.tools.git import folder_inside
from gangplan.workspace import RENDERED, Workspace, load_workspace

PARTS = ("platform", "tenants", "runs")


@dataclass(frozen=True, slots=True)
class Argo:
    """What decides the files of Argo CD beside the workspace: the repository, options, clusters by their names or
    servers in Argo CD, and the image of the plugin, if it is to read the tree."""

    source: RepositorySource
    options: ArgoOptions = ArgoOptions()
    destinations: Mapping[str, str] | None = None
    image: str = ""


def argocd_files(
    workspace: Workspace,
    clusters: Sequence[str],
    argo: Argo,
    command: Sequence[str],
    is_rendered: bool = True,
) -> dict[str, str]:
    """A file per cluster, and `settings/` for Argo CD itself. Raises UserError for a Trainer that is not known."""
    there = argo.destinations or {}
    for name in there:
        _known(workspace, name)
    files = {}
    for name in clusters:
        parts = _rendered(workspace, name) if is_rendered else PARTS
        cluster = _argo_cluster(workspace, name, there.get(name, ""))
        files[f"{name}.yaml"] = dump_all(argocd_objects(cluster, argo.source, parts, argo.options))
    for name, bodies in settings_of(argo.source.namespace, argo.options, argo.image).items():
        files[f"settings/{name}"] = dump_all(bodies)
    return headed(command, files)


def flux_files(
    workspace: Workspace,
    clusters: Sequence[str],
    source: RepositorySource,
    command: Sequence[str],
    is_rendered: bool = True,
) -> dict[str, str]:
    """A file per cluster: its source and Kustomizations."""
    files = {}
    for name in clusters:
        spec = workspace.clusters[name].spec
        parts = _rendered(workspace, name) if is_rendered else PARTS
        files[f"{name}.yaml"] = dump_all(
            flux_objects(name, source, parts, spec.gang == "kueue", bool(spec.multi_kueue), controllers(spec))
        )
    return headed(command, files)


def opened(request: Request) -> tuple[Workspace, list[str]] | Exit:
    """The workspace and the clusters that are asked for; its findings are printed. Raises UserError."""
    workspace = load_workspace(request.root)
    print_findings(workspace.findings)
    if any(finding.severity is Severity.ERROR for finding in workspace.findings):
        return Exit.INPUT
    for name in request.clusters:
        _known(workspace, name)
    return workspace, list(request.clusters or workspace.clusters)


def source_of(
    request: Request, repository: str, revision: str, namespace: str, prefix: str | None
) -> RepositorySource:
    """Where the engine finds the workspace. Raises UserError."""
    if prefix is None:
        # An OCI artifact is made of the workspace alone.
        prefix = None if repository.startswith("oci://") else folder_inside(request.root)
    folder = check_folder(prefix or ".")
    return RepositorySource(repository, revision, namespace, "" if folder == "." else folder)


def pairs(flag: str, given: Sequence[str], example: str) -> list[tuple[str, str]]:
    """Values of a flag of the form NAME=VALUE. Raises UserError."""
    found = [one.partition("=") for one in given]
    for one, (name, equals, value) in zip(given, found, strict=True):
        if not (name and equals and value):
            raise UserError(f"{flag} {one}: not of the form {example}", f"Write {flag} {example}.")
    return [(name, value) for name, _, value in found]


def _argo_cluster(workspace: Workspace, name: str, destination: str) -> ArgoCluster:
    spec = workspace.clusters[name].spec
    versions = spec.versions
    trainer = TRAINER.get(parse_version(versions.trainer).line) if versions.trainer else None
    if trainer is None and versions.trainer:
        raise UserError(
            f"cluster {name} has a Trainer that gangplan does not know", "Run `gangplan cluster check`."
        )
    teams = {team: namespace_of(spec, team, workspace.teams[team].spec) for team in sorted(spec.teams)}
    others = (spec.monitoring.namespace,) if spec.monitoring else ()
    policies = guardrails(workspace, name)
    field = trainer.override_field if trainer else ""
    has_volumes = any(one.persistent_volumes for one in spec.teams.values())
    more = controllers(spec), has_volumes, has_cronjobs(spec)
    return ArgoCluster(name, teams, field, others, destination, policies, *more)


def controllers(spec: Cluster) -> tuple[str, ...]:
    """What starts runs on a cluster, as `versions` calls it."""
    stated = {"trainer": spec.versions.trainer, "mpiOperator": spec.versions.mpi_operator}
    return tuple(key for key, version in stated.items() if version)


def _known(workspace: Workspace, name: str) -> None:
    if name not in workspace.clusters:
        raise no_cluster(name, workspace)


def _rendered(workspace: Workspace, cluster: str) -> Sequence[str]:
    """The parts of a cluster that are rendered: what has no folder cannot be synced. Raises UserError.

    Runs come and go, and are read from the folder of the cluster, which stays.
    """
    folder = workspace.root / RENDERED / cluster
    parts = [part for part in PARTS if part == "runs" or (folder / part).is_dir()]
    if not folder.is_dir():
        raise UserError(f"nothing is rendered for cluster {cluster}", "Run `gangplan render` first.")
    return parts
