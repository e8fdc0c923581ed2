"""Findings as JUnit XML, which every CI system shows: a suite per file, a case per finding, a case per clean
file.

It holds only what junit-10.xsd knows, because Jenkins' xUnit plugin refuses a file with any other attribute.
So a case has no `file` and no `line`: its suite is named after the file, and its text begins with the line.
"""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

from gangplan.report.escape import escape_xml
from gangplan.report.model import (
    Report,
    ReportEntry,
    describe_waiver,
    format_check_summary,
    format_title,
    is_waived,
)

# Jenkins shows names in a column; the whole text is inside the case.
_LONGEST_NAME = 200
# What changes from day to day: CI systems know a case by its name, and would report another one each day.
_OF_TODAY = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b|\b[0-9]+ days?\b")


def junit_report(report: Report) -> str:
    """Return the report as `testsuites`.

    Findings at or above `fail_on` fail, waived ones are skipped, and the others pass and say in their output
    what was found. Times are 0: a report has no clock.
    """
    files: dict[str, list[ReportEntry]] = {file: [] for file in report.files}
    for entry in report.entries:
        files.setdefault(entry.finding.where.file, []).append(entry)
    root = ElementTree.Element("testsuites", name="gangplan")
    for file in sorted(files):
        root.append(_build_junit_test_suite(report, file, files[file]))
    if not files:  # a platform before its first spec, without findings
        root.append(_build_junit_test_suite(report, "workspace", []))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", "0")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _build_junit_test_suite(report: Report, file: str, found: list[ReportEntry]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=escape_xml(report.path(file)))
    seen: Counter[str] = Counter()
    for entry in found:
        suite.append(_build_junit_test_case(report, entry, seen))
    if not found:
        attributes = {
            "classname": _format_junit_class_name(report.path(file)),
            "name": "no findings",
            "time": "0",
        }
        case = ElementTree.SubElement(suite, "testcase", attributes)
        ElementTree.SubElement(case, "system-out").text = escape_xml(format_check_summary(report))
    counts = Counter(child.tag for case in suite for child in case)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", "0")
    suite.set("skipped", str(counts["skipped"]))
    suite.set("time", "0")
    return suite


def _build_junit_test_case(report: Report, entry: ReportEntry, seen: Counter[str]) -> ElementTree.Element:
    finding = entry.finding
    name = _OF_TODAY.sub("…", f"{finding.rule}: {format_title(finding)}")
    name = escape_xml(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}...")
    seen[name] += 1
    attributes = {
        "classname": _format_junit_class_name(report.path(finding.where.file)),
        "name": name if seen[name] == 1 else f"{name} ({seen[name]})",
        "time": "0",
    }
    case = ElementTree.Element("testcase", attributes)
    lines = [
        f"{report.path(str(finding.where))}: {finding.severity.word}[{finding.rule}] {format_title(finding)}"
    ]
    lines += [f"help: {finding.help}"] if finding.help else []
    text = "\n".join(map(escape_xml, lines))
    if is_waived(finding):
        ElementTree.SubElement(case, "skipped", message=escape_xml(describe_waiver(finding)))
    elif finding.severity >= report.fail_on:
        failure = ElementTree.SubElement(
            case, "failure", message=escape_xml(format_title(finding)), type=escape_xml(finding.rule)
        )
        failure.text = text
        return case
    ElementTree.SubElement(case, "system-out").text = text
    return case


def _format_junit_class_name(path: str) -> str:
    """Return the path as CI systems group by it: `specs/nlp/filings.yaml` is `specs.nlp.filings`."""
    return escape_xml(path.removesuffix(".yaml").replace(".", "_").replace("/", "."))
