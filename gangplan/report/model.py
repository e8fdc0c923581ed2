"""A report: findings and what was checked, in the order and with the names that every format uses."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from gangplan.findings import Finding, find_worst_severity, sort_findings
from gangplan.records import dataclass
from gangplan.rules.model import Severity

# A digest or the hash in the name of a run, and any number: they change while the problem is the same.
_HASH = re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{6,}\b")
_NUMBER = re.compile(r"[0-9]+")
# Which files a flag fixes; the fixes of other findings are only for editors.
_FIXED_BY = {
    "fixable with --fix": re.compile(r"specs/"),
    "fixable with --fix-platform": re.compile(
        r"(overlays/[^/]+/cluster\.yaml|images/catalog\.yaml|policies/waivers/[^/]+)\Z"
    ),
}


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """A finding and its fingerprint: 32 hexadecimal digits, unique in a report."""

    finding: Finding
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found.

    `checked` counts what was looked at, by the words of the summary (`specs`, `runs`, `objects`, ...);
    `files` are the spec files among it, by their paths from the workspace; `folder` is the place of the
    workspace in its repository, without slashes at its ends and empty at the top: CI systems count paths from
    there. `facts` are more keys of the JSON document.
    """

    findings: tuple[Finding, ...]
    checked: Mapping[str, int] = field(default_factory=dict)
    engines: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    folder: str = ""
    fail_on: Severity = Severity.ERROR
    command: str = "validate"
    facts: Mapping[str, Any] = field(default_factory=dict)

    def path(self, file: str) -> str:
        """Return the path of a workspace file in its repository."""
        return f"{self.folder}/{file}" if self.folder else file

    @property
    def entries(self) -> list[ReportEntry]:
        """The findings in order (file, line, rule), each with its fingerprint."""
        return list_report_entries(self.findings, self.folder)


def list_report_entries(findings: Iterable[Finding], folder: str = "") -> list[ReportEntry]:
    """Return the findings in their order, without repeats, each with its fingerprint.

    A fingerprint covers the rule, the file and either the object with its field or the message without its
    numbers, never the line: it stays the same when lines move. The second and further findings that agree in
    all of these add their number. The file counts by its path in the repository, where `folder` has the
    workspace: GitLab merges the reports of all workspaces and drops what repeats a fingerprint.
    """
    seen: Counter[str] = Counter()
    found = []
    for finding in sort_findings(findings):
        about = f"{finding.object_ref}\0{finding.path}" if finding.path else _build_fingerprint_text(finding)
        file = f"{folder}/{finding.where.file}" if folder else finding.where.file
        key = f"{finding.rule}\0{file}\0{about}"
        seen[key] += 1
        text = key if seen[key] == 1 else f"{key}\0{seen[key]}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        found.append(ReportEntry(finding, digest[:32]))
    return found


def _build_fingerprint_text(finding: Finding) -> str:
    text = f"{finding.object_ref}\0{finding.message}"
    return _NUMBER.sub("0", _HASH.sub("#", text))


def sort_worst_first(found: Sequence[ReportEntry]) -> list[ReportEntry]:
    """Return errors, then warnings, then notes, and waived ones at the end; each in the order of the
    report."""
    return sorted(found, key=lambda entry: (is_waived(entry.finding), -entry.finding.severity))


def is_waived(finding: Finding) -> bool:
    """Return whether a waiver covers the finding: it is shown, and fails nothing."""
    return not finding.counts


def describe_waiver(finding: Finding) -> str:
    """Return `waived until 2027-01-31: reason (policies/waivers/a.yaml:3:1)`; empty without a waiver."""
    waiver = finding.waiver
    if waiver is None:
        return ""
    until = f"until {waiver.until}, which is over" if waiver.is_over else f"until {waiver.until}"
    return f"waived {until}: {waiver.reason} ({waiver.where})"


def format_title(finding: Finding) -> str:
    """Return the message with the object that it is about."""
    return f"{finding.object_ref}: {finding.message}" if finding.object_ref else finding.message


def format_severity_counts(findings: Iterable[Finding]) -> str:
    """Return how many there are of each severity, then waived ones: `2 errors, 1 warning, 1 waived`, `no
    findings`."""
    listed = list(findings)
    counts = Counter(finding.severity for finding in listed if not is_waived(finding))
    parts = [
        f"{counts[severity]} {severity.word}{'' if counts[severity] == 1 else 's'}"
        for severity in reversed(Severity)
        if counts[severity]
    ]
    rest = [
        f"{count} {word}"
        for count, word in (
            (sum(map(is_waived, listed)), "waived"),
            *(
                (sum(one.fix is not None and bool(files.match(one.fix.file)) for one in listed), word)
                for word, files in _FIXED_BY.items()
            ),
        )
        if count
    ]
    return ", ".join([*(parts or ["no findings"]), *rest])


def format_check_summary(report: Report) -> str:
    """Return what was checked, by which engines and with what result, in a line: the summary of every
    format."""
    parts = [
        f"{count} {word.removesuffix('ies') + 'y' if count == 1 and word.endswith('ies') else word.removesuffix('s') if count == 1 else word}"
        for word, count in report.checked.items()
    ]
    judges = f" ({' and '.join(report.engines)})" if report.engines else ""
    return f"checked {', '.join(parts)}{judges}: {format_severity_counts(report.findings)}{_describe_fail_on_verdict(report)}"


def _describe_fail_on_verdict(report: Report) -> str:
    """Return what failed a command without errors; errors need no explanation."""
    level = find_worst_severity(report.findings)
    if level is None or level is Severity.ERROR or level < report.fail_on:
        return ""
    return f"; failed by --fail-on {report.fail_on.word}"
