"""What the commands share: the request from flags, printing findings, the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, find_worst_severity
from gangplan.pipeline.request import Request
from gangplan.report.text import ExcerptReader, text_report
from gangplan.rules.model import Severity
from gangplan.workspace import find_workspace_root_above


def build_request(
    workspace: Path | None,
    clusters: Sequence[str] | None,
    teams: Sequence[str] | None,
    specs: Sequence[str] | None,
    engine: str,
    jobs: int,
    keep_runs: bool = False,
    uses_cache: bool = False,
) -> Request:
    """Build the request of a command line.

    The workspace is here or above, else where the named files are. Raises UserError outside a workspace.
    """
    start = (workspace or Path.cwd()).resolve()
    if not start.is_dir():
        raise UserError(
            f"nothing was checked: {workspace} is not a folder",
            "Name the folder that holds specs/ and overlays/.",
        )
    return Request(
        _find_workspace_root_from_arguments(start, () if workspace else specs or ()),
        tuple(clusters or ()),
        tuple(teams or ()),
        tuple(specs or ()),
        engine,
        jobs,
        keep_runs,
        uses_cache=uses_cache,
    )


def _find_workspace_root_from_arguments(start: Path, named: Sequence[str]) -> Path:
    """Return the workspace that contains `start`, else the one that contains a named file. Raises
    UserError."""
    try:
        return find_workspace_root_above(start)
    except UserError:
        for one in named:
            with suppress(UserError):
                return find_workspace_root_above(Path(os.path.normpath(start / one)))
        raise


def print_findings_to_stderr(
    findings: Sequence[Finding], colour: bool | None = None, line: ExcerptReader | None = None
) -> None:
    """Print findings to standard error, coloured on a terminal unless `colour` is given; `line` adds source
    lines."""
    colour = wants_coloured_output(sys.stderr) if colour is None else colour
    sys.stderr.write(text_report(findings, colour, line))


def wants_coloured_output(stream: TextIO, flag: str = "auto") -> bool:
    """Return whether to colour: by the flag, else NO_COLOR (no-color.org), else FORCE_COLOR, else for a
    terminal."""
    if flag != "auto":
        return flag == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def choose_exit_code(findings: Sequence[Finding], fail_on: Severity = Severity.ERROR) -> Exit:
    """Return 0 for clean, 1 for findings at or above `fail_on`, 2 if input could not be understood."""
    errors = [finding for finding in findings if finding.is_error]
    if not all(_is_judged(finding) for finding in errors):
        return Exit.INPUT
    level = find_worst_severity(findings)
    return Exit.FINDINGS if level is not None and level >= fail_on else Exit.CLEAN


def report_nothing_written(findings: Sequence[Finding]) -> Exit:
    """Print that errors kept a file from being written, and return the exit code."""
    errors = sum(finding.is_error for finding in findings)
    sys.stderr.write(f"nothing was written: {format_plural(errors, 'error')}\n")
    return choose_exit_code(findings)


def _is_judged(finding: Finding) -> bool:
    """Return whether its subject was understood, also because a policy judged it or a waiver excused it."""
    return finding.rule.is_verdict or finding.waiver is not None


def format_plural(count: int, word: str) -> str:
    """Format a count, such as `1 run` or `2 runs`."""
    return f"{count} {word}{'' if count == 1 else 's'}"
