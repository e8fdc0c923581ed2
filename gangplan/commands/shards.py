"""`gangplan validate --shard 3/8` and `gangplan report merge`: one check on several machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gangplan import __version__
from gangplan.api.checks import resolve_day
from gangplan.commands.common import choose_exit_code, format_plural
from gangplan.commands.reports import parse_format_flags, publish_reports
from gangplan.commands.validate import build_validate_report, parse_severity_flag, run_validate_command
from gangplan.errors import Exit, InternalError, ToolError, UserError
from gangplan.findings import Finding, sort_findings
from gangplan.incremental.program import digest_program
from gangplan.incremental.store import RecordStore
from gangplan.pipeline.image_fix import add_image_fixes
from gangplan.pipeline.render import list_telling_files, render_into_temporary_folder, save_results
from gangplan.pipeline.request import Request, Result, ShardResult
from gangplan.pipeline.second_opinion import ask_kubeconform_for_second_opinion, find_judge_name
from gangplan.pipeline.seen import look_at_workspace
from gangplan.pipeline.shard import SpecShard, parse_shard_flag
from gangplan.pipeline.told import dump_findings, load_findings, load_shard_records
from gangplan.report.escape import escape_own_line
from gangplan.report.json import FINDINGS_FORMAT_VERSION
from gangplan.resolve.tenant_checks import check_expired_team_grants
from gangplan.resolve.waiver_checks import judge_waived_finding
from gangplan.tools.kustomize import find_kustomize_engine
from gangplan.workspace import load_workspace

Facts = Mapping[str, Any]
_WRITE = "Write each with: gangplan validate --shard 1/3 --format json=shard-1.json."


def run_validate_command_for_shard(
    request: Request,
    part: str,
    formats: Sequence[str] | None,
    fail_on: str,
    today: str | None = None,
    colour: str = "auto",
    more: object = None,
    is_quiet: bool = False,
) -> Exit:
    """Check a part of the specs, such as `3/8`, and report the findings; the JSON report has what `merge`
    needs.

    Raises UserError for a part of some specs, or if `more` than a check is requested.
    """
    if request.specs or request.teams:
        help = "Leave --shard out, or --team and the names of files."
        raise UserError("--shard divides all specs of a workspace; it cannot be used with some of them", help)
    if more is not None and more != "":
        raise UserError("--shard checks a part, and --base and --fix are for the whole", "Leave --shard out.")
    shard = parse_shard_flag(part)
    request = replace(request, shard=shard)
    wanted = parse_format_flags(formats, request.root, colour, is_quiet)
    level, day, state = (
        parse_severity_flag(fail_on),
        resolve_day(today),
        _compute_workspace_state_of_shard(request),
    )
    asked = find_judge_name()
    with render_into_temporary_folder(replace(request, with_facts=bool(asked)), asked) as (result, folder):
        passed_over: list[str] = []
        judge, opinions = ask_kubeconform_for_second_opinion(
            result.workspace, folder, passed_over, list_telling_files(result)
        )
        for sentence in passed_over:
            wanted.words.write(f"no second opinion: {escape_own_line(sentence)}\n")
        engines = ["embedded validator", judge] if judge and not result.has_errors else ["embedded validator"]
        own = [] if result.has_errors else opinions
        save_results(result, "" if result.has_errors or opinions else judge)
        expired = check_expired_team_grants(result.workspace, day, ()) if shard.is_first else []
        judged = [judge_waived_finding(finding, day) for finding in [*result.findings, *own]]
        result.findings = add_image_fixes(result.workspace, sort_findings([*judged, *expired]))
    facts = _build_shard_facts_for_merge_command(request, result, state, today, judge, opinions)
    publish_reports(
        replace(build_validate_report(request, result, engines, level), facts={"shard": facts}),
        wanted,
        request.root,
    )
    if result.shard is not None and (wanted.text or not wanted.machine):
        teams = f"{len(result.shard.teams)} of {format_plural(len(result.shard.others), 'team')}"
        wanted.words.write(
            f"shard {shard} has the specs of {teams}{_describe_platform_findings(shard, result.shard)}\n"
        )
    return choose_exit_code(result.findings, level)


def _build_shard_facts_for_merge_command(
    request: Request,
    result: Result,
    state: Mapping[str, str],
    today: str | None,
    judge: str,
    opinions: Sequence[Finding],
) -> dict[str, Any]:
    """Return what `merge` needs from a shard. Raises InternalError without a shard."""
    shard, own, rules = request.shard, result.shard, result.workspace.rulebook.policy
    if shard is None or own is None:
        raise InternalError("a shard has nothing to tell")
    told = () if own.has_secrets else opinions  # then the merged check has none; it could repeat a secret
    return {
        "number": shard.number,
        "of": shard.of,
        "state": state,
        "asked": {"clusters": sorted(request.clusters), "keepRuns": request.keep_runs, "today": today or ""},
        "judge": judge,
        "opinions": dump_findings(told, rules),
        **own.telling.facts(own.secrets),
    }


def _describe_platform_findings(shard: SpecShard, result: ShardResult) -> str:
    """Return where the other findings are reported."""
    if shard.is_first or not result.elsewhere:
        return ""
    return f"; shard 1/{shard.of} tells {format_plural(len(result.elsewhere), 'finding')} about the platform"


def run_report_merge_command(
    request: Request, files: Sequence[Path], formats: Sequence[str] | None, colour: str
) -> Exit:
    """Merge the reports of all shards, and return the exit code of the whole.

    Raises UserError if a report is missing, is given twice, or belongs to other files, flags or another
    gangplan.
    """
    reports = [_read_shard_report_of_argument(file) for file in files]
    shards = [document["shard"] for document in reports]
    try:
        _check_shard_arguments_are_complete(files, shards)
        _check_shard_arguments_agree(files, reports)
        _check_shards_match_this_workspace(request, shards[0])
        asked = shards[0]["asked"]
        rules = load_workspace(request.root).rulebook.policy
        told = load_shard_records(request.root, shards, rules)
        told.judge = str(shards[0]["judge"])
        told.opinions = [one for shard in shards for one in load_findings(shard["opinions"], rules)]
        request = replace(
            request, clusters=tuple(asked["clusters"]), keep_runs=bool(asked["keepRuns"]), told=told
        )
        level = str(reports[0]["failOn"])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError):
        raise UserError("a report of a shard is damaged", _WRITE) from None
    return run_validate_command(request, formats, level, asked["today"] or None, None, colour)


def _read_shard_report_of_argument(file: Path) -> dict[str, Any]:
    """Read the report of a shard. Raises UserError."""
    try:
        document = json.loads(file.read_bytes())
    except OSError as bad:
        raise UserError(f"{file} cannot be read: {bad.strerror}", _WRITE) from None
    except (ValueError, RecursionError):
        raise UserError(f"{file} is not a JSON report", _WRITE) from None
    if not isinstance(document, dict) or document.get("version") != FINDINGS_FORMAT_VERSION:
        raise UserError(f"{file} is not a JSON report of this version of gangplan", _WRITE)
    if not isinstance(document.get("shard"), dict):
        raise UserError(f"{file} is not the report of a shard", _WRITE)
    return document


def _check_shard_arguments_are_complete(files: Sequence[Path], shards: Sequence[Facts]) -> None:
    """Raise UserError unless each shard of one whole is given exactly once."""
    of = {shard["of"] for shard in shards}
    if len(of) > 1:
        counts = " and ".join(map(str, sorted(of)))
        raise UserError(f"the reports are of wholes with {counts} shards", "Merge the shards of one whole.")
    (count,) = of
    numbers = Counter(shard["number"] for shard in shards)
    for number, times in sorted(numbers.items()):
        if times > 1:
            names = [str(file) for file, one in zip(files, shards, strict=True) if one["number"] == number]
            raise UserError(
                f"shard {number}/{count} is there twice: {' and '.join(names)}", "Name each once."
            )
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in numbers]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        help = "Name the reports of all shards; a shard that ended with exit code 3 has none."
        raise UserError(f"shard {', '.join(missing)} {verb} missing", help)


def _check_shard_arguments_agree(files: Sequence[Path], reports: Sequence[Facts]) -> None:
    """Raise UserError if shards differ in what they checked, or in what checked it."""
    first = reports[0]["shard"]
    for file, report in zip(files, reports, strict=True):
        own = report["shard"]
        if own["state"] != first["state"]:
            raise _build_shard_mismatch_error(f"{file} and {files[0]}", own["state"], first["state"])
        if own["asked"] != first["asked"] or report["failOn"] != reports[0]["failOn"]:
            help = "Give every shard the same --cluster, --keep-runs, --today and --fail-on."
            raise UserError(f"{file} and {files[0]} were asked with different flags", help)
        if own["judge"] != first["judge"]:
            names = [one["judge"] or "no kubeconform" for one in (own, first)]
            help = "Use the same kubeconform for every shard."
            raise UserError(f"{file} was checked with {names[0]}, and {files[0]} with {names[1]}", help)


def _check_shards_match_this_workspace(request: Request, shard: Facts) -> None:
    """Raise UserError if the workspace is not the one of the shards, or gangplan is another version."""
    here = _compute_workspace_state_of_shard(request) | {
        "overlays": shard["state"]["overlays"]
    }  # the whole may need none
    if here != shard["state"]:
        raise _build_shard_mismatch_error("the shards and this workspace", shard["state"], here)


def _build_shard_mismatch_error(what: str, one: Mapping[str, str], two: Mapping[str, str]) -> UserError:
    if one["gangplan"] != two["gangplan"]:
        versions = f"{one['gangplan']} and {two['gangplan']}"
        return UserError(f"{what} differ: gangplan {versions}", "Use one version of gangplan everywhere.")
    if one["program"] != two["program"]:
        help = "Install the same gangplan, packages and Python everywhere."
        return UserError(f"{what} differ: another build of gangplan, or other packages below it", help)
    if one["overlays"] != two["overlays"]:
        help = "Use the same kustomize for every shard."
        return UserError(
            f"{what} differ: overlays were built by {one['overlays']} and {two['overlays']}", help
        )
    help = "Check the same commit out everywhere, and write reports outside specs/, overlays/ and the like."
    return UserError(f"{what} differ: the files of the workspace are not the same", help)


def _compute_workspace_state_of_shard(request: Request) -> dict[str, str]:
    """Return everything that results depend on, as words and digests. Raises ToolError."""
    store = RecordStore(str(request.root))
    seen = request.looked or look_at_workspace(request.root, store)
    if seen is None:
        raise ToolError("the workspace cannot be read", "Check who may read its files.")
    if not request.uses_cache:
        store.folder = None
    builder = find_kustomize_engine()
    return {
        "gangplan": __version__,
        "program": digest_program(store),
        "overlays": builder.label if builder else "",
        "workspace": seen.digest,
    }
