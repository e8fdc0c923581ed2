"""`gangplan validate`."""

from __future__ import annotations

import datetime
import sys

from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.commands.since import add_since, check_base
from gangplan.errors import Exit, UserError
from gangplan.findings import Severity, in_order
from gangplan.pipeline import Request, rendered_aside
from gangplan.report.json import json_report
from gangplan.report.text import summary
from gangplan.resolve.tenant_checks import expired_grants
from gangplan.second_opinion import second_opinion
from gangplan.since import tree_of
from gangplan.workspace import load


def validate(
    request: Request, format: str, fail_on: str, today: str | None = None, base: str | None = None
) -> Exit:
    """Check everything and print the findings. `today` decides which debug grants are over; `base` is a
    Git revision to compare what is rendered with."""
    check_base(request, base)
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    level = next((severity for severity in Severity if severity.word == fail_on), None)
    if level is None:
        raise UserError(f"there is no severity '{fail_on}'", "Severities: error, warning, note.")
    day = _day(today)
    with rendered_aside(request) as (result, folder):
        engines = ["embedded validator"]
        if not result.has_errors:
            judge, found = second_opinion(request.root, folder)
            engines += [judge] if judge else []
            result.findings = in_order([*result.findings, *found])
            if base:
                add_since(request, result, base, tree_of(folder))
        expired = expired_grants(load(request.root)[0], day, request.teams)
        result.findings = in_order([*result.findings, *expired])
    checked = {
        "specs": result.specs,
        "runs": sum(1 for change in result.changes if "/runs/" in change.path),
        "objects": result.objects,
    }
    if format == "json":
        sys.stdout.write(json_report(result.findings, {"checked": checked, "engines": engines}))
    else:
        print_findings(result.findings)
        sys.stdout.write(
            f"checked {plural(checked['specs'], 'spec')}, {plural(checked['runs'], 'run')}, {plural(checked['objects'], 'object')} ({' and '.join(engines)}): {summary(result.findings)}\n"
        )
    return exit_code(result, level)


def _day(text: str | None) -> datetime.date:
    """The day of a flag, or today. The only look at the calendar: rendering never depends on it."""
    if text is None:
        return datetime.datetime.now().astimezone().date()
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise UserError(f"'{text}' is not a day of the calendar", "Write --today 2026-12-31.") from None
