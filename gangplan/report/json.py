"""Findings for machines: one JSON document with a versioned shape (`gangplan schema print findings`)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.findings import Finding, Fix, Location, Waived
from gangplan.report.changes import SuggestedChange, changes
from gangplan.report.escape import whole
from gangplan.report.model import Report, ReportEntry, entries, is_waived, worst_first
from gangplan.rules.model import Severity

# Raised when a field changes its meaning or is removed; new fields may come without notice.
SHAPE = 1


def json_report(findings: Sequence[Finding], facts: Mapping[str, Any], folder: str = "") -> str:
    """Return the findings and a few facts of the command (`checked`, engines) as JSON with a line end."""
    whole_document = document({**facts, **findings_part(findings, folder)})
    return json.dumps(whole_document, indent=2, ensure_ascii=False) + "\n"


def report_json(report: Report) -> str:
    """Return a report with everything that it knows, as JSON."""
    facts = {
        "command": report.command,
        "folder": whole(report.folder),
        "failOn": report.fail_on.word,
        "checked": dict(report.checked),
        "engines": list(report.engines),
        **report.facts,
    }
    return json_report(report.findings, facts, report.folder)


def document(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with the number of its shape in front."""
    return {"version": SHAPE, **content}


def findings_part(findings: Sequence[Finding], folder: str = "") -> dict[str, Any]:
    """Return the keys of every document with findings: counts, what to do first, and the findings, worst
    first.

    `folder` is the place of the workspace in its repository, as in `Report`.
    """
    counts = Counter("waived" if is_waived(one) else one.severity.word for one in findings)
    words = [*(severity.word for severity in reversed(Severity)), "waived"]
    return {
        "counts": {word: counts[word] for word in words},
        "changes": [_change(change) for change in changes(findings)],
        "findings": [_as_dict(entry) for entry in worst_first(entries(findings, folder))],
    }


def _as_dict(entry: ReportEntry) -> dict[str, Any]:
    finding = entry.finding
    return {
        "rule": whole(finding.rule),
        "severity": finding.severity.word,
        **_place(finding.where),
        "endColumn": finding.where.end,
        "cluster": whole(finding.clusters[0]) if len(finding.clusters) == 1 else "",
        "clusters": list(map(whole, finding.clusters)),
        "object": whole(finding.object_ref),
        "path": whole(finding.path),
        "message": whole(finding.message),
        "help": whole(finding.help),
        "waiver": _waiver(finding.waiver) if finding.waiver else None,
        "fix": _fix(finding.fix) if finding.fix else None,
        "fingerprint": entry.fingerprint,
    }


def _waiver(waiver: Waived) -> dict[str, Any]:
    return {
        **_place(waiver.where),
        "until": waiver.until,
        "reason": whole(waiver.reason),
        "approver": whole(waiver.approver),
        "over": waiver.is_over,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        **_place(Location(fix.file, fix.line, fix.column)),
        "endLine": fix.end_line,
        "endColumn": fix.end_column,
        "replacement": whole(fix.replacement),
        "why": whole(fix.why),
    }


def _place(where: Location) -> dict[str, Any]:
    return {"file": whole(where.file), "line": where.line, "column": where.column}


def _change(change: SuggestedChange) -> dict[str, Any]:
    return {
        "rule": whole(change.rule),
        "help": whole(change.help),
        "findings": change.findings,
        "places": [_place(where) for where in change.places],
    }
