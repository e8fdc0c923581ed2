"""`gangplan plan`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time
from functools import partial
from pathlib import Path
from typing import Any

from gangplan import clock
from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.commands.reports import find_report_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.pipeline.now import compare_runs_with_usage_snapshot
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, require_objects_in_scope
from gangplan.pipeline.team_room import compute_quota_rooms
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.json import build_findings_json
from gangplan.report.network import build_network_json, render_network_text
from gangplan.report.now import build_current_verdicts_json, render_current_verdicts_text
from gangplan.report.plan import build_plan_json, render_plan_text


def plan(
    request: Request,
    format: str,
    usage: Path | None = None,
    today: str | None = None,
    with_hosts: bool = False,
    with_script: bool = False,
) -> Exit:
    """Print what the specs amount to, or one thing about them instead.

    If the request has `with_flows`, who may talk to whom; `with_hosts`: the host files of MPI; `with_script`:
    what containers start with.

    With `usage`, a snapshot of what is in use, print also which runs would be admitted now. As JSON, findings
    are in the document, in the form that validate gives them. Schedules show their next starts from `today`,
    on a terminal also from now; nothing else in the output depends on the clock.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    views = {"--network": request.with_flows, "--hostfile": with_hosts, "--script": with_script}
    if len(chosen := [name for name, is_on in views.items() if is_on]) > 1:
        raise UserError(f"{' and '.join(chosen)} each replace the plan", "Leave one of them out.")
    if with_script and usage:
        raise UserError("--script shows commands alone", "Leave out --usage.")
    result = preview_render(replace(request, is_brief=usage is None and not with_script))
    require_objects_in_scope(request, result, "planned")
    now, near = (
        compare_runs_with_usage_snapshot(request, result, usage)
        if usage and not result.has_errors
        else ([], [])
    )
    findings = sort_findings([*result.findings, *near])
    runs = sorted(result.runs, key=lambda run: (run.unit.job.source, run.cluster))
    since = _resolve_start_time_from_today_flag(today)
    text: Callable[[Sequence[PlannedRun]], str]
    document: Callable[[Sequence[PlannedRun]], dict[str, Any]]
    if with_script:
        # Both views are seldom asked for.
        from gangplan.report.script import build_launch_scripts_json, render_launch_scripts_text

        text = partial(render_launch_scripts_text, texts=result.texts)
        document = partial(build_launch_scripts_json, texts=result.texts)
    elif request.with_flows:
        text, document = render_network_text, build_network_json
    elif with_hosts:
        from gangplan.report.hostfile import build_hostfile_json, hostfile_text  # seldom asked for

        text, document = hostfile_text, build_hostfile_json
    else:
        rooms = compute_quota_rooms(result)
        text = partial(render_plan_text, since=since, rooms=rooms)
        document = partial(build_plan_json, since=since, rooms=rooms)
    if format == "json":
        part = build_findings_json(findings, find_report_folder(request.root))
        whole = document(runs) | ({"now": build_current_verdicts_json(now)} if usage else {}) | part
        sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    else:
        print_findings_to_stderr(findings)
        sys.stdout.write(text(runs) + (render_current_verdicts_text(usage.name, now) if usage else ""))
    return choose_exit_code(result.findings)


def _resolve_start_time_from_today_flag(today: str | None) -> int | None:
    """Return the time from which starts are shown, in seconds since 1970. Raises UserError."""
    if today is not None:
        from gangplan.api.checks import resolve_day  # imports much more than is needed here

        return int(datetime.combine(resolve_day(today), time(), UTC).timestamp()) - 1
    return clock.read_unix_time() if sys.stdout.isatty() else None
