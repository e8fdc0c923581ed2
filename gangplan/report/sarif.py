"""Findings as SARIF 2.1.0 (OASIS), for GitHub code scanning and other viewers of static analysis.

What GitHub needs beyond the standard: `results` even when empty, a region with both its ends for every
result, three texts for every rule (names up to 255 characters, descriptions up to 1024), paths from the top
of the repository, and at most 25 000 results and as many rules (docs.github.com, "SARIF support for code
scanning" and "SARIF results exceed one or more limits", 2026).

`helpUri` must be an absolute address, and gangplan's pages have none of their own: a rule has one if the
variable GANGPLAN_RULE_PAGES says where a site publishes them. Its help names the page by its path in
gangplan's repository.

`partialFingerprints` leaves the key `primaryLocationLineHash` to the upload action, which computes it from
the file and warns about every value that differs from its own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from gangplan import __version__
from gangplan.errors import UserError
from gangplan.findings import Finding, Fix, Location
from gangplan.report.escape import markdown, sarif_text, short, uri, visible, whole
from gangplan.report.model import Report, ReportEntry, is_waived, title, waiver_words, worst_first
from gangplan.rulebook import topic_of
from gangplan.rules.model import Rule, Severity

PAGES = "GANGPLAN_RULE_PAGES"

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 25_000
LONGEST_NAME = 255
LONGEST_DESCRIPTION = 1024
# The key of fingerprints; its number changes when they are made in another way.
FINGERPRINT = "gangplan/v1"
_ROOT = "%SRCROOT%"
# GitHub's words for severities of findings that are not about security.
_PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}


def sarif_report(report: Report) -> str:
    """Return the report as one SARIF run, worst first, with a line end. Waived findings are suppressed
    notes."""
    ordered = worst_first(report.entries)
    kept, left = ordered[:MOST_RESULTS], ordered[MOST_RESULTS:]
    used = sorted({entry.finding.rule for entry in kept})
    worst = {entry.finding.rule: entry.finding.severity for entry in reversed(kept)}
    index = {rule: place for place, rule in enumerate(used)}
    run = {
        "tool": {"driver": _driver([_rule(rule, worst[rule]) for rule in used])},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The top of the repository."}}},
        "invocations": [_invocation(len(left))],
        "results": [_result(report, entry, index) for entry in kept],
    }
    return (
        json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)
        + "\n"
    )


def _driver(pages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": "gangplan", "semanticVersion": __version__, "rules": pages}


def _rule(name: Rule, severity: Severity) -> dict[str, Any]:
    """Return the page of a rule; for a policy of the workspace's own, only its name is known here."""
    page = name if name.summary else None
    level = (page.severity if page else severity).word
    tags = ["kubernetes", topic_of(page)] if page else ["kubernetes", "policy"]
    return {
        "id": whole(name),
        "name": short("".join(part.capitalize() for part in whole(name).split("-")), LONGEST_NAME),
        **({"deprecatedIds": list(name.formerly)} if name.formerly else {}),
        **(_described(page) if page else _own(name)),
        "defaultConfiguration": {"level": level},
        "properties": {"tags": tags, "precision": "very-high", "problem.severity": _PROBLEM[level]},
    }


def _own(name: str) -> dict[str, Any]:
    """Return what GitHub requires of every rule, for a policy that only the workspace knows."""
    described = _description(f"{name}, a policy of this workspace.")
    text = "The finding says what the policy requires; gangplan policy list shows where it applies."
    return {"shortDescription": described, "fullDescription": described, "help": {"text": text}}


def _description(text: str) -> dict[str, str]:
    return {"text": short(sarif_text(text), LONGEST_DESCRIPTION)}


def rule_pages() -> str:
    """Return where a site publishes the pages of rules, from GANGPLAN_RULE_PAGES; empty if that is not set.

    Raises UserError if the value is not such an address.
    """
    address = os.environ.get(PAGES, "")
    if address and not re.fullmatch(r"https?://[^\s{}]+(\{page\}[^\s{}]*)?\{rule\}[^\s{}]*", address):
        raise UserError(
            f"{PAGES}={address} does not say where the page of a rule is",
            f"Write it like this: {PAGES}='https://docs.example.com/gangplan/{{page}}.html#{{rule}}'.",
        )
    return address


def _described(page: Rule) -> dict[str, Any]:
    why, fix = (" ".join(text.split()) for text in (page.why, page.fix))
    file, address = "policies" if page.is_policy else "rules", rule_pages()
    place = f"docs/{file}.md#{page}"
    return {
        **({"helpUri": address.format(page=file, rule=page)} if address else {}),
        "shortDescription": _description(page.summary),
        "fullDescription": _description(why),
        "help": {
            "text": sarif_text(f"{why}\n\nFix: {fix}\n\ngangplan explain {page} ({place} of gangplan)"),
            "markdown": f"{markdown(why)}\n\n**Fix.** {markdown(fix)}\n\n`gangplan explain {page}` (`{place}` of gangplan)",
        },
    }


def _invocation(left: int) -> dict[str, Any]:
    """Return that the tool ran to its end (which it did, if there is a report), and what was left out."""
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if left:
        text = f"{left} findings are left out: GitHub takes {MOST_RESULTS} results"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    return invocation


def _result(report: Report, entry: ReportEntry, index: dict[Rule, int]) -> dict[str, Any]:
    finding = entry.finding
    waived = waiver_words(finding) if is_waived(finding) else ""
    said = f"{title(finding)} ({waived})" if waived else title(finding)
    help = f"\n{finding.help}" if finding.help else ""
    result: dict[str, Any] = {
        "ruleId": whole(finding.rule),
        "ruleIndex": index[finding.rule],
        # GitHub reads no suppressions and would block a change because of a waived error.
        "level": "note" if waived else finding.severity.word,
        "message": {"text": sarif_text(said + help)},
        "locations": [_location(report, finding)],
        "partialFingerprints": {FINGERPRINT: entry.fingerprint},
    }
    if finding.clusters:
        result["properties"] = {"clusters": list(map(whole, finding.clusters))}
    if waived:
        result["suppressions"] = [{"kind": "external", "justification": visible(waived)}]
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
    physical = {"artifactLocation": _artifact(report, finding.where.file), "region": _region(finding)}
    return {"physicalLocation": physical} | _logical(finding)


def _region(finding: Finding) -> dict[str, int]:
    """Return the region from a finding's place to the end of its word, or of what its fix replaces; else one
    character.

    A finding about a whole file marks nothing of its first line.
    """
    where, fix = finding.where, finding.fix
    line, column = max(where.line, 1), max(where.column, 1)
    end = (line, max(where.end, column + 1) if where.column else column)
    if fix and Location(fix.file, fix.line, fix.column) == where:
        end = max(end, (fix.end_line, fix.end_column))
    return {"startLine": line, "startColumn": column, "endLine": end[0], "endColumn": end[1]}


def _logical(finding: Finding) -> dict[str, Sequence[dict[str, str]]]:
    """Return the rendered object and its field."""
    if not finding.object_ref:
        return {}
    name = f"{finding.object_ref}/{finding.path}" if finding.path else finding.object_ref
    return {"logicalLocations": [{"kind": "member", "fullyQualifiedName": visible(name)}]}
