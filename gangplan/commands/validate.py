"""`gangplan validate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gangplan.api.checks import examine_workspace, require_something_checked, resolve_day
from gangplan.commands.common import choose_exit_code
from gangplan.commands.compared import observe_clusters_for_validate_command
from gangplan.commands.connecting import Observing
from gangplan.commands.fix import Fixing, fix_files_selected_by_flags
from gangplan.commands.reports import find_report_folder, parse_format_flags, publish_reports
from gangplan.commands.since import add_findings_for_base_flag, build_tree_from_output_folder, check_base_flag
from gangplan.errors import Exit, UserError
from gangplan.pipeline.request import Request, Result
from gangplan.report.escape import escape_own_line
from gangplan.report.model import Report
from gangplan.rules.model import Severity


def run_validate_command(
    request: Request,
    formats: Sequence[str] | None,
    fail_on: str,
    today: str | None = None,
    base: str | None = None,
    colour: str = "auto",
    fixing: Fixing | None = None,
    is_quiet: bool = False,
    observing: Observing | None = None,
    is_verbose: bool = False,
) -> Exit:
    """Check everything and report the findings, after fixing what `fixing` selects.

    `today` decides which debug grants and waivers have expired; `base` is a Git revision to compare the
    rendered tree with; `observing` says what else to look at. Raises UserError if nothing was checked.
    """
    check_base_flag(request, base)
    if fixing is not None:  # a dry run must not write to the cache
        request = replace(request, uses_cache=False)
    wanted = replace(parse_format_flags(formats, request.root, colour, is_quiet), is_verbose=is_verbose)
    level, day = parse_severity_flag(fail_on), resolve_day(today)
    if fixing is not None:
        fix_files_selected_by_flags(request, fixing, wanted.words, sys.stderr)
    if wanted.is_for_people and base is None and observing is None:
        request = replace(request, in_sums=True)
    passed_over: list[str] = []
    result, engines = examine_workspace(
        request,
        day,
        passed_over,
        partial(_add_findings_since_base, request, base) if base else None,
        partial(observe_clusters_for_validate_command, request, observing=observing)
        if observing is not None
        else None,
    )
    for sentence in passed_over:
        wanted.words.write(f"no second opinion: {escape_own_line(sentence)}\n")
    if not base:
        require_something_checked(request, result)
    publish_reports(build_validate_report(request, result, engines, level), wanted, request.root)
    return choose_exit_code(result.findings, level)


def _add_findings_since_base(request: Request, base: str, result: Result, folder: Path) -> None:
    add_findings_for_base_flag(request, result, base, build_tree_from_output_folder(request, result, folder))


def build_validate_report(
    request: Request, result: Result, engines: Sequence[str], level: Severity
) -> Report:
    """Build the report of a result."""
    checked = {
        "specs": result.specs,
        "runs": result.run_files,
        "objects": result.objects,
        **({"policies": len(result.policies)} if result.policies else {}),
    }
    folder = find_report_folder(request.root)
    return Report(tuple(result.findings), checked, tuple(engines), result.files, folder, level)


def parse_severity_flag(word: str) -> Severity:
    """Return the severity of a flag. Raises UserError."""
    level = next((severity for severity in Severity if severity.word == word), None)
    if level is None:
        raise UserError(f"there is no severity '{word}'", "Severities: error, warning, note.")
    return level
