"""A file made from the spec of a job: what `gangplan new sweep` and `gangplan new template` share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from gangplan.commands.common import print_findings_to_stderr, report_nothing_written
from gangplan.errors import Exit, UserError
from gangplan.fixes.write import read_fixable
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.report.escape import escape_own_line
from gangplan.spec.root import SPECS, find_path_from_root
from gangplan.starter.draft import create_draft_copy_of_workspace
from gangplan.starter.write import write_new_files


class FileFromJob(NamedTuple):
    """A file to write. `checked` is the spec that shows whether it is right, and `drafts` are other files that
    this spec needs in the check; they are not written."""

    root: Path
    file: str
    text: str
    checked: str
    drafts: Mapping[str, str]


def find_spec_path_of_job_argument(root: Path, job: str) -> str:
    """Return the path of the job's spec from the root. Raises UserError."""
    for start in (Path.cwd(), root):
        path = find_path_from_root(root, start, job)
        top, *rest = path.split("/")
        if top == SPECS and len(rest) > 1 and rest[-1] != "team.yaml" and (root / path).is_file():
            return path
    raise UserError(f"{job} is not a spec of a job", "Name a file below specs/<team>/ with --from.")


def read_spec_of_job_argument(root: Path, source: str) -> bytes:
    """Return the content of a job's spec. Raises UserError."""
    data = read_fixable(root, source)
    if data is None:
        raise UserError(f"{source} is not a plain file", "Name the spec of a job.")
    return data


def refuse_existing_file(root: Path, file: str, help: str) -> None:
    """Refuse to write a file that exists. Raises UserError."""
    if os.path.lexists(root / file):
        raise UserError(f"nothing was written: {file} exists", help)


def write_new_file_after_check(
    new: FileFromJob, describe: Callable[[Result], list[str]], is_dry: bool, is_quiet: bool
) -> Exit:
    """Check a file in a copy of the workspace, print the findings, and write it if none is an error.

    `describe` returns the lines that are printed after what was written.
    """
    with create_draft_copy_of_workspace(new.root, {**new.drafts, new.file: new.text}) as draft:
        result = preview_render(Request(draft, specs=(new.checked,), engine="serial"))
    print_findings_to_stderr(result.findings)
    if result.has_errors:
        return report_nothing_written(result.findings)
    if is_dry:
        sys.stdout.write(new.text)
        return Exit.CLEAN
    write_new_files(new.root, {new.file: new.text})
    if not is_quiet:
        lines = [f"wrote {new.file}", *describe(result)]
        sys.stdout.write("".join(f"{escape_own_line(line)}\n" for line in lines))
    return Exit.CLEAN
