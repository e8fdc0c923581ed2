"""Checks of clusters, teams, policies and waivers, before any spec is read."""

from __future__ import annotations

from gangplan.findings import Finding
from gangplan.policy.checks import check_policies
from gangplan.resolve.checks import check_site
from gangplan.resolve.compat import check_versions
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.resolve.scans import check_scans
from gangplan.resolve.tenant_checks import check_teams_in_cluster_files
from gangplan.resolve.waiver_checks import check_waivers
from gangplan.waivers import excuse_waived_findings_by_file
from gangplan.workspace import OVERLAYS, SPECS, Workspace


def check_platform_files(workspace: Workspace) -> list[Finding]:
    """Check clusters, teams, policies and waivers, before any spec is read."""
    findings: list[Finding] = []
    for name, cluster in workspace.clusters.items():
        findings += workspace.component_findings[name]
        findings += check_versions(cluster, resolve_platform_of_cluster_file(cluster))
        findings += check_site(workspace, cluster)
    findings += check_scans(workspace.root)
    findings = excuse_waived_findings_by_file(
        [*findings, *check_teams_in_cluster_files(workspace)], workspace.waivers
    )
    findings += check_policies(workspace)
    if workspace.waivers:
        findings += check_waivers(workspace)
    return findings


def find_clusters_closed_by_errors(workspace: Workspace, findings: list[Finding]) -> frozenset[str]:
    """Return the clusters with an error in their own files, or in those of a team on them; the others
    continue.

    Nothing is written as long as there is any error, but one command reports every problem.
    """
    files = {finding.where.file for finding in findings if finding.is_error}
    parts = [file.split("/") for file in files]
    broken = {part[1] for part in parts if part[0] == OVERLAYS and len(part) > 1}
    teams = {part[1] for part in parts if part[0] == SPECS and part[2:] == ["team.yaml"]}
    on_them = {name for name, cluster in workspace.clusters.items() if teams & set(cluster.spec.teams)}
    return frozenset(broken | on_them)
