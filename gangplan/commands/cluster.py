"""`gangplan cluster check` and `gangplan cluster kueue-config`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.absent import build_missing_cluster_error
from gangplan.commands.common import print_findings_to_stderr
from gangplan.commands.compared import compare_snapshots_named_by_flags
from gangplan.commands.reports import find_report_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, sort_findings
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.report.cluster import ClusterReport, build_clusters_json, render_clusters
from gangplan.report.json import json_report
from gangplan.report.kueue_config import render_kueue_config as config_text
from gangplan.report.upgrade import compare_cluster_renderings
from gangplan.resolve.compat import check_versions
from gangplan.resolve.inventory import resolve_cluster_components
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.resolve.upgrade import parse_cluster_upgrade_versions, replace_versions_of_clusters
from gangplan.rules.model import Severity
from gangplan.workspace import Workspace, load_workspace


def print_cluster_check(
    request: Request, versions: str | None, format: str, snapshots: Sequence[Path] = ()
) -> Exit:
    """Print what each cluster has, what `versions` would change, and where snapshots differ from its file.

    Raises UserError for an unknown format or cluster.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    asked = replace(
        request, versions=parse_cluster_upgrade_versions(versions) if versions is not None else ()
    )
    workspace, findings = _load_clusters_named_by_flags(request)
    if workspace is None:
        print_findings_to_stderr(findings)
        return Exit.INPUT
    names = request.clusters or tuple(workspace.clusters)
    target = replace_versions_of_clusters(workspace, asked.versions, names)
    findings += [*_check_cluster_versions(workspace, names), *_check_cluster_versions(target, names)]
    findings += compare_snapshots_named_by_flags(workspace, names, snapshots)
    reports = {
        name: ClusterReport(name, tuple(resolve_cluster_components(workspace.clusters[name])))
        for name in names
    }
    code = _choose_cluster_exit_code(findings)
    if versions is not None:
        for name in names:
            reports[name] = replace(
                reports[name], target=tuple(resolve_cluster_components(target.clusters[name]))
            )
        if code is Exit.CLEAN:
            code = _compare_renders_for_cluster_check_command(workspace, asked, reports, findings)
    if format == "json":
        facts = {"clusters": build_clusters_json(list(reports.values()))}
        sys.stdout.write(json_report(sort_findings(findings), facts, find_report_folder(request.root)))
        return code
    print_findings_to_stderr(sort_findings(findings))
    sys.stdout.write(render_clusters(list(reports.values())))
    return code


def print_kueue_config(request: Request) -> Exit:
    """Print the configuration that each cluster's Kueue needs.

    Raises UserError for clusters without Kueue.
    """
    workspace, findings = _load_clusters_named_by_flags(request)
    if workspace is None:
        print_findings_to_stderr(findings)
        return Exit.INPUT
    names = request.clusters or tuple(workspace.clusters)
    findings = [
        finding for finding in _check_cluster_versions(workspace, names) if finding.severity is Severity.ERROR
    ]
    if findings:
        print_findings_to_stderr(sort_findings(findings))
        return Exit.FINDINGS
    texts = []
    for name in names:
        cluster = workspace.clusters[name]
        platform = resolve_platform_of_cluster_file(cluster)
        if platform.kueue is not None:
            texts.append(config_text(cluster, platform.kueue))
        elif request.clusters:
            raise UserError(
                f"cluster {name} starts runs without Kueue (gang: {cluster.spec.gang})", "Name another one."
            )
    if not texts:
        raise UserError("no cluster starts runs through Kueue", "Set gang: kueue and versions.kueue.")
    sys.stdout.write("---\n".join(texts))
    return Exit.CLEAN


def _load_clusters_named_by_flags(request: Request) -> tuple[Workspace | None, list[Finding]]:
    """Return the workspace with the requested clusters; None if its files cannot be understood."""
    workspace = load_workspace(request.root)
    findings = list(workspace.findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        return None, findings
    for name in request.clusters:
        if name not in workspace.clusters:
            raise build_missing_cluster_error(name, workspace)
    return workspace, findings


def _check_cluster_versions(workspace: Workspace, names: Sequence[str]) -> list[Finding]:
    clusters = [workspace.clusters[name] for name in names]
    return [
        finding for one in clusters for finding in check_versions(one, resolve_platform_of_cluster_file(one))
    ]


def _compare_renders_for_cluster_check_command(
    workspace: Workspace, asked: Request, reports: dict[str, ClusterReport], findings: list[Finding]
) -> Exit:
    """Render with and without the other versions, and compare.

    A workspace that does not render as it is has nothing to compare.
    """
    before = preview_render(replace(asked, versions=()), workspace)
    if before.has_errors:
        findings += _select_render_errors(before)
        return Exit.INPUT
    after = preview_render(asked, workspace)
    findings += _select_render_errors(after)
    if after.has_errors:
        return Exit.FINDINGS
    for name, report in reports.items():
        reports[name] = replace(report, upgrade=compare_cluster_renderings(before, after, name))
    return Exit.CLEAN


def _select_render_errors(result: Result) -> list[Finding]:
    """Return the errors of a rendering; its warnings and notes matter only to those who render."""
    return [finding for finding in result.findings if finding.severity is Severity.ERROR]


def _choose_cluster_exit_code(findings: Sequence[Finding]) -> Exit:
    is_wrong = any(finding.severity is Severity.ERROR for finding in findings)
    return Exit.FINDINGS if is_wrong else Exit.CLEAN
