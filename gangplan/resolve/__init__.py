"""Resolve specs and workspace into jobs: defaults applied, names looked up, every value's origin kept."""

from collections.abc import Sequence

from gangplan.findings import Finding
from gangplan.model.site import Site, Tenant
from gangplan.resolve.job import resolve_job, resolve_target_clusters
from gangplan.resolve.site import resolve_site_without_sweeps as _resolve_site
from gangplan.resolve.tenant import resolve_tenants_without_sweeps as _resolve_tenants
from gangplan.workspace import Workspace

__all__ = ["add_advice", "resolve_job", "resolve_site", "resolve_target_clusters", "resolve_tenants"]


def resolve_site(workspace: Workspace, cluster_name: str) -> Site:
    """Return the site of a cluster whose file has passed its checks, with the queues of sweeps."""
    site = _resolve_site(workspace, cluster_name)
    if not workspace.sweeps:
        return site
    from gangplan.resolve.sweeps import resolve_site_with_sweeps  # few workspaces have sweeps

    return resolve_site_with_sweeps(site, workspace, cluster_name)


def resolve_tenants(workspace: Workspace, cluster_name: str) -> list[Tenant]:
    """Return the teams that a cluster lists, sorted by name, with the queues of their sweeps."""
    tenants = _resolve_tenants(workspace, cluster_name)
    if not workspace.sweeps:
        return tenants
    from gangplan.resolve.sweeps import add_sweeps_to_tenants  # few workspaces have sweeps

    return add_sweeps_to_tenants(tenants, workspace, cluster_name)


def add_advice(findings: Sequence[Finding], workspace: Workspace, team: str) -> Sequence[Finding]:
    """Return the findings about a team's spec, with helps that list names of the workspace."""
    if not findings:
        return findings
    from gangplan.resolve.advice import add_known_names  # few specs have findings

    return add_known_names(findings, workspace, team)
