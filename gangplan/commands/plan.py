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
from gangplan.commands.common import choose_exit_code, print_findings
from gangplan.commands.reports import find_report_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.pipeline.now import compare_with_usage
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, require_objects
from gangplan.pipeline.team_room import compute_quota_rooms
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.json import build_findings_part
from gangplan.report.network import build_network_document, render_network_text
from gangplan.report.now import build_now_document, render_now_text
from gangplan.report.plan import build_plan_document, render_plan_text


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
    require_objects(request, result, "planned")
    now, near = compare_with_usage(request, result, usage) if usage and not result.has_errors else ([], [])
    findings = sort_findings([*result.findings, *near])
    runs = sorted(result.runs, key=lambda run: (run.unit.job.source, run.cluster))
    since = _resolve_schedule_start_time(today)
    text: Callable[[Sequence[PlannedRun]], str]
    document: Callable[[Sequence[PlannedRun]], dict[str, Any]]
    if with_script:
        from gangplan.report.script import script_document, script_text  # seldom asked for

        text = partial(script_text, texts=result.texts)
        document = partial(script_document, texts=result.texts)
    elif request.with_flows:
        text, document = render_network_text, build_network_document
    elif with_hosts:
        from gangplan.report.hostfile import hostfile_document, hostfile_text  # seldom asked for

        text, document = hostfile_text, hostfile_document
    else:
        rooms = compute_quota_rooms(result)
        text = partial(render_plan_text, since=since, rooms=rooms)
        document = partial(build_plan_document, since=since, rooms=rooms)
    if format == "json":
        part = build_findings_part(findings, find_report_folder(request.root))
        whole = document(runs) | ({"now": build_now_document(now)} if usage else {}) | part
        sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    else:
        print_findings(findings)
        sys.stdout.write(text(runs) + (render_now_text(usage.name, now) if usage else ""))
    return choose_exit_code(result.findings)


def _resolve_schedule_start_time(today: str | None) -> int | None:
    """Return the time from which starts are shown, in seconds since 1970. Raises UserError."""
    if today is not None:
        from gangplan.api.checks import resolve_day  # imports much more than is needed here

        return int(datetime.combine(resolve_day(today), time(), UTC).timestamp()) - 1
    return clock.read_unix_time() if sys.stdout.isatty() else None
