"""`gangplan validate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gangplan.api.checks import check_something, day_of, examined
from gangplan.commands.common import exit_code
from gangplan.commands.compared import observed
from gangplan.commands.connecting import Observing
from gangplan.commands.fix import Fixing, fix_files
from gangplan.commands.reports import outputs, publish, repository_folder
from gangplan.commands.since import add_since, check_base, tree_aside
from gangplan.errors import Exit, UserError
from gangplan.pipeline.request import Request, Result
from gangplan.report.escape import own_line
from gangplan.report.model import Report
from gangplan.rules.model import Severity


def validate(
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
    check_base(request, base)
    if fixing is not None:  # a dry run must not write to the cache
        request = replace(request, uses_cache=False)
    wanted = replace(outputs(formats, request.root, colour, is_quiet), is_verbose=is_verbose)
    level, day = level_of(fail_on), day_of(today)
    if fixing is not None:
        fix_files(request, fixing, wanted.words, sys.stderr)
    if wanted.is_for_people and base is None and observing is None:
        request = replace(request, in_sums=True)
    passed_over: list[str] = []
    result, engines = examined(
        request,
        day,
        passed_over,
        partial(_since, request, base) if base else None,
        partial(observed, request, observing=observing) if observing is not None else None,
    )
    for sentence in passed_over:
        wanted.words.write(f"no second opinion: {own_line(sentence)}\n")
    if not base:
        check_something(request, result)
    publish(report_of(request, result, engines, level), wanted, request.root)
    return exit_code(result.findings, level)


def _since(request: Request, base: str, result: Result, folder: Path) -> None:
    add_since(request, result, base, tree_aside(request, result, folder))


def report_of(request: Request, result: Result, engines: Sequence[str], level: Severity) -> Report:
    """Build the report of a result."""
    checked = {
        "specs": result.specs,
        "runs": result.run_files,
        "objects": result.objects,
        **({"policies": len(result.policies)} if result.policies else {}),
    }
    folder = repository_folder(request.root)
    return Report(tuple(result.findings), checked, tuple(engines), result.files, folder, level)


def level_of(word: str) -> Severity:
    """Return the severity of a flag. Raises UserError."""
    level = next((severity for severity in Severity if severity.word == word), None)
    if level is None:
        raise UserError(f"there is no severity '{word}'", "Severities: error, warning, note.")
    return level
