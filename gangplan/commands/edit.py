"""`gangplan clone` and `gangplan edit`: fields set in the text of a file, checked before anything is
written."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.common import (
    choose_exit_code,
    format_plural,
    print_findings_to_stderr,
    report_nothing_written,
)
from gangplan.commands.new import check_job_name_argument_free
from gangplan.edits import FlagChange, edit_field, parse_changes
from gangplan.errors import Exit, ToolError, UserError
from gangplan.fixes import FixedFile, read_fixable, write_fixed
from gangplan.report.escape import escape_own_line
from gangplan.report.fixed import render_fix_diff
from gangplan.report.plan import format_run_plan_line
from gangplan.report.sweeps import format_sweep_plan_line, split_off_sweeps
from gangplan.source import Document, load_document
from gangplan.spec.near import find_nearest_file
from gangplan.spec.root import SPECS, find_path_from_root, locate_workspace_root
from gangplan.starter.answers import check_name
from gangplan.starter.formats import find_file_format, find_format_model
from gangplan.starter.judge import FileJudgement, judge_changed_file
from gangplan.starter.parameters import find_new_job_parameter_types, read_team_templates_for_new_job
from gangplan.starter.setting import apply_set_flags_to_text
from gangplan.starter.users import DependentSpecs, find_dependent_specs
from gangplan.starter.write import write_new_files

_SPECS = ("spec", "sweep")
# Fields about the runs that a spec had, which a copy of it does not get.
_PAST = ("run", "state", "retired", "keep", "stopped", "removed", "results")
# The field of a template, which has versions.
_VERSION = ("version",)


def run_edit_command(
    file: str,
    sets: Sequence[str],
    unsets: Sequence[str],
    workspace: Path | None,
    is_dry: bool,
    is_quiet: bool,
) -> Exit:
    """Set and remove fields of a file in place. Raises UserError if nothing could be written."""
    changes = parse_changes(sets, unsets)
    if not changes:
        raise UserError("nothing to change", "Write --set KEY=VALUE or --unset KEY.")
    root = locate_workspace_root(workspace)
    path = _resolve_file_argument(root, file)
    data, document = _read_document_of_file_argument(root, path)
    format, text = find_file_format(path, document), data.decode()
    types = _find_parameter_types_for_set_flags(root, path, document, changes)
    after = apply_set_flags_to_text(text, path, find_format_model(format), changes, types)
    if after == text:
        sys.stdout.write(f"{escape_own_line(path)} says so already\n")
        return Exit.CLEAN
    users = DependentSpecs() if format in _SPECS else find_dependent_specs(root, path, format, text, after)
    judged = judge_changed_file(root, path, text, after, format in _SPECS, users.files)
    print_findings_to_stderr(judged.found)
    if judged.errors:
        return report_nothing_written(judged.errors)
    fixed = FixedFile(path, data, after.encode())
    if is_dry:
        sys.stdout.write(render_fix_diff(fixed))
        return choose_exit_code(judged.found)
    if why := write_fixed(root, fixed):
        raise ToolError(f"{path} was not changed: {why}", why.help)
    if not is_quiet:
        _print_edit_outcome(f"changed {path}", path, format, judged, users)
    return choose_exit_code(judged.found)


def run_clone_command(
    file: str,
    name: str,
    sets: Sequence[str],
    unsets: Sequence[str],
    workspace: Path | None,
    is_dry: bool,
    is_quiet: bool,
) -> Exit:
    """Copy a spec or a template under another name, and change fields of the copy. Raises UserError."""
    changes = parse_changes(sets, unsets)
    root = locate_workspace_root(workspace)
    path = _resolve_file_argument(root, file)
    data, document = _read_document_of_file_argument(root, path)
    format = find_file_format(path, document)
    if format not in (*_SPECS, "template"):
        kind = "image" if format == "catalog" else format
        raise UserError(f"{path} is not a spec", f"Write another one: gangplan new {kind} {name}.")
    check_name("job", name)
    target = f"{path.rpartition('/')[0]}/{name}.yaml"
    if os.path.lexists(root / target):
        raise UserError(f"nothing was written: {target} exists", "Edit it, or take another name.")
    if format in _SPECS:
        check_job_name_argument_free(root, path.split("/")[1], name)
    text = data.decode().removeprefix("\ufeff")
    for field in _PAST if format in _SPECS else _VERSION:
        if field in document.value:
            text = edit_field(text, path, (field,), None)
    if "name" in document.value:
        text = edit_field(text, path, ("name",), name)
    text = apply_set_flags_to_text(
        text,
        target,
        find_format_model(format),
        changes,
        _find_parameter_types_for_set_flags(root, path, document, changes),
    )
    users = DependentSpecs() if format in _SPECS else find_dependent_specs(root, target, format, "", text)
    judged = judge_changed_file(root, target, None, text, format in _SPECS, users.files)
    print_findings_to_stderr(judged.found)
    if judged.errors:
        return report_nothing_written(judged.errors)
    if is_dry:
        sys.stdout.write(text)
        return Exit.CLEAN
    write_new_files(root, {target: text})
    if not is_quiet:
        _print_edit_outcome(f"wrote {target}", target, format, judged, users)
    return Exit.CLEAN


def _resolve_file_argument(root: Path, file: str) -> str:
    """Return the path of a file from the root. Raises UserError for a file outside the workspace."""
    for start in (Path.cwd(), root):
        path = find_path_from_root(root, start, file)
        if not path.startswith("../") and (root / path).is_file():
            return path
    there = [one.relative_to(root).as_posix() for one in (root / SPECS).rglob("*.yaml")]
    near = find_nearest_file(Path(file).as_posix(), there)
    help = f"Did you mean '{near}'?" if near else "Name a file below specs/ or another folder of it."
    raise UserError(f"there is no file {file} in the workspace", help)


def _read_document_of_file_argument(root: Path, path: str) -> tuple[bytes, Document]:
    """Return the bytes of a file and its document. Raises UserError."""
    find_file_format(path, None)  # other files are not YAML of ours: there is nothing to correct
    data = read_fixable(root, path)
    if data is None:
        raise UserError(f"{path} is not a plain file", "Replace it with one.")
    document, findings = load_document(data, path)
    if document is None or not isinstance(document.value, dict):
        print_findings_to_stderr(findings)
        raise UserError(f"{path} cannot be read", "Correct it first.")
    return data, document


def _find_parameter_types_for_set_flags(
    root: Path, path: str, document: Document, changes: Sequence[FlagChange]
) -> dict[str, str]:
    """Return the parameter types of the template that the spec has after the changes; empty without a
    template."""
    other = [one.text for one in changes if one.path == ("template",)]
    label = other[0] if other else document.value.get("template")
    if not isinstance(label, str):
        return {}
    team = path.split("/")[1]
    return find_new_job_parameter_types(read_team_templates_for_new_job(root, team), team, label)


def _print_edit_outcome(
    done: str, path: str, format: str, judged: FileJudgement, users: DependentSpecs
) -> None:
    """Print what was done, what results from it, and what to do next."""
    runs, sweeps = split_off_sweeps(judged.result.runs if format in _SPECS else ())
    lines = [
        done,
        *(f"  {format_run_plan_line(one)}" for one in runs),
        *(f"  {format_sweep_plan_line(one)}" for one in sweeps),
    ]
    if format not in _SPECS:
        made = " made from templates" if format == "template" else ""
        more = f"; gangplan validate checks {users.left} more" if users.left else ""
        lines.append(f"  checked with {format_plural(len(users.files), 'spec')}{made}{more}")
    step = "gangplan render && gangplan validate"
    if format in _SPECS:
        step = f"gangplan render, then commit {path} and rendered/"
    if left := sum(1 for one in judged.found if one.is_error):
        were = "error above, which was" if left == 1 else f"{left} errors above, which were"
        step = f"correct the {were} there before"
    lines.append(f"next: {step}")
    sys.stdout.write("".join(f"{escape_own_line(line)}\n" for line in lines))
