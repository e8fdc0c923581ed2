"""`gangplan repeat`."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from gangplan import clock
from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.errors import Exit, ToolError, UserError
from gangplan.fixes.file import FixedFile
from gangplan.fixes.states import set_run_number
from gangplan.fixes.write import read_fixable, write_fixed
from gangplan.model.statuses import read_statuses
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.repeat import DueRepetition, find_due_job_repetitions
from gangplan.pipeline.request import Request


def run_repeat_command(
    request: Request, at: str | None, finished: Path | None, format: str, is_written: bool
) -> Exit:
    """Print which scheduled jobs are due, and with `is_written` raise `run` in their specs.

    Raises UserError, and ToolError if a spec cannot be written.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    now = _parse_at_flag(at)
    statuses = read_statuses(finished) if finished else None
    result = preview_render(request)
    if result.has_errors:
        print_findings_to_stderr(result.findings)
        return choose_exit_code(result.findings)
    found = find_due_job_repetitions(request, result.runs, now, statuses)
    due = [one for one in found if one.run]
    texts = [_build_spec_with_next_run_number(request.root, one) for one in due]
    if format == "json":
        jobs = [{"spec": one.source, "job": one.job, "run": one.run, "why": one.why} for one in found]
        sys.stdout.write(json.dumps({"version": 1, "jobs": jobs}, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{_describe_due_repetition(one)}\n" for one in found))
    for text in texts if is_written else ():
        if why := write_fixed(request.root, text):
            raise ToolError(f"{text.file}: {why}; nothing else was written", why.help)
    written = "written" if is_written else "nothing was written (--write writes them)"
    sys.stderr.write(f"{len(due)} of {len(found)} scheduled jobs are due: {written}\n" if due else "")
    return Exit.CLEAN


def _parse_at_flag(text: str | None) -> int:
    """Return seconds since 1970; without a text, now. Raises UserError."""
    if text is None:
        return clock.read_unix_time()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"'{text}' is not a time", "Write --at 2026-01-15T04:05Z.") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def _build_spec_with_next_run_number(root: Path, one: DueRepetition) -> FixedFile:
    """Return the spec with its next number. Raises UserError if only a person can change it."""
    before = read_fixable(root, one.source)
    after = set_run_number(before.decode("utf-8"), one.run) if before is not None else None
    if before is None or after is None:
        raise UserError(f"{one.source} cannot be changed automatically", f"Write run: {one.run} into it.")
    return FixedFile(one.source, before, after.encode("utf-8"))


def _describe_due_repetition(one: DueRepetition) -> str:
    return f"{one.job}: {one.why}" + (f"; run: {one.run} in {one.source}" if one.run else "")
