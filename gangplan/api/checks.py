"""All that is found in a workspace on a day, and its tree as written or compared: what commands print."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import is_
from pathlib import Path

from gangplan import clock
from gangplan.errors import UserError
from gangplan.findings import Finding, in_order, with_more
from gangplan.pipeline.image_fix import with_image_fixes
from gangplan.pipeline.render import (
    render,
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
from gangplan.resolve.tenant_checks import expired_grants, unneeded
from gangplan.resolve.waiver_checks import judge_waivers
from gangplan.review.stale import stale_findings
from gangplan.rules.model import Severity

# What else is to be found: of the tree that was rendered into a folder, and of all that was found so far.
InTree = Callable[[Result, Path], None]
Besides = Callable[[Result], list[Finding]]


def examined(
    request: Request,
    day: datetime.date,
    passed_over: list[str],
    in_tree: InTree | None = None,
    besides: Besides | None = None,
) -> tuple[Result, list[str]]:
    """Everything that is found, and the validators that were asked; nothing of the workspace is changed.

    The `day` decides which debug grants and waivers are over. `passed_over` gets a sentence for each part
    that the second validator could not see; `in_tree` is called only where there are no errors so far.
    """
    asked = judge_name()
    with rendered_aside(replace(request, with_facts=bool(asked)), asked, is_whole=False) as found_now:
        result, folder = found_now
        engines, judged_by = ["embedded validator"], ""
        if not result.has_errors:
            judge, found = _second(request, result, folder, passed_over)
            engines += [judge] if judge else []
            judged_by = "" if found else judge
            result.findings = with_more(result.findings, found)
            if in_tree is not None:
                in_tree(result, folder)
        stale = stale_findings(
            request.root, stale_files(request, result, folder), asks_git=in_tree is not None
        )
        result.findings = in_order([*result.findings, *strangers(request, result, folder), *stale])
        save(result, judged_by)
        more = besides(result) if besides is not None else []
        result.findings = with_image_fixes(result.workspace, [*_on_day(request, result, day), *more])
    return result, engines


def rendered(
    request: Request, tree: Path | None, check: bool, in_tree: Callable[[Result], None] | None = None
) -> tuple[Result, bool]:
    """The tree written (default: `rendered/`), or with `check` compared: what is stale is a finding then. And
    whether that was done, which errors prevent."""
    result = render(request, tree, check)
    if result.has_errors:
        return result, False
    if check:
        if in_tree is not None:
            in_tree(result)
        stale = stale_findings(request.root, result.differences, Severity.ERROR)
        result.findings = in_order([*result.findings, *result.strangers, *stale])
    return result, True


def check_something(request: Request, result: Result) -> None:
    """Raise UserError where nothing was checked, or nothing that would ever run: that is never a success."""
    # A whole workspace whose runs are all over is in order: its clusters and teams were checked.
    runs = result.active or not result.scope.names_specs_alone
    if result.has_errors or (result.objects and runs):
        return
    from gangplan.report.section import counted  # for words that few commands say

    if not result.objects:
        where = f" on cluster {', '.join(request.clusters)}" if request.clusters else " on any cluster"
        raise UserError(
            f"nothing was checked: none of {counted(result.specs, 'spec')} runs{where}",
            "Name other specs or clusters, or add the cluster to the team or the spec.",
        )
    named = "the spec is" if result.specs == 1 else f"all {result.specs} specs are"
    raise UserError(
        f"nothing was checked that would run: {named} stopped or archived",
        "Name other specs, or remove state: from one that should run.",
    )


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


def _second(
    request: Request, result: Result, folder: Path, passed_over: list[str]
) -> tuple[str, list[Finding]]:
    """Another judge and what it found."""
    told = telling_of(result), standing_of(result), partial(rest_of, result)
    judge, found = second_opinion(result.workspace, folder, passed_over, *told)
    if request.told is not None:
        passed_over.clear()
        return request.told.judge, [*found, *request.told.opinions]
    return judge, found


def _on_day(request: Request, result: Result, day: datetime.date) -> list[Finding]:
    """The findings with the waivers and debug grants that are over on a day."""
    is_whole = result.scope.is_everything and not result.has_errors
    judged = judge_waivers(result.workspace, result.findings, day, is_whole)
    idle = unneeded(result.workspace, result.findings) if is_whole else ()
    is_as_it_was = len(judged) == len(result.findings) and all(map(is_, judged, result.findings))
    ordered = judged if is_as_it_was else in_order(judged)
    return with_more(ordered, expired_grants(result.workspace, day, request.teams), idle)
