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
from gangplan.commands.common import exit_code, print_findings
from gangplan.commands.reports import repository_folder
from gangplan.errors import Exit, UserError
from gangplan.findings import in_order
from gangplan.pipeline.now import against
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request
from gangplan.pipeline.team_room import rooms_of
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.json import findings_part
from gangplan.report.network import network_document, network_text
from gangplan.report.now import now_document, now_text
from gangplan.report.plan import plan_document, plan_text


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
    result = preview(replace(request, is_brief=usage is None and not with_script))
    now, near = against(request, result, usage) if usage and not result.has_errors else ([], [])
    findings = in_order([*result.findings, *near])
    runs = sorted(result.runs, key=lambda run: (run.unit.job.source, run.cluster))
    since = _since(today)
    text: Callable[[Sequence[PlannedRun]], str]
    document: Callable[[Sequence[PlannedRun]], dict[str, Any]]
    if with_script:
        from gangplan.report.script import script_document, script_text  # seldom asked for

        text = partial(script_text, texts=result.texts)
        document = partial(script_document, texts=result.texts)
    elif request.with_flows:
        text, document = network_text, network_document
    elif with_hosts:
        from gangplan.report.hostfile import hostfile_document, hostfile_text  # seldom asked for

        text, document = hostfile_text, hostfile_document
    else:
        rooms = rooms_of(result)
        text = partial(plan_text, since=since, rooms=rooms)
        document = partial(plan_document, since=since, rooms=rooms)
    if format == "json":
        part = findings_part(findings, repository_folder(request.root))
        whole = document(runs) | ({"now": now_document(now)} if usage else {}) | part
        sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    else:
        print_findings(findings)
        sys.stdout.write(text(runs) + (now_text(usage.name, now) if usage else ""))
    return exit_code(result.findings)


def _since(today: str | None) -> int | None:
    """Return the time from which starts are shown, in seconds since 1970. Raises UserError."""
    if today is not None:
        from gangplan.api.checks import day_of  # imports much more than is needed here

        return int(datetime.combine(day_of(today), time(), UTC).timestamp()) - 1
    return clock.now() if sys.stdout.isatty() else None
