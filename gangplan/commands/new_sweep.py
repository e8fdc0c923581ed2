"""`gangplan new sweep`: a sweep from the spec of a job, checked before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.ask import ask_user_on_terminal, is_watched
from gangplan.commands.new_from_job import (
    FileFromJob,
    find_spec_path_of_job_argument,
    read_spec_of_job_argument,
    refuse_existing_file,
    write_new_file_after_check,
)
from gangplan.contents.files import WorkspaceFiles
from gangplan.contents.tables import list_workspace_spec_rows
from gangplan.errors import Exit, UserError
from gangplan.pipeline.request import Result
from gangplan.report.sweeps import format_sweep_plan_line, split_off_sweeps
from gangplan.spec.root import locate_workspace_root
from gangplan.starter.answers import check_name
from gangplan.starter.sweeps import parse_new_sweep_parameters, render_new_sweep_text
from gangplan.starter.text import render_new_file_modeline

_MOST = 10_000  # of maxConcurrent (spec/sweep.py)


def run_new_sweep_command(
    name: str,
    job: str,
    given: Sequence[str],
    at_once: int,
    workspace: Path | None,
    is_dry: bool,
    is_quiet: bool,
) -> Exit:
    """Write specs/<team>/<name>.yaml, with the fields of a job as its template. Raises UserError."""
    root = locate_workspace_root(workspace)
    check_name("job", name)
    source = find_spec_path_of_job_argument(root, job)
    file = f"{source.rpartition('/')[0]}/{name}.yaml"
    refuse_existing_file(root, file, "Edit it, or take another name.")
    data, parameters = read_spec_of_job_argument(root, source), parse_new_sweep_parameters(given)
    text = render_new_sweep_text(
        data, source, parameters, at_once, render_new_file_modeline("sweep", root, file)
    )

    def describe(result: Result) -> list[str]:
        sweeps = split_off_sweeps(result.runs)[1]
        next_step = f"next: gangplan render, then commit {file} and rendered/"
        return [*(f"  {format_sweep_plan_line(one)}" for one in sweeps), next_step]

    return write_new_file_after_check(FileFromJob(root, file, text, file, {}), describe, is_dry, is_quiet)


def ask_for_sweep_on_terminal(
    name: str | None, job: str | None, given: Sequence[str], at_once: int | None, workspace: Path | None
) -> tuple[str, str, list[str], int]:
    """Return name, job, parameters and the number of trials at once; on a terminal, ask for what is missing.

    Raises UserError.
    """
    missing = [
        flag
        for flag, value in (
            ("NAME", name),
            ("--from", job),
            ("--parameter", given),
            ("--max-concurrent", at_once),
        )
        if not value
    ]
    if missing and not is_watched():
        verb = "is" if len(missing) == 1 else "are"
        help = "Run gangplan new sweep --help; on a terminal, gangplan asks for what is missing."
        raise UserError(f"nothing was written: {', '.join(missing)} {verb} missing", help)
    root = locate_workspace_root(workspace)
    if not name:
        name = ask_user_on_terminal("Name", check=lambda answer: check_name("job", answer))
    if not job:
        known = [str(row["file"]) for row in list_workspace_spec_rows(WorkspaceFiles(root)) if row["job"]]
        job = ask_user_on_terminal(
            "Job that each trial runs",
            "",
            known,
            lambda answer: find_spec_path_of_job_argument(root, answer),
            hint=", ".join(known[:6]),
        )
    parameters = list(given)
    while not given:
        more = bool(parameters)
        question = "Another parameter" if more else "Parameter and its values"
        answer = ask_user_on_terminal(
            question,
            "",
            (),
            lambda one: parse_new_sweep_parameters([*parameters, one]),
            more,
            "" if more else "such as lr=0.1,0.01",
        )
        if not answer:
            break
        parameters.append(answer)
    if not at_once:
        at_once = int(ask_user_on_terminal("Trials that run at once", "1", (), _check_trial_count))
    return name, job, parameters, at_once


def _check_trial_count(answer: str) -> None:
    if not answer.isdecimal() or len(answer) > len(str(_MOST)) or not 1 <= int(answer) <= _MOST:
        raise UserError(f"'{answer}' is not a number of trials", f"Write a whole number from 1 to {_MOST}.")
