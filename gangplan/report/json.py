"""Findings for machines: one JSON document with a versioned shape (`gangplan schema print findings`)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.findings import Finding, Fix, Location, Waived
from gangplan.report.changes import SuggestedChange, suggest_first_changes_for_findings
from gangplan.report.escape import replace_surrogates
from gangplan.report.model import Report, ReportEntry, is_waived, list_report_entries, sort_worst_first
from gangplan.rules.model import Severity

# Raised when a field changes its meaning or is removed; new fields may come without notice.
FINDINGS_FORMAT_VERSION = 1


def json_report(findings: Sequence[Finding], facts: Mapping[str, Any], folder: str = "") -> str:
    """Return the findings and a few facts of the command (`checked`, engines) as JSON with a line end."""
    whole_document = document({**facts, **build_findings_json(findings, folder)})
    return json.dumps(whole_document, indent=2, ensure_ascii=False) + "\n"


def report_json(report: Report) -> str:
    """Return a report with everything that it knows, as JSON."""
    facts = {
        "command": report.command,
        "folder": replace_surrogates(report.folder),
        "failOn": report.fail_on.word,
        "checked": dict(report.checked),
        "engines": list(report.engines),
        **report.facts,
    }
    return json_report(report.findings, facts, report.folder)


def document(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with the number of its shape in front."""
    return {"version": FINDINGS_FORMAT_VERSION, **content}


def build_findings_json(findings: Sequence[Finding], folder: str = "") -> dict[str, Any]:
    """Return the keys of every document with findings: counts, what to do first, and the findings, worst
    first.

    `folder` is the place of the workspace in its repository, as in `Report`.
    """
    counts = Counter("waived" if is_waived(one) else one.severity.word for one in findings)
    words = [*(severity.word for severity in reversed(Severity)), "waived"]
    return {
        "counts": {word: counts[word] for word in words},
        "changes": [
            _build_suggested_change_json(change) for change in suggest_first_changes_for_findings(findings)
        ],
        "findings": [
            _build_finding_json(entry) for entry in sort_worst_first(list_report_entries(findings, folder))
        ],
    }


def _build_finding_json(entry: ReportEntry) -> dict[str, Any]:
    finding = entry.finding
    return {
        "rule": replace_surrogates(finding.rule),
        "severity": finding.severity.word,
        **_build_place_fields(finding.where),
        "endColumn": finding.where.end,
        "cluster": replace_surrogates(finding.clusters[0]) if len(finding.clusters) == 1 else "",
        "clusters": list(map(replace_surrogates, finding.clusters)),
        "object": replace_surrogates(finding.object_ref),
        "path": replace_surrogates(finding.path),
        "message": replace_surrogates(finding.message),
        "help": replace_surrogates(finding.help),
        "waiver": _build_waiver_json(finding.waiver) if finding.waiver else None,
        "fix": _build_fix_json(finding.fix) if finding.fix else None,
        "fingerprint": entry.fingerprint,
    }


def _build_waiver_json(waiver: Waived) -> dict[str, Any]:
    return {
        **_build_place_fields(waiver.where),
        "until": waiver.until,
        "reason": replace_surrogates(waiver.reason),
        "approver": replace_surrogates(waiver.approver),
        "over": waiver.is_over,
    }


def _build_fix_json(fix: Fix) -> dict[str, Any]:
    return {
        **_build_place_fields(Location(fix.file, fix.line, fix.column)),
        "endLine": fix.end_line,
        "endColumn": fix.end_column,
        "replacement": replace_surrogates(fix.replacement),
        "why": replace_surrogates(fix.why),
    }


def _build_place_fields(where: Location) -> dict[str, Any]:
    return {"file": replace_surrogates(where.file), "line": where.line, "column": where.column}


def _build_suggested_change_json(change: SuggestedChange) -> dict[str, Any]:
    return {
        "rule": replace_surrogates(change.rule),
        "help": replace_surrogates(change.help),
        "findings": change.findings,
        "places": [_build_place_fields(where) for where in change.places],
    }
