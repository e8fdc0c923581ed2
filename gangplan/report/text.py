"""Findings for people: one line each with place, rule and what is wrong, and a line that helps.

A line starts with `file:line:column:`, which editors and terminals jump to. Files with errors come first;
within a file, findings are in the order of its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from gangplan.findings import Finding, Location, find_worst_severity, sort_findings
from gangplan.report.changes import suggest_first_changes_for_findings
from gangplan.report.escape import escape_log_line, is_plain_log_line
from gangplan.report.model import (
    Report,
    describe_waiver,
    format_check_summary,
    format_severity_counts,
    format_title,
)
from gangplan.rules.model import Severity

# A function that returns the source line of a place, or None if there is none to show.
ExcerptReader = Callable[[Location], "str | None"]

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_DIM = "2"
# An excerpt shows this much of its line, so that the caret is below it.
_WIDEST = 140


def text_report(findings: Sequence[Finding], colour: bool = False, line: ExcerptReader | None = None) -> str:
    """Return all findings by file, with an empty line between files; empty for none. `line` adds excerpts."""
    files: dict[str, list[Finding]] = {}
    for finding in sort_findings(findings):
        files.setdefault(finding.where.file, []).append(finding)
    groups = sorted(files.values(), key=_compute_findings_rank)
    return "\n".join("".join(_render_finding_group(group, colour, line)) for group in groups)


def whole_text(report: Report, colour: bool = False, line: ExcerptReader | None = None) -> str:
    """Return findings, the changes to make first, and the summary."""
    return (
        text_report(report.findings, colour, line)
        + format_suggested_first_changes(report.findings)
        + f"{format_check_summary(report)}\n"
    )


def format_suggested_first_changes(findings: Sequence[Finding]) -> str:
    """Return an empty line and a line per change that resolves several findings; empty without such a
    change."""
    lines = [
        f"{change.words}: {escape_log_line(str(change.places[0]))}"
        f"{' and others' if len(change.places) > 1 else ''}: {escape_log_line(change.help)}\n"
        for change in suggest_first_changes_for_findings(findings)
    ]
    return "".join(["\n", *lines]) if lines else ""


def format_rule_reasons(findings: Sequence[Finding]) -> str:
    """Return why each broken rule exists, once, the worst first; after an empty line, and empty for none."""
    broken = {one.rule: one.severity for one in reversed(sort_findings(findings)) if one.rule.why}
    rules = sorted(broken, key=lambda rule: (-broken[rule], rule))
    return "".join(["\n", *(f"{rule}: {escape_log_line(rule.why)}\n" for rule in rules)]) if rules else ""


def summary(findings: Sequence[Finding]) -> str:
    """Return how many findings there are of each severity: "2 errors, 1 warning"."""
    return format_severity_counts(findings)


def _compute_findings_rank(group: list[Finding]) -> tuple[int, str]:
    level = find_worst_severity(group)
    return (-level if level is not None else 1, group[0].where.file)


def _render_finding_group(findings: list[Finding], colour: bool, line: ExcerptReader | None) -> Iterator[str]:
    """Yield the lines of each finding. Those with the same help at one place share one excerpt and one
    help."""
    is_alike = False
    for one, after in zip_longest(findings, findings[1:]):
        excerpt = None if is_alike else line
        is_alike = after is not None and _is_helped_alike(one, after)
        yield f"{_render_finding_lines(one, colour, excerpt, '' if is_alike else one.help)}\n"


def _is_helped_alike(one: Finding, other: Finding) -> bool:
    return (
        bool(one.help)
        and (one.help, one.rule, one.waiver) == (other.help, other.rule, other.waiver)
        and one.where == other.where
    )


def _render_finding_lines(finding: Finding, colour: bool, line: ExcerptReader | None, help: str) -> str:
    if line is None and not colour and finding.waiver is None:
        first = f"{finding.where}: {finding.severity.word}[{finding.rule}] {format_title(finding)}"
        if is_plain_log_line(first) and (not help or is_plain_log_line(help)):
            return f"{first}\n  help: {help}" if help else first
    level = escape_log_line(f"{finding.severity.word}[{finding.rule}]")
    if colour:
        level = _apply_ansi_style(level, f"1;{_COLOURS[finding.severity]}")
    lines = [f"{escape_log_line(str(finding.where))}: {level} {escape_log_line(format_title(finding))}"]
    if line is not None:
        lines += _render_source_excerpt_with_carets(finding.where, line(finding.where), colour)
    if help:
        lines.append(f"  help: {escape_log_line(help)}")
    if finding.waiver is not None:
        lines.append(f"  {escape_log_line(describe_waiver(finding))}")
    return "\n".join(lines)


def _render_source_excerpt_with_carets(where: Location, text: str | None, colour: bool) -> list[str]:
    """Return the line at fault, and carets below the word or value."""
    if text is None or not where.column or where.column > _WIDEST:
        return []
    shown = text.replace("\t", " ")[:_WIDEST].rstrip()
    if where.column > len(shown) + 1 or escape_log_line(shown) != shown:
        return []  # invisible or wide characters would move the caret
    gutter = f"{where.line:>5} | "
    marked = "^" * max(min(where.end, len(shown) + 1) - where.column, 1)
    lines = [f"{gutter}{shown}", f"{' ' * (len(gutter) - 2)}| {' ' * (where.column - 1)}{marked}"]
    return [_apply_ansi_style(one, _DIM) for one in lines] if colour else lines


def _apply_ansi_style(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m"
