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
from gangplan.report.escape import (
    escape_markdown,
    escape_sarif_text,
    format_path_as_uri,
    make_visible,
    replace_surrogates,
    shorten_text,
)
from gangplan.report.model import (
    Report,
    ReportEntry,
    describe_waiver,
    format_title,
    is_waived,
    sort_worst_first,
)
from gangplan.rulebook import topic_of
from gangplan.rules.model import Rule, Severity

PAGES = "GANGPLAN_RULE_PAGES"

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
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
    ordered = sort_worst_first(report.entries)
    kept, left = ordered[:MOST_RESULTS], ordered[MOST_RESULTS:]
    used = sorted({entry.finding.rule for entry in kept})
    worst = {entry.finding.rule: entry.finding.severity for entry in reversed(kept)}
    index = {rule: place for place, rule in enumerate(used)}
    run = {
        "tool": {"driver": _build_sarif_driver([_build_sarif_rule(rule, worst[rule]) for rule in used])},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The top of the repository."}}},
        "invocations": [_build_sarif_invocation(len(left))],
        "results": [_build_sarif_result(report, entry, index) for entry in kept],
    }
    return (
        json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)
        + "\n"
    )


def _build_sarif_driver(pages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": "gangplan", "semanticVersion": __version__, "rules": pages}


def _build_sarif_rule(name: Rule, severity: Severity) -> dict[str, Any]:
    """Return the page of a rule; for a policy of the workspace's own, only its name is known here."""
    page = name if name.summary else None
    level = (page.severity if page else severity).word
    tags = ["kubernetes", topic_of(page)] if page else ["kubernetes", "policy"]
    return {
        "id": replace_surrogates(name),
        "name": shorten_text(
            "".join(part.capitalize() for part in replace_surrogates(name).split("-")), LONGEST_NAME
        ),
        **({"deprecatedIds": list(name.formerly)} if name.formerly else {}),
        **(_build_sarif_rule_help(page) if page else _build_workspace_policy_help(name)),
        "defaultConfiguration": {"level": level},
        "properties": {"tags": tags, "precision": "very-high", "problem.severity": _PROBLEM[level]},
    }


def _build_workspace_policy_help(name: str) -> dict[str, Any]:
    """Return what GitHub requires of every rule, for a policy that only the workspace knows."""
    described = _format_sarif_description(f"{name}, a policy of this workspace.")
    text = "The finding says what the policy requires; gangplan policy list shows where it applies."
    return {"shortDescription": described, "fullDescription": described, "help": {"text": text}}


def _format_sarif_description(text: str) -> dict[str, str]:
    return {"text": shorten_text(escape_sarif_text(text), LONGEST_DESCRIPTION)}


def read_rule_pages_url() -> str:
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


def _build_sarif_rule_help(page: Rule) -> dict[str, Any]:
    why, fix = (" ".join(text.split()) for text in (page.why, page.fix))
    file, address = "policies" if page.is_policy else "rules", read_rule_pages_url()
    place = f"docs/{file}.md#{page}"
    return {
        **({"helpUri": address.format(page=file, rule=page)} if address else {}),
        "shortDescription": _format_sarif_description(page.summary),
        "fullDescription": _format_sarif_description(why),
        "help": {
            "text": escape_sarif_text(
                f"{why}\n\nFix: {fix}\n\ngangplan explain {page} ({place} of gangplan)"
            ),
            "markdown": f"{escape_markdown(why)}\n\n**Fix.** {escape_markdown(fix)}\n\n`gangplan explain {page}` (`{place}` of gangplan)",
        },
    }


def _build_sarif_invocation(left: int) -> dict[str, Any]:
    """Return that the tool ran to its end (which it did, if there is a report), and what was left out."""
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if left:
        text = f"{left} findings are left out: GitHub takes {MOST_RESULTS} results"
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    return invocation


def _build_sarif_result(report: Report, entry: ReportEntry, index: dict[Rule, int]) -> dict[str, Any]:
    finding = entry.finding
    waived = describe_waiver(finding) if is_waived(finding) else ""
    said = f"{format_title(finding)} ({waived})" if waived else format_title(finding)
    help = f"\n{finding.help}" if finding.help else ""
    result: dict[str, Any] = {
        "ruleId": replace_surrogates(finding.rule),
        "ruleIndex": index[finding.rule],
        # GitHub reads no suppressions and would block a change because of a waived error.
        "level": "note" if waived else finding.severity.word,
        "message": {"text": escape_sarif_text(said + help)},
        "locations": [_build_sarif_location(report, finding)],
        "partialFingerprints": {FINGERPRINT: entry.fingerprint},
    }
    if finding.clusters:
        result["properties"] = {"clusters": list(map(replace_surrogates, finding.clusters))}
    if waived:
        result["suppressions"] = [{"kind": "external", "justification": make_visible(waived)}]
    if finding.fix:
        result["fixes"] = [_build_sarif_fix(report, finding.fix)]
    return result


def _build_sarif_fix(report: Report, fix: Fix) -> dict[str, Any]:
    region = {
        "startLine": fix.line,
        "startColumn": fix.column,
        "endLine": fix.end_line,
        "endColumn": fix.end_column,
    }
    change = {
        "artifactLocation": _build_artifact_location(report, fix.file),
        "replacements": [
            {"deletedRegion": region, "insertedContent": {"text": replace_surrogates(fix.replacement)}}
        ],
    }
    return {"description": {"text": escape_sarif_text(fix.why)}, "artifactChanges": [change]}


def _build_artifact_location(report: Report, file: str) -> dict[str, str]:
    return {"uri": format_path_as_uri(report.path(file)), "uriBaseId": _ROOT}


def _build_sarif_location(report: Report, finding: Finding) -> dict[str, Any]:
    physical = {
        "artifactLocation": _build_artifact_location(report, finding.where.file),
        "region": _compute_sarif_region(finding),
    }
    return {"physicalLocation": physical} | _build_sarif_logical_locations(finding)


def _compute_sarif_region(finding: Finding) -> dict[str, int]:
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


def _build_sarif_logical_locations(finding: Finding) -> dict[str, Sequence[dict[str, str]]]:
    """Return the rendered object and its field."""
    if not finding.object_ref:
        return {}
    name = f"{finding.object_ref}/{finding.path}" if finding.path else finding.object_ref
    return {"logicalLocations": [{"kind": "member", "fullyQualifiedName": make_visible(name)}]}
