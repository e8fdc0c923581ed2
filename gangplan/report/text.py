"""Findings for people: one line each with place, rule and what is wrong, and a line that helps."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.findings import Finding, Severity

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}


def text_report(findings: Sequence[Finding], colour: bool = False) -> str:
    """All findings, in their order; empty for none."""
    return "".join(f"{_lines(finding, colour)}\n" for finding in findings)


def summary(findings: Sequence[Finding]) -> str:
    """How many of each severity: "2 errors, 1 warning"."""
    counts = [
        (sum(1 for finding in findings if finding.severity is severity), severity.word)
        for severity in reversed(Severity)
    ]
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    return ", ".join(parts) or "no findings"


def _lines(finding: Finding, colour: bool) -> str:
    level = f"{finding.severity.word}[{finding.rule}]"
    if colour:
        level = f"\033[1;{_COLOURS[finding.severity]}m{level}\033[0m"
    subject = f"{finding.object_ref}: " if finding.object_ref else ""
    lines = [f"{finding.where}: {level} {subject}{finding.message}"]
    if finding.help:
        lines.append(f"  help: {finding.help}")
    return "\n".join(lines)
