"""`gangplan new`: a file from flags or answers, checked before it is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from gangplan.commands.ask import is_watched
from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.commands.new_flags import given_of
from gangplan.commands.teams_of import team_of
from gangplan.contents.files import Files
from gangplan.contents.tables import specs
from gangplan.errors import Exit, ToolError, UserError, refusal
from gangplan.report.escape import own_line
from gangplan.report.plan import run_line
from gangplan.spec.root import root_of
from gangplan.starter.catalog import with_image
from gangplan.starter.fields import fields_of
from gangplan.starter.new import New, check, judged
from gangplan.starter.write import replace_file, write_new
from gangplan.workspace import CATALOG


def new(kind: str, params: dict[str, Any]) -> Exit:
    """Write the file that the flags describe; on a terminal, ask for what is needed and was not given.

    Raises UserError.
    """
    root = root_of(params["workspace"])
    wanted = New(kind, root, params["name"] or "", _team(root, kind, params), given_of(kind, params))
    missing = _missing(wanted)
    if missing and is_watched():
        from gangplan.commands.new_questions import asked

        wanted, missing = asked(wanted), []
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        help = f"Run gangplan new {kind} --help; on a terminal, gangplan asks for what is missing."
        raise UserError(f"nothing was written: {', '.join(missing)} {verb} missing", help)
    check(wanted)
    if wanted.kind == "job":
        check_free(root, wanted.team, wanted.name)
    return write(wanted, bool(params["dry_run"]), bool(params["quiet"]))


def write(wanted: New, is_dry: bool, is_quiet: bool) -> Exit:
    """Check the file, print the findings, and write it if none is an error."""
    data = wanted.text()
    result, findings = judged(wanted, data)
    print_findings(findings)
    errors = sum(1 for one in findings if one.is_error)
    if errors:
        sys.stderr.write(f"nothing was written: {plural(errors, 'error')}\n")
        return exit_code(findings)
    if is_dry:
        sys.stdout.write(data.decode())
        return Exit.CLEAN
    _put(wanted, data)
    if not is_quiet:
        sys.stdout.write(f"{'added to' if wanted.kind == 'image' else 'wrote'} {wanted.file}\n")
        for run in result.runs:
            sys.stdout.write(own_line(f"  {run_line(run)}") + "\n")
        sys.stdout.write(f"next: {_next(wanted)}\n")
    return Exit.CLEAN


def _put(wanted: New, data: bytes) -> None:
    """Write a new file, or replace the catalog with one that has the new entry."""
    if wanted.kind != "image" or not (wanted.root / CATALOG).exists():
        write_new(wanted.root, {wanted.file: data.decode()})
        return
    target = wanted.root / CATALOG
    if with_image(target.read_bytes(), wanted.name, wanted.values) != data:
        raise ToolError(f"{CATALOG} was changed meanwhile; nothing was written", "Run the command again.")
    try:
        replace_file(target, data)
    except OSError as failed:
        raise refusal(f"{CATALOG} was not written", failed) from None


def _team(root: Path, kind: str, params: dict[str, Any]) -> str:
    """Return the team of a job: as given, else that of the current folder, else the only one."""
    if kind != "job":
        return ""
    return team_of(root, params["team"])


def check_free(root: Path, team: str, name: str) -> None:
    """Refuse a job if another file of the team describes one with the same name. Raises UserError."""
    for row in specs(Files(root, (team,))):
        if row["job"] == name:
            message = f"nothing was written: {row['file']} has a job '{name}' already"
            raise UserError(message, "Take another name.")


def _missing(wanted: New) -> list[str]:
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


def _next(wanted: New) -> str:
    if wanted.kind == "job":
        return f"gangplan render, then commit {wanted.file} and rendered/"
    if wanted.kind == "team":
        owners = ", and its folder in CODEOWNERS" if (wanted.root / "CODEOWNERS").exists() else ""
        entry = f"teams: {{{wanted.name}: {{queue: training}}}}"
        return f"list the team in overlays/<cluster>/cluster.yaml: {entry}{owners}"
    if wanted.kind == "image":
        return f"name it in a spec: image: {wanted.name}"
    return "gangplan render && gangplan validate"
