"""Findings as SARIF 2.1.0 (OASIS), for GitHub code scanning and other viewers of static analysis.

What GitHub needs beyond the standard: `results` even when empty, a region for every result, paths from the
top of the repository, and at most 25 000 results and as many rules (docs.github.com, "SARIF support for code
scanning" and "SARIF results exceed one or more limits", 2026).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gangplan import __version__
from gangplan.findings import Finding, Fix, Severity
from gangplan.report.escape import markdown, sarif_text, uri, whole
from gangplan.report.model import Entry, Report, is_waived, title, waiver_words, worst_first
from gangplan.rules import Rule, rules

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 25_000
# The name below which fingerprints stand; another number when they are made in another way.
FINGERPRINT = "gangplan/v1"
_ROOT = "%SRCROOT%"
# GitHub's words for severities of findings that are not about security.
_PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}


def sarif_report(report: Report) -> str:
    """The report as one SARIF run, worst first, with a line end. Waived findings are suppressed results."""
    ordered = worst_first(report.entries)
    kept, left = ordered[:MOST_RESULTS], ordered[MOST_RESULTS:]
    used = sorted({entry.finding.rule for entry in kept})
    worst = {entry.finding.rule: entry.finding.severity for entry in reversed(kept)}
    index = {rule: place for place, rule in enumerate(used)}
    run = {
        "tool": {"driver": _driver([_rule(rule, worst[rule]) for rule in used])},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The top of the repository."}}},
        "invocations": [_invocation(report, len(left))],
        "results": [_result(report, entry, index) for entry in kept],
    }
    return (
        json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)
        + "\n"
    )


def _driver(pages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": "gangplan", "semanticVersion": __version__, "rules": pages}


def _rule(name: str, severity: Severity) -> dict[str, Any]:
    """The page of a rule; a policy of the workspace's own has none here, and only its name is known."""
    page = rules().get(name)
    level = page.severity if page else severity.word
    tags = ["kubernetes", page.topic] if page else ["kubernetes", "policy"]
    described = _described(page) if page else {"shortDescription": {"text": whole(name)}}
    return {
        "id": whole(name),
        "name": "".join(part.capitalize() for part in whole(name).split("-")),
        **described,
        "defaultConfiguration": {"level": level},
        "properties": {"tags": tags, "precision": "very-high", "problem.severity": _PROBLEM[level]},
    }


def _described(page: Rule) -> dict[str, Any]:
    why, fix = (" ".join(text.split()) for text in (page.why, page.fix))
    return {
        "shortDescription": {"text": sarif_text(page.title)},
        "fullDescription": {"text": sarif_text(why)},
        "help": {
            "text": sarif_text(f"{why}\n\nFix: {fix}\n\ngangplan explain {page.id}"),
            "markdown": f"{markdown(why)}\n\n**Fix.** {markdown(fix)}\n\n`gangplan explain {page.id}`",
        },
    }


def _invocation(report: Report, left: int) -> dict[str, Any]:
    """That the tool ran to its end (which it did, when there is a report), and what was left out."""
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if left:
        text = f"{left} findings are left out: GitHub takes {MOST_RESULTS} results"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    return invocation


def _result(report: Report, entry: Entry, index: dict[str, int]) -> dict[str, Any]:
    finding = entry.finding
    help = f"\n{finding.help}" if finding.help else ""
    result: dict[str, Any] = {
        "ruleId": whole(finding.rule),
        "ruleIndex": index[finding.rule],
        "level": finding.severity.word,
        "message": {"text": sarif_text(title(finding) + help)},
        "locations": [_location(report, finding)],
        "partialFingerprints": {FINGERPRINT: entry.fingerprint},
    }
    if is_waived(finding):
        why = whole(waiver_words(finding))
        result["suppressions"] = [{"kind": "external", "justification": why}]
    if finding.fix:
        result["fixes"] = [_fix(report, finding.fix)]
    return result


def _fix(report: Report, fix: Fix) -> dict[str, Any]:
    region = {
        "startLine": fix.line,
        "startColumn": fix.column,
        "endLine": fix.end_line,
        "endColumn": fix.end_column,
    }
    change = {
        "artifactLocation": _artifact(report, fix.file),
        "replacements": [{"deletedRegion": region, "insertedContent": {"text": whole(fix.replacement)}}],
    }
    return {"description": {"text": sarif_text(fix.why)}, "artifactChanges": [change]}


def _artifact(report: Report, file: str) -> dict[str, str]:
    return {"uri": uri(report.path(file)), "uriBaseId": _ROOT}


def _location(report: Report, finding: Finding) -> dict[str, Any]:
    where = finding.where
    region = {"startLine": max(where.line, 1)} | ({"startColumn": where.column} if where.column else {})
    physical = {
        "artifactLocation": _artifact(report, where.file),
        "region": region,
    }
    return {"physicalLocation": physical} | _logical(finding)


def _logical(finding: Finding) -> dict[str, Sequence[dict[str, str]]]:
    """The rendered object and its field."""
    if not finding.object_ref:
        return {}
    name = f"{finding.object_ref}/{finding.path}" if finding.path else finding.object_ref
    return {"logicalLocations": [{"kind": "member", "fullyQualifiedName": whole(name)}]}
