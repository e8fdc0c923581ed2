"""Findings as GitLab code quality: one JSON array, `[]` for none (docs.gitlab.com, Code Quality, 2026)."""

from __future__ import annotations

import json
from typing import Any

from gangplan.report.escape import make_visible, replace_surrogates
from gangplan.report.model import (
    Report,
    ReportEntry,
    describe_waiver,
    format_title,
    is_waived,
    sort_worst_first,
)
from gangplan.rules.model import Severity

# GitLab knows info, minor, major, critical and blocker.
_SEVERITY = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab_report(report: Report) -> str:
    """Return the report as an array, worst first.

    A waived finding is `info` and says that it is waived: GitLab has no word for it.
    """
    found = [_build_code_quality_entry(report, entry) for entry in sort_worst_first(report.entries)]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _build_code_quality_entry(report: Report, entry: ReportEntry) -> dict[str, Any]:
    finding = entry.finding
    waived = f" ({describe_waiver(finding)})" if is_waived(finding) else ""
    help = f". {finding.help}" if finding.help else ""
    return {
        "description": make_visible(f"{format_title(finding)}{waived}{help}"),
        "check_name": replace_surrogates(finding.rule),
        "fingerprint": entry.fingerprint,
        "severity": "info" if waived else _SEVERITY[finding.severity],
        # Lines count from 1; a finding about a whole file is at its first line.
        "location": {
            "path": replace_surrogates(report.path(finding.where.file)),
            "lines": {"begin": max(finding.where.line, 1)},
        },
    }
