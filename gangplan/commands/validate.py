"""`gangplan validate`."""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import is_
from pathlib import Path
from typing import TextIO

from gangplan import clock
from gangplan.commands.common import exit_code, plural
from gangplan.commands.compared import observed
from gangplan.commands.connecting import Observing
from gangplan.commands.fix import Fixing, fix_files
from gangplan.commands.reports import outputs, publish, repository_folder
from gangplan.commands.since import add_since, check_base, tree_aside
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, in_order, with_more
from gangplan.pipeline.image_fix import with_image_fixes
from gangplan.pipeline.render import (
    rendered_aside,
    rest_of,
    save,
    stale_files,
    standing_of,
    strangers,
    telling_of,
)
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.second_opinion import judge_name, second_opinion
from gangplan.report.escape import own_line
from gangplan.report.model import Report
from gangplan.resolve.tenant_checks import expired_grants, unneeded
from gangplan.resolve.waiver_checks import judge_waivers
from gangplan.review.stale import stale_findings
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
) -> Exit:
    """Check everything and report the findings, after fixing what is to be fixed. `today` decides which debug
    grants and waivers are over; `base` is a Git revision to compare what is rendered with, `observing` says
    what else to look at. Raises UserError when nothing was checked."""
    check_base(request, base)
    if fixing is not None:  # a dry run leaves nothing anywhere
        request = replace(request, uses_cache=False)
    wanted = outputs(formats, request.root, colour, is_quiet)
    level, day = level_of(fail_on), day_of(today)
    if fixing is not None:
        fix_files(request, fixing, wanted.words, sys.stderr)
    if wanted.is_for_people and base is None and observing is None:
        request = replace(request, in_sums=True)
    asked = judge_name()
    with rendered_aside(replace(request, with_facts=bool(asked)), asked, is_whole=False) as found_now:
        result, folder = found_now
        engines, judged_by = ["embedded validator"], ""
        if not result.has_errors:
            judge, found = _second(request, result, folder, wanted.words)
            engines += [judge] if judge else []
            judged_by = "" if found else judge
            result.findings = with_more(result.findings, found)
            if base:
                add_since(request, result, base, tree_aside(request, result, folder))
        stale = stale_findings(request.root, stale_files(request, result, folder), asks_git=bool(base))
        result.findings = in_order([*result.findings, *strangers(request, result, folder), *stale])
        save(result, judged_by)
        found = observed(request, result, observing) if observing is not None else []
        result.findings = with_image_fixes(result.workspace, [*_on_day(request, result, day), *found])
    if not base:
        check_something(request, result)
    publish(report_of(request, result, engines, level), wanted, request.root)
    return exit_code(result.findings, level)


def _second(request: Request, result: Result, folder: Path, words: TextIO) -> tuple[str, list[Finding]]:
    """Another judge and what it found; `words` say what it was not asked."""
    passed_over: list[str] = []
    told = telling_of(result), standing_of(result), partial(rest_of, result)
    judge, found = second_opinion(result.workspace, folder, passed_over, *told)
    if request.told is not None:
        return request.told.judge, [*found, *request.told.opinions]
    for sentence in passed_over:
        words.write(f"no second opinion: {own_line(sentence)}\n")
    return judge, found


def _on_day(request: Request, result: Result, day: datetime.date) -> list[Finding]:
    """The findings with the waivers and debug grants that are over on a day."""
    is_whole = result.scope.is_everything and not result.has_errors
    judged = judge_waivers(result.workspace, result.findings, day, is_whole)
    idle = unneeded(result.workspace, result.findings) if is_whole else ()
    is_as_it_was = len(judged) == len(result.findings) and all(map(is_, judged, result.findings))
    ordered = judged if is_as_it_was else in_order(judged)
    return with_more(ordered, expired_grants(result.workspace, day, request.teams), idle)


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
            f"nothing was checked that would run: {named} stopped or archived",
            "Name other specs, or remove state: from one that should run.",
        )


def report_of(request: Request, result: Result, engines: Sequence[str], level: Severity) -> Report:
    """What a run found, as the reports tell it."""
    checked = {
        "specs": result.specs,
        "runs": result.run_files,
        "objects": result.objects,
        **({"policies": len(result.policies)} if result.policies else {}),
    }
    folder = repository_folder(request.root)
    return Report(tuple(result.findings), checked, tuple(engines), result.files, folder, level)


def level_of(word: str) -> Severity:
    """The severity of a flag. Raises UserError."""
    level = next((severity for severity in Severity if severity.word == word), None)
    if level is None:
        raise UserError(f"there is no severity '{word}'", "Severities: error, warning, note.")
    return level


def day_of(text: str | None) -> datetime.date:
    """The day of a flag, or today. Raises UserError."""
    flag = "--today " if text is not None else "GANGPLAN_TODAY="
    text = clock.day() if text is None else text
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):  # fromisoformat also takes weeks
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise UserError(f"'{text}' is not a valid date", f"Write {flag}2026-12-31.")
