"""`gangplan cluster quota`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gangplan.commands.absent import build_missing_cluster_error
from gangplan.commands.common import print_findings_to_stderr
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.model.usage import read_usage
from gangplan.pipeline.platform import check_platform_files
from gangplan.pipeline.quota import (
    build_cluster_holdings,
    check_nearly_used_team_quotas,
    check_usage_snapshot_matches_site,
)
from gangplan.pipeline.request import Request
from gangplan.report.quota import build_quota_json, render_quota_text
from gangplan.resolve import resolve_site
from gangplan.rules.model import Severity
from gangplan.workspace import load_workspace


def print_quota(request: Request, usage_file: Path | None, format: str) -> Exit:
    """Print the quotas of each cluster, and their usage from a snapshot.

    Raises UserError for an unknown cluster, for clusters without Kueue, and for a snapshot that does not fit.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    workspace = load_workspace(request.root)
    findings = [*workspace.findings, *check_platform_files(workspace)]
    for name in request.clusters:
        if name not in workspace.clusters and not findings:
            raise build_missing_cluster_error(name, workspace)
    names = request.clusters or tuple(sorted(workspace.clusters))
    if any(finding.severity is Severity.ERROR for finding in findings):
        print_findings_to_stderr(sort_findings(findings))
        return Exit.INPUT
    usage = read_usage(usage_file) if usage_file else None
    if usage is not None and len(names) != 1:
        raise UserError(
            f"a snapshot covers one cluster, but there are {len(names)}", "Name it with --cluster NAME."
        )
    sites = {name: resolve_site(workspace, name) for name in names}
    queueless = [name for name, site in sites.items() if not site.queues]
    if len(queueless) == len(names):
        raise UserError("nothing to show: Kueue runs on none of these clusters", "Name another cluster.")
    if usage is not None:
        check_usage_snapshot_matches_site(usage, next(iter(sites.values())), usage_file)
    holdings = [
        build_cluster_holdings(workspace.clusters[name], site, usage)
        for name, site in sites.items()
        if site.queues
    ]
    near = [
        finding
        for holding in holdings
        for finding in check_nearly_used_team_quotas(workspace.clusters[holding.cluster], holding)
    ]
    if format == "json":
        sys.stdout.write(json.dumps(build_quota_json(holdings), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(render_quota_text(holding) for holding in holdings))
    print_findings_to_stderr(sort_findings(near))
    return Exit.CLEAN
