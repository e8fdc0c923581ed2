"""`gangplan validate`."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence

from gangplan.commands.common import exit_code, plural
from gangplan.commands.fix import Fixing, fix_files
from gangplan.commands.reports import outputs, publish, repository_folder
from gangplan.commands.since import add_since, check_base
from gangplan.errors import Exit, UserError
from gangplan.findings import in_order
from gangplan.pipeline.base import tree_of
from gangplan.pipeline.fix import with_image_fixes
from gangplan.pipeline.render import rendered_aside, strangers
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.second_opinion import second_opinion
from gangplan.report.escape import own_line
from gangplan.report.model import Report
from gangplan.resolve.tenant_checks import expired_grants
from gangplan.resolve.waiver_checks import judge_waivers
from gangplan.rules.model import Severity


def validate(
    request: Request,
    formats: Sequence[str] | None,
    fail_on: str,
    today: str | None = None,
    base: str | None = None,
    colour: str = "auto",
    fixing: Fixing | None = None,
) -> Exit:
    """Check everything and report the findings, after fixing what is to be fixed. `today` decides which debug
    grants and waivers are over; `base` is a Git revision to compare what is rendered with. Raises UserError
    when nothing was checked."""
    check_base(request, base)
    wanted = outputs(formats, request.root, colour)
    level = next((severity for severity in Severity if severity.word == fail_on), None)
    if level is None:
        raise UserError(f"there is no severity '{fail_on}'", "Severities: error, warning, note.")
    day = _day(today)
    if fixing is not None:
        fix_files(request, fixing, wanted.words, sys.stderr)
    with rendered_aside(request) as (result, folder):
        engines = ["embedded validator"]
        if not result.has_errors:
            passed_over: list[str] = []
            judge, found = second_opinion(result.workspace, folder, passed_over)
            for sentence in passed_over:
                wanted.words.write(f"no second opinion: {own_line(sentence)}\n")
            engines += [judge] if judge else []
            result.findings = in_order([*result.findings, *found])
            if base:
                add_since(request, result, base, tree_of(folder))
        result.findings = in_order([*result.findings, *strangers(request, result, folder)])
        workspace = result.workspace
        expired = expired_grants(workspace, day, request.teams)
        is_whole = result.scope.is_everything and not result.has_errors
        judged = judge_waivers(workspace, result.findings, day, is_whole)
        result.findings = with_image_fixes(workspace, in_order([*judged, *expired]))
    if not base:
        check_something(request, result)
    publish(report_of(request, result, engines, level), wanted, request.root)
    return exit_code(result.findings, level)


def check_something(request: Request, result: Result) -> None:
    """Raise UserError where nothing was checked, or nothing that would ever run: that is never a success."""
    if result.has_errors:
        return
    if not result.objects:
        where = f" on cluster {', '.join(request.clusters)}" if request.clusters else " on any cluster"
        raise UserError(
            f"nothing was checked: none of {plural(result.specs, 'spec')} runs{where}",
            "Name other specs or clusters, or add the cluster to the team or the spec.",
        )
    # A whole workspace whose runs are all over is in order: its clusters and teams were checked.
    if result.scope.names_specs_alone and not result.active:
        named = "the spec is" if result.specs == 1 else f"all {result.specs} specs are"
        raise UserError(
            f"nothing was checked that would run: {named} archived",
            "Name other specs, or remove state: archived from one that should run.",
        )


def report_of(request: Request, result: Result, engines: Sequence[str], level: Severity) -> Report:
    """What a run found, as the reports tell it."""
    checked = {
        "specs": result.specs,
        "runs": sum(1 for change in result.changes if "/runs/" in change.path),
        "objects": result.objects,
        **({"policies": len(result.policies)} if result.policies else {}),
    }
    folder = repository_folder(request.root)
    return Report(tuple(result.findings), checked, tuple(engines), result.files, folder, level)


def _day(text: str | None) -> datetime.date:
    """The day of a flag, or today. The only look at the calendar: rendering never depends on it."""
    if text is None:
        return datetime.datetime.now().astimezone().date()
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise UserError(f"'{text}' is not a valid date", "Write --today 2026-12-31.") from None
