"""`gangplan cluster check` and `gangplan cluster kueue-config`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.absent import no_cluster
from gangplan.commands.common import print_findings
from gangplan.commands.compared import compared
from gangplan.commands.reports import repository_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, in_order
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request, Result
from gangplan.report.cluster import ClusterReport, cluster_facts, cluster_text
from gangplan.report.json import json_report
from gangplan.report.kueue_config import kueue_config as config_text
from gangplan.report.upgrade import compare
from gangplan.resolve.compat import check_versions
from gangplan.resolve.inventory import inventory
from gangplan.resolve.platform import resolve_platform
from gangplan.resolve.upgrade import parse_versions, with_versions
from gangplan.rules.model import Severity
from gangplan.workspace import Workspace, load_workspace


def check(request: Request, versions: str | None, format: str, snapshots: Sequence[Path] = ()) -> Exit:
    """Print what each cluster has, what `versions` would change, and where snapshots differ from its file.

    Raises UserError for an unknown format or cluster.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    asked = replace(request, versions=parse_versions(versions) if versions is not None else ())
    workspace, findings = _loaded(request)
    if workspace is None:
        print_findings(findings)
        return Exit.INPUT
    names = request.clusters or tuple(workspace.clusters)
    target = with_versions(workspace, asked.versions, names)
    findings += [*_findings(workspace, names), *_findings(target, names)]
    findings += compared(workspace, names, snapshots)
    reports = {name: ClusterReport(name, tuple(inventory(workspace.clusters[name]))) for name in names}
    code = _code(findings)
    if versions is not None:
        for name in names:
            reports[name] = replace(reports[name], target=tuple(inventory(target.clusters[name])))
        if code is Exit.CLEAN:
            code = _compare(workspace, asked, reports, findings)
    if format == "json":
        facts = {"clusters": cluster_facts(list(reports.values()))}
        sys.stdout.write(json_report(in_order(findings), facts, repository_folder(request.root)))
        return code
    print_findings(in_order(findings))
    sys.stdout.write(cluster_text(list(reports.values())))
    return code


def kueue_config(request: Request) -> Exit:
    """Print the configuration that each cluster's Kueue needs.

    Raises UserError for clusters without Kueue.
    """
    workspace, findings = _loaded(request)
    if workspace is None:
        print_findings(findings)
        return Exit.INPUT
    names = request.clusters or tuple(workspace.clusters)
    findings = [finding for finding in _findings(workspace, names) if finding.severity is Severity.ERROR]
    if findings:
        print_findings(in_order(findings))
        return Exit.FINDINGS
    texts = []
    for name in names:
        cluster = workspace.clusters[name]
        platform = resolve_platform(cluster)
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


def _loaded(request: Request) -> tuple[Workspace | None, list[Finding]]:
    """Return the workspace with the requested clusters; None if its files cannot be understood."""
    workspace = load_workspace(request.root)
    findings = list(workspace.findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        return None, findings
    for name in request.clusters:
        if name not in workspace.clusters:
            raise no_cluster(name, workspace)
    return workspace, findings


def _findings(workspace: Workspace, names: Sequence[str]) -> list[Finding]:
    clusters = [workspace.clusters[name] for name in names]
    return [finding for one in clusters for finding in check_versions(one, resolve_platform(one))]


def _compare(
    workspace: Workspace, asked: Request, reports: dict[str, ClusterReport], findings: list[Finding]
) -> Exit:
    """Render with and without the other versions, and compare.

    A workspace that does not render as it is has nothing to compare.
    """
    before = preview(replace(asked, versions=()), workspace)
    if before.has_errors:
        findings += _said(before)
        return Exit.INPUT
    after = preview(asked, workspace)
    findings += _said(after)
    if after.has_errors:
        return Exit.FINDINGS
    for name, report in reports.items():
        reports[name] = replace(report, upgrade=compare(before, after, name))
    return Exit.CLEAN


def _said(result: Result) -> list[Finding]:
    """Return the errors of a rendering; its warnings and notes matter only to those who render."""
    return [finding for finding in result.findings if finding.severity is Severity.ERROR]


def _code(findings: Sequence[Finding]) -> Exit:
    is_wrong = any(finding.severity is Severity.ERROR for finding in findings)
    return Exit.FINDINGS if is_wrong else Exit.CLEAN
