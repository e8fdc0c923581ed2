"""Findings as Markdown: the comment on a pull request, and the summary of a CI step.

Grouped by severity and file, with what to do first at the top. A comment on GitHub holds 65 536 characters;
what does not fit is counted, and no finding is cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.report.changes import suggest_first_changes_for_findings
from gangplan.report.escape import escape_markdown, shorten_text
from gangplan.report.model import (
    Report,
    ReportEntry,
    describe_waiver,
    format_check_summary,
    format_title,
    is_waived,
    sort_worst_first,
)
from gangplan.rules.model import Severity

MOST_BYTES = 65_536
# A bot finds its own comment by this line, and replaces it instead of adding another one.
COMMENT_MARKER = "<!-- gangplan -->"
# The most of one text of a user, so that no single finding fills the comment; the log has the rest.
LONGEST_TEXT = 1000
# A section with more findings than this is folded.
_OPEN = 10
_ROOM_FOR_THE_REST = 200


def markdown_report(report: Report, most: int = MOST_BYTES) -> str:
    """Return the report in at most `most` bytes of UTF-8, and so in as many characters; empty if its head
    does not fit."""
    found = sort_worst_first(report.entries)
    lines = [
        COMMENT_MARKER,
        f"### gangplan: {_describe_report_verdict(report)}",
        "",
        escape_markdown(format_check_summary(report)),
        "",
    ]
    size = sum(map(_count_line_bytes, lines))
    if size + _ROOM_FOR_THE_REST > most:
        return ""
    steps = _render_markdown_first_steps(report)
    # If texts are long, the findings are more important than the advice.
    if sum(map(_count_line_bytes, steps)) <= (most - size) // 2:
        lines += steps
        size += sum(map(_count_line_bytes, steps))
    left = 0
    for section in _group_findings_by_severity(found):
        head, rows, tail = _render_markdown_findings_section(report, section)
        frame = sum(_count_line_bytes(line) for line in [*head, *tail])
        kept: list[str] = []
        for block in rows:
            needs = sum(_count_line_bytes(line) for line in block)
            if left or size + frame + needs + _ROOM_FOR_THE_REST > most:
                left += 1
                continue
            kept += block
            size += needs
        if kept:
            lines += [*head, *kept, *tail]
            size += frame
    if left:
        lines += [f"**{left} more** do not fit here; the log of the job has them all.", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _count_line_bytes(line: str) -> int:
    return len(line.encode("utf-8")) + 1


def _describe_report_verdict(report: Report) -> str:
    counted = [finding for finding in report.findings if not is_waived(finding)]
    if any(finding.severity >= report.fail_on for finding in counted):
        return "not yet"
    return "fine, with remarks" if counted else "all fine"


def _render_markdown_first_steps(report: Report) -> list[str]:
    lines = []
    for change in suggest_first_changes_for_findings(report.findings):
        place = escape_markdown(report.path(str(change.places[0])))
        others = f" and {len(change.places) - 1} more" if len(change.places) > 1 else ""
        lines.append(f"1. **{change.words}**: {place}{others}: {_format_markdown_text(change.help)}")
    return ["**First**", "", *lines, ""] if lines else []


def _group_findings_by_severity(found: list[ReportEntry]) -> Iterator[list[ReportEntry]]:
    """Yield the findings of each severity, and at the end those that are waived."""
    for severity in reversed(Severity):
        of_it = [one for one in found if one.finding.severity is severity and not is_waived(one.finding)]
        if of_it:
            yield of_it
    waived = [one for one in found if is_waived(one.finding)]
    if waived:
        yield waived


def _render_markdown_findings_section(
    report: Report, section: list[ReportEntry]
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return head, a block of lines per finding, and tail. The first finding of a file brings the file's
    line."""
    first = section[0].finding
    word = (
        "waived"
        if is_waived(first)
        else f"{first.severity.word}s"
        if len(section) > 1
        else first.severity.word
    )
    opened = " open" if len(section) <= _OPEN and not is_waived(first) else ""
    head = [f"<details{opened}><summary>{len(section)} {word}</summary>", ""]
    blocks: list[list[str]] = []
    file = None
    for entry in section:
        block = []
        if entry.finding.where.file != file:
            block += (
                ["", f"**{escape_markdown(report.path(entry.finding.where.file))}**", ""]
                if file is not None
                else [
                    f"**{escape_markdown(report.path(entry.finding.where.file))}**",
                    "",
                ]
            )
            file = entry.finding.where.file
        blocks.append([*block, *_render_markdown_finding_lines(entry)])
    return head, blocks, ["", "</details>", ""]


def _render_markdown_finding_lines(entry: ReportEntry) -> list[str]:
    finding = entry.finding
    where = finding.where
    place = f"{where.line}:{where.column} " if where.line else ""
    lines = [f"- {place}`{_clean_rule_name(finding.rule)}` {_format_markdown_text(format_title(finding))}"]
    if finding.help:
        lines.append(f"  <br>{_format_markdown_text(finding.help)}")
    if is_waived(finding):
        lines.append(f"  <br>*{_format_markdown_text(describe_waiver(finding))}*")
    return lines


def _format_markdown_text(text: str) -> str:
    return escape_markdown(shorten_text(text, LONGEST_TEXT))


def _clean_rule_name(rule: str) -> str:
    """Return a rule's name inside backquotes; names of rules have none, but a policy's file may try."""
    return "".join(char for char in rule if char.isalnum() or char in "-._/")
