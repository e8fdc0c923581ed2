"""`gangplan clone` and `gangplan edit`: fields set in the text of a file, checked before anything is
written."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.commands.new import check_free
from gangplan.edits import Change, changes_of, edited
from gangplan.errors import Exit, ToolError, UserError
from gangplan.findings import Finding
from gangplan.fixes import FixedFile, read, write
from gangplan.report.escape import own_line
from gangplan.report.fixed import fixed_text
from gangplan.report.plan import run_line
from gangplan.report.sweeps import apart, sweep_line
from gangplan.source import Document, load
from gangplan.spec.near import nearest_file
from gangplan.spec.root import SPECS, root_of
from gangplan.starter.answers import check_name
from gangplan.starter.formats import format_of, model_of
from gangplan.starter.judge import Judged, judge
from gangplan.starter.parameters import templates_of, types_of
from gangplan.starter.setting import with_changes
from gangplan.starter.users import Users, users_of
from gangplan.starter.write import write_new

_SPECS = ("spec", "sweep")
# Fields about the runs that a spec had, which a copy of it does not get.
_PAST = ("run", "state", "retired", "keep", "stopped", "removed", "results")
# The field of a template, which has versions.
_VERSION = ("version",)


def edit(
    file: str,
    sets: Sequence[str],
    unsets: Sequence[str],
    workspace: Path | None,
    is_dry: bool,
    is_quiet: bool,
) -> Exit:
    """Set and remove fields of a file in place. Raises UserError if nothing could be written."""
    changes = changes_of(sets, unsets)
    if not changes:
        raise UserError("nothing to change", "Write --set KEY=VALUE or --unset KEY.")
    root = root_of(workspace)
    path = _path(root, file)
    data, document = _read(root, path)
    format, text = format_of(path, document), data.decode()
    types = _types(root, path, document, changes)
    after = with_changes(text, path, model_of(format), changes, types)
    if after == text:
        sys.stdout.write(f"{own_line(path)} says so already\n")
        return Exit.CLEAN
    users = Users() if format in _SPECS else users_of(root, path, format, text, after)
    judged = judge(root, path, text, after, format in _SPECS, users.files)
    print_findings(judged.found)
    if judged.errors:
        return _refused(judged.errors)
    fixed = FixedFile(path, data, after.encode())
    if is_dry:
        sys.stdout.write(fixed_text(fixed))
        return exit_code(judged.found)
    if why := write(root, fixed):
        raise ToolError(f"{path} was not changed: {why}", why.help)
    if not is_quiet:
        _say(f"changed {path}", path, format, judged, users)
    return exit_code(judged.found)


def clone(
    file: str,
    name: str,
    sets: Sequence[str],
    unsets: Sequence[str],
    workspace: Path | None,
    is_dry: bool,
    is_quiet: bool,
) -> Exit:
    """Copy a spec or a template under another name, and change fields of the copy. Raises UserError."""
    changes = changes_of(sets, unsets)
    root = root_of(workspace)
    path = _path(root, file)
    data, document = _read(root, path)
    format = format_of(path, document)
    if format not in (*_SPECS, "template"):
        kind = "image" if format == "catalog" else format
        raise UserError(f"{path} is no spec", f"Write another one: gangplan new {kind} {name}.")
    check_name("job", name)
    target = f"{path.rpartition('/')[0]}/{name}.yaml"
    if os.path.lexists(root / target):
        raise UserError(f"nothing was written: {target} exists", "Edit it, or take another name.")
    if format in _SPECS:
        check_free(root, path.split("/")[1], name)
    text = data.decode().removeprefix("\ufeff")
    for field in _PAST if format in _SPECS else _VERSION:
        if field in document.value:
            text = edited(text, path, (field,), None)
    if "name" in document.value:
        text = edited(text, path, ("name",), name)
    text = with_changes(text, target, model_of(format), changes, _types(root, path, document, changes))
    users = Users() if format in _SPECS else users_of(root, target, format, "", text)
    judged = judge(root, target, None, text, format in _SPECS, users.files)
    print_findings(judged.found)
    if judged.errors:
        return _refused(judged.errors)
    if is_dry:
        sys.stdout.write(text)
        return Exit.CLEAN
    write_new(root, {target: text})
    if not is_quiet:
        _say(f"wrote {target}", target, format, judged, users)
    return Exit.CLEAN


def _path(root: Path, file: str) -> str:
    """Return the path of a file from the root. Raises UserError for a file outside the workspace."""
    for start in (Path.cwd(), root):
        path = os.path.relpath(os.path.normpath(start / file), root).replace(os.sep, "/")
        if not path.startswith("../") and (root / path).is_file():
            return path
    there = [one.relative_to(root).as_posix() for one in (root / SPECS).rglob("*.yaml")]
    near = nearest_file(Path(file).as_posix(), there)
    help = f"Did you mean '{near}'?" if near else "Name a file below specs/ or another folder of it."
    raise UserError(f"there is no file {file} in the workspace", help)


def _read(root: Path, path: str) -> tuple[bytes, Document]:
    """Return the bytes of a file and its document. Raises UserError."""
    format_of(path, None)  # other files are not YAML of ours: there is nothing to correct
    data = read(root, path)
    if data is None:
        raise UserError(f"{path} is no plain file", "Replace it with one.")
    document, findings = load(data, path)
    if document is None or not isinstance(document.value, dict):
        print_findings(findings)
        raise UserError(f"{path} cannot be read", "Correct it first.")
    return data, document


def _types(root: Path, path: str, document: Document, changes: Sequence[Change]) -> dict[str, str]:
    """Return the parameter types of the template that the spec has after the changes; empty without a
    template."""
    other = [one.text for one in changes if one.path == ("template",)]
    label = other[0] if other else document.value.get("template")
    if not isinstance(label, str):
        return {}
    team = path.split("/")[1]
    return types_of(templates_of(root, team), team, label)


def _refused(errors: Sequence[Finding]) -> Exit:
    sys.stderr.write(f"nothing was written: {plural(len(errors), 'error')}\n")
    return exit_code(errors)


def _say(done: str, path: str, format: str, judged: Judged, users: Users) -> None:
    """Print what was done, what results from it, and what to do next."""
    runs, sweeps = apart(judged.result.runs if format in _SPECS else ())
    lines = [done, *(f"  {run_line(one)}" for one in runs), *(f"  {sweep_line(one)}" for one in sweeps)]
    if format not in _SPECS:
        made = " made from templates" if format == "template" else ""
        more = f"; gangplan validate checks {users.left} more" if users.left else ""
        lines.append(f"  checked with {plural(len(users.files), 'spec')}{made}{more}")
    step = "gangplan render && gangplan validate"
    if format in _SPECS:
        step = f"gangplan render, then commit {path} and rendered/"
    if left := sum(1 for one in judged.found if one.is_error):
        were = "error above, which was" if left == 1 else f"{left} errors above, which were"
        step = f"correct the {were} there before"
    lines.append(f"next: {step}")
    sys.stdout.write("".join(f"{own_line(line)}\n" for line in lines))
