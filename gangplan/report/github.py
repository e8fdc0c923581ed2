"""Findings as GitHub annotations: workflow commands in the log of a step, the worst first.

GitHub shows 10 errors, 10 warnings and 10 notices of a step and drops the rest silently (actions/toolkit,
docs/problem-matchers.md, "Limitations"). So the worst ten of each level become commands, and the last notice
says how many more there are; the step's summary (`render_step_summary`) holds them all.
"""

from __future__ import annotations

from gangplan.report.escape import escape_command_data, escape_command_property, escape_log_line, shorten_text
from gangplan.report.markdown import markdown_report
from gangplan.report.model import (
    Report,
    ReportEntry,
    format_check_summary,
    format_title,
    is_waived,
    sort_worst_first,
)
from gangplan.rules.model import Severity

MOST_OF_A_LEVEL = 10
# A step's summary may have 1024 KiB in all (docs.github.com, "Workflow commands", step isolation and limits).
MOST_SUMMARY_BYTES = 1024 * 1024

# What one annotation shows of a message and of its help (a check takes 64 KiB for both).
LONGEST_TEXT = 4000

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github_report(report: Report) -> str:
    """Return workflow commands for the worst findings, then one line that counts the others, then the
    summary.

    Waived findings are not annotated; the summary counts them.
    """
    found = [entry for entry in sort_worst_first(report.entries) if not is_waived(entry.finding)]
    shown: list[ReportEntry] = []
    for severity in reversed(Severity):
        level = [entry for entry in found if entry.finding.severity is severity]
        # One notice is kept for the line that counts.
        most = MOST_OF_A_LEVEL - (severity is Severity.NOTE)
        shown += level[:most]
    lines = [_format_github_annotation(report, entry) for entry in shown]
    more = len(found) - len(shown)
    if more:
        what = f"{more} more finding{'' if more == 1 else 's'}"
        text = f"{what}: see the summary of this step, or run gangplan {report.command}"
        lines.append(f"::notice title=gangplan::{escape_command_data(text)}")
    return "".join(f"{line}\n" for line in [*lines, escape_log_line(format_check_summary(report))])


def render_step_summary(report: Report, room: int = MOST_SUMMARY_BYTES) -> str:
    """Return all findings as Markdown in at most `room` bytes, for the file that GITHUB_STEP_SUMMARY
    names."""
    return markdown_report(report, room)


def _format_github_annotation(report: Report, entry: ReportEntry) -> str:
    finding = entry.finding
    where = finding.where
    line = max(where.line, 1)
    properties = {"file": report.path(where.file), "line": str(line), "endLine": str(line)}
    if where.column:
        properties["col"] = str(where.column)
    if where.end:
        properties["endColumn"] = str(where.end)
    properties["title"] = finding.rule
    written = ",".join(f"{name}={escape_command_property(value)}" for name, value in properties.items())
    text = "\n".join(
        shorten_text(part, LONGEST_TEXT) for part in (format_title(finding), finding.help) if part
    )
    return f"::{_COMMAND[finding.severity]} {written}::{escape_command_data(text)}"
