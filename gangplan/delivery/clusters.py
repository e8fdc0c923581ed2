"""What sync engines need from the workspace."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.delivery.engine import EngineInput
from gangplan.errors import InternalError, UserError
from gangplan.gitops.source import RepositorySource
from gangplan.resolve.platform import list_sync_engines
from gangplan.spec.cluster import Cluster
from gangplan.workspace import RENDERED, Workspace

PARTS = ("platform", "tenants", "runs")


def require_workspace_for_delivery(given: EngineInput) -> Workspace:
    """Return the workspace, which is read before an engine about clusters is asked.

    Raises InternalError if it was not read.
    """
    if given.workspace is None:
        raise InternalError("an engine asks for a workspace that was not read")
    return given.workspace


def list_synced_clusters(given: EngineInput, engine: str) -> tuple[str, ...]:
    """Return the clusters that an engine syncs.

    A cluster that states the version of another sync engine alone is left out, unless the command names it.
    Raises UserError if no cluster is left.
    """
    clusters = require_workspace_for_delivery(given).clusters
    if given.request.clusters:
        return given.clusters
    found = tuple(name for name in given.clusters if engine in list_sync_engines(clusters[name].spec))
    if given.clusters and not found:
        help = f"State versions: {{{engine}: VERSION}} in a cluster's file, or name clusters with --cluster."
        raise UserError(f"no cluster is synced by {engine}: all state another engine's version", help)
    return found


def build_repository_source(given: EngineInput) -> RepositorySource:
    """Return where the engine finds the workspace."""
    return RepositorySource(given["repo"], given["revision"], given["namespace"], given["prefix"])


def list_controllers(spec: Cluster) -> tuple[str, ...]:
    """Return what starts runs on a cluster, as `versions` calls it."""
    stated = {"trainer": spec.versions.trainer, "mpiOperator": spec.versions.mpi_operator}
    return tuple(key for key, version in stated.items() if version)


def list_deliverable_cluster_parts(given: EngineInput, cluster: str) -> Sequence[str]:
    """Return the parts of a cluster that are rendered: a part without a folder cannot be synced.

    Runs come and go, and are read from the folder of the cluster, which stays. Raises UserError if nothing is
    rendered for the cluster.
    """
    folder = require_workspace_for_delivery(given).root / RENDERED / cluster
    if not given.is_rendered:
        return PARTS
    if not folder.is_dir():
        raise UserError(f"nothing is rendered for cluster {cluster}", "Run `gangplan render` first.")
    return [part for part in PARTS if part == "runs" or (folder / part).is_dir()]
