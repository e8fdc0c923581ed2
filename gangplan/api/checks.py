"""All findings of a workspace on a day, and its tree as written or compared, for the commands to print."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from operator import is_
from pathlib import Path

from gangplan import clock
from gangplan.errors import UserError
from gangplan.findings import Finding, merge_sorted_findings, sort_findings
from gangplan.pipeline.image_fix import add_image_fixes
from gangplan.pipeline.render import (
    find_stale_rendered_files,
    list_settled_files,
    list_telling_files,
    list_whole_team_files,
    render_into_temporary_folder,
    render_tree,
    report_unmanaged_rendered_files,
    save_results,
)
from gangplan.pipeline.request import Request, Result, require_objects_in_scope
from gangplan.pipeline.second_opinion import ask_kubeconform_for_second_opinion, find_judge_name
from gangplan.records import dataclass
from gangplan.resolve.tenant_checks import check_expired_team_grants, check_unneeded_team_pod_security_levels
from gangplan.resolve.waiver_checks import judge_waivers
from gangplan.review.stale import check_stale_files
from gangplan.rules.model import Severity

# Optional further checks: of the tree that was rendered into a folder, and of the result so far.
InTree = Callable[[Result, Path], None]
Besides = Callable[[Result], list[Finding]]


@dataclass(slots=True)
class _Check:
    """The state of a check between the stages: the tree that was rendered to a temporary folder, and its
    findings.

    `is_sound`: the rendering had no errors, before any other judge was asked. `judge` is the second
    validator, empty without one, and `is_agreed` says that it found nothing; `more` are the findings from
    clusters.
    """

    request: Request
    day: datetime.date
    result: Result
    folder: Path
    passed_over: list[str]
    in_tree: InTree | None
    besides: Besides | None
    is_sound: bool
    judge: str = ""
    is_agreed: bool = False
    more: list[Finding] = field(default_factory=list)


def examine_workspace(
    request: Request,
    day: datetime.date,
    passed_over: list[str],
    in_tree: InTree | None = None,
    besides: Besides | None = None,
) -> tuple[Result, list[str]]:
    """Return all findings, and the validators that were asked, without changing anything in the workspace.

    The `day` decides which debug grants and waivers have expired. `passed_over` gets a sentence for each part
    that the second validator could not see; `in_tree` is called only if there are no errors so far.
    """
    asked = find_judge_name()
    with render_into_temporary_folder(replace(request, with_facts=bool(asked)), asked, is_whole=False) as (
        result,
        folder,
    ):
        check = _Check(request, day, result, folder, passed_over, in_tree, besides, not result.has_errors)
        for stage in CHECK_STAGES:
            stage(check)
    return check.result, ["embedded validator", *([check.judge] if check.judge else [])]


def _ask_second_judge(check: _Check) -> None:
    """Add the findings of a second judge with the same schemas."""
    if not check.is_sound:
        return
    result, told = check.result, check.request.told
    telling = list_telling_files(result), list_settled_files(result), partial(list_whole_team_files, result)
    check.judge, found = ask_kubeconform_for_second_opinion(
        result.workspace, check.folder, check.passed_over, *telling
    )
    if told is not None:
        check.passed_over.clear()
        check.judge, found = told.judge, [*found, *told.opinions]
    check.is_agreed = not found
    result.findings = merge_sorted_findings(result.findings, found)


def _look_into_tree(check: _Check) -> None:
    """Run the further check of the tree, such as a simulated sync from an earlier tree."""
    if check.is_sound and check.in_tree is not None:
        check.in_tree(check.result, check.folder)


def _compare_rendered_tree(check: _Check) -> None:
    """Add findings for files in `rendered/` that are stale or unmanaged."""
    request, result, folder = check.request, check.result, check.folder
    files, asks_git = find_stale_rendered_files(request, result, folder), check.in_tree is not None
    stale = check_stale_files(request.root, files, asks_git=asks_git)
    result.findings = sort_findings(
        [*result.findings, *report_unmanaged_rendered_files(request, result, folder), *stale]
    )


def _save_check_results(check: _Check) -> None:
    """Save what was found out for the next command."""
    save_results(check.result, check.judge if check.is_agreed else "")


def _ask_clusters(check: _Check) -> None:
    """Get the findings from clusters, or from files with their answers."""
    if check.besides is not None:
        check.more = check.besides(check.result)


def _judge_waivers_and_grants_on_day(check: _Check) -> None:
    """Add findings for waivers and grants that have expired by the day, or that nothing needs."""
    result = check.result
    is_whole = result.scope.is_everything and not result.has_errors
    judged = judge_waivers(result.workspace, result.findings, check.day, is_whole)
    idle = check_unneeded_team_pod_security_levels(result.workspace, result.findings) if is_whole else ()
    is_as_it_was = len(judged) == len(result.findings) and all(map(is_, judged, result.findings))
    ordered = judged if is_as_it_was else sort_findings(judged)
    expired = check_expired_team_grants(result.workspace, check.day, check.request.teams)
    result.findings = [*merge_sorted_findings(ordered, expired, idle), *check.more]


def _fix_images(check: _Check) -> None:
    """Add fixes for images that the catalog has by name."""
    check.result.findings = add_image_fixes(check.result.workspace, check.result.findings)


# The stages of a check after those of the pipeline (`pipeline/stages.py`), in order.
CHECK_STAGES: tuple[Callable[[_Check], None], ...] = (
    _ask_second_judge,
    _look_into_tree,
    _compare_rendered_tree,
    _save_check_results,
    _ask_clusters,
    _judge_waivers_and_grants_on_day,
    _fix_images,
)


def write_or_compare_rendered_tree(
    request: Request, tree: Path | None, check: bool, in_tree: Callable[[Result], None] | None = None
) -> tuple[Result, bool]:
    """Write the tree (default: `rendered/`), or with `check` compare it and report what is stale.

    Return the result, and whether this was done; it is not if there are errors.
    """
    result = render_tree(request, tree, check)
    if result.has_errors:
        return result, False
    if check:
        if in_tree is not None:
            in_tree(result)
        stale = check_stale_files(request.root, result.differences, Severity.ERROR)
        result.findings = sort_findings([*result.findings, *result.strangers, *stale])
    return result, True


def require_something_checked(request: Request, result: Result) -> None:
    """Raise UserError if nothing was checked, or nothing that would ever run: that must not count as
    success."""
    # A whole workspace whose runs are all over is fine, because its clusters and teams were checked. The same
    # is true of the file of a team that no cluster lists yet.
    runs = result.active or not result.scope.names_specs_alone
    if result.has_errors or ((result.objects or result.scope.named_teams) and runs):
        return
    require_objects_in_scope(request, result, "checked")
    named = "the spec is" if result.specs == 1 else f"all {result.specs} specs are"
    raise UserError(
        f"nothing was checked that would run: {named} stopped or archived",
        "Name other specs, or remove state: from one that should run.",
    )


def resolve_day(text: str | None, flag: str = "--today") -> datetime.date:
    """Return the day of a flag, or today. Raises UserError."""
    flag = f"{flag} " if text is not None else "GANGPLAN_TODAY="
    text = clock.read_today() if text is None else text
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):  # fromisoformat also accepts weeks
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise UserError(f"'{text}' is not a valid date", f"Write {flag}2026-12-31.")
