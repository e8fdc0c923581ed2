"""`gangplan why`: the origin of each value of a job, or of one line of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.errors import Exit, UserError
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, require_objects_in_scope
from gangplan.pipeline.worker import PlannedRun
from gangplan.provenance.lookup import explain_provenance_of_line, parse_file_line
from gangplan.report.origins import render_value_origins_text
from gangplan.report.provenance import render_line_answer_text
from gangplan.workspace import Workspace, load_workspace


def why(request: Request, what: str) -> Exit:
    """Print the origin of each resolved value of a spec; for a line, what it comes from or what it became.

    `what` is SPEC or FILE:LINE, where FILE is any file that is rendered or that something is rendered from.
    """
    place = parse_file_line(what)
    if place is not None:
        answer = explain_provenance_of_line(replace(request, specs=()), *place)
        errors = [finding for finding in answer.findings if finding.is_error]
        print_findings_to_stderr(errors)
        sys.stdout.write(render_line_answer_text(answer))
        return choose_exit_code(errors)
    workspace = load_workspace(request.root)
    _check_why_argument_is_spec(workspace, what)
    result = preview_render(replace(request, specs=(what,)), workspace)
    require_objects_in_scope(request, result, "explained")
    print_findings_to_stderr(result.findings)
    alike = _find_repeated_trials_for_why_command(result.runs)
    sys.stdout.write(
        "\n".join(render_value_origins_text(run) for run in result.runs if run.path not in alike)
    )
    if alike:
        sys.stdout.write(f"and {len(alike)} more trials, which differ in their values\n")
    return choose_exit_code(result.findings)


def _find_repeated_trials_for_why_command(runs: Iterable[PlannedRun]) -> set[str]:
    """Return the paths of all trials of a sweep on a cluster except the first one."""
    first: dict[tuple[str, str], str] = {}
    trials = [run for run in runs if run.unit.job.trial is not None]
    return {
        run.path
        for run in trials
        if first.setdefault((run.unit.job.source, run.cluster), run.path) != run.path
    }


def _check_why_argument_is_spec(workspace: Workspace, what: str) -> None:
    """Raise UserError for a file that exists but is not a spec: only its lines have origins."""
    for start in (Path.cwd(), workspace.root):
        path = (start / what).resolve()
        if path.is_file() and path.is_relative_to(workspace.root):
            name = path.relative_to(workspace.root).as_posix()
            if name not in {one.file for one in workspace.spec_files}:
                raise UserError(f"{what} is not a spec", f"Name a line of it: gangplan why {what}:1.")
            return
