"""`gangplan new`: a file from flags or answers, checked before it is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from gangplan.api.checks import resolve_day
from gangplan.commands.ask import is_watched
from gangplan.commands.common import print_findings_to_stderr, report_nothing_written
from gangplan.commands.new_flags import collect_given_fields
from gangplan.commands.teams_of import resolve_team_flag
from gangplan.contents.files import WorkspaceFiles
from gangplan.contents.tables import list_workspace_spec_rows
from gangplan.errors import Exit, ToolError, UserError, build_os_refusal_error
from gangplan.report.escape import escape_own_line
from gangplan.report.plan import format_run_plan_line
from gangplan.spec.root import locate_workspace_root
from gangplan.starter.catalog import add_new_image_to_catalog
from gangplan.starter.fields import fields_of
from gangplan.starter.new import NewFile, check_new_file, judge_new_file
from gangplan.starter.write import replace_file, write_new_files
from gangplan.workspace import CATALOG


def run_new_command(kind: str, params: dict[str, Any]) -> Exit:
    """Write the file that the flags describe; on a terminal, ask for what is needed and was not given.

    Raises UserError.
    """
    root = locate_workspace_root(params["workspace"])
    wanted = NewFile(
        kind,
        root,
        params["name"] or "",
        _resolve_job_team(root, kind, params),
        collect_given_fields(kind, params),
    )
    missing = _list_missing_command_line_flags(wanted)
    if missing and is_watched():
        from gangplan.commands.new_questions import run_question_prompts_on_terminal

        wanted, missing = run_question_prompts_on_terminal(wanted), []
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        help = f"Run gangplan new {kind} --help; on a terminal, gangplan asks for what is missing."
        raise UserError(f"nothing was written: {', '.join(missing)} {verb} missing", help)
    check_new_file(wanted)
    if wanted.kind == "job":
        check_job_name_argument_free(root, wanted.team, wanted.name)
    return check_and_write_new_file(wanted, bool(params["dry_run"]), bool(params["quiet"]))


def check_and_write_new_file(wanted: NewFile, is_dry: bool, is_quiet: bool) -> Exit:
    """Check the file, print the findings, and write it if none is an error."""
    data = wanted.text()
    result, findings = judge_new_file(wanted, data, resolve_day(None))
    print_findings_to_stderr(findings)
    if any(one.is_error for one in findings):
        return report_nothing_written(findings)
    if is_dry:
        sys.stdout.write(data.decode())
        return Exit.CLEAN
    _write_new_file(wanted, data)
    if not is_quiet:
        sys.stdout.write(f"{'added to' if wanted.kind == 'image' else 'wrote'} {wanted.file}\n")
        for run in result.runs:
            sys.stdout.write(escape_own_line(f"  {format_run_plan_line(run)}") + "\n")
        sys.stdout.write(f"next: {_describe_next_step_after_new_command(wanted)}\n")
    return Exit.CLEAN


def _write_new_file(wanted: NewFile, data: bytes) -> None:
    """Write a new file, or replace the catalog with one that has the new entry."""
    if wanted.kind != "image" or not (wanted.root / CATALOG).exists():
        write_new_files(wanted.root, {wanted.file: data.decode()})
        return
    target = wanted.root / CATALOG
    if add_new_image_to_catalog(target.read_bytes(), wanted.name, wanted.values) != data:
        raise ToolError(f"{CATALOG} was changed meanwhile; nothing was written", "Run the command again.")
    try:
        replace_file(target, data)
    except OSError as failed:
        raise build_os_refusal_error(f"{CATALOG} was not written", failed) from None


def _resolve_job_team(root: Path, kind: str, params: dict[str, Any]) -> str:
    """Return the team of a job: as given, else that of the current folder, else the only one."""
    if kind != "job":
        return ""
    return resolve_team_flag(root, params["team"])


def check_job_name_argument_free(root: Path, team: str, name: str) -> None:
    """Refuse a job if another file of the team describes one with the same name. Raises UserError."""
    for row in list_workspace_spec_rows(WorkspaceFiles(root, (team,))):
        if row["job"] == name:
            message = f"nothing was written: {row['file']} has a job '{name}' already"
            raise UserError(message, "Take another name.")


def _list_missing_command_line_flags(wanted: NewFile) -> list[str]:
    """Return what is needed and missing, as people would give it."""
    missing = [] if wanted.name else ["NAME"]
    missing += ["--team"] if wanted.kind == "job" and not wanted.team else []
    if wanted.given.get("--template"):
        return missing  # a template has the rest, or what is missing is reported
    return missing + [
        field.flag
        for field in fields_of(wanted.kind)
        if field.is_required and not wanted.given.get(field.flag)
    ]


def _describe_next_step_after_new_command(wanted: NewFile) -> str:
    if wanted.kind == "job":
        return f"gangplan render, then commit {wanted.file} and rendered/"
    if wanted.kind == "team":
        owners = ", and its folder in CODEOWNERS" if (wanted.root / "CODEOWNERS").exists() else ""
        entry = f"teams: {{{wanted.name}: {{queue: training}}}}"
        return f"list the team in overlays/<cluster>/cluster.yaml: {entry}{owners}"
    if wanted.kind == "image":
        return f"name it in a spec: image: {wanted.name}"
    return "gangplan render && gangplan validate"
