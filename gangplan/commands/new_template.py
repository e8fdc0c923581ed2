"""`gangplan new template`: a template from the spec of a job, checked before it is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.common import choose_exit_code, format_plural, print_findings
from gangplan.commands.new_sweep import find_job_spec_path
from gangplan.errors import Exit, UserError
from gangplan.fixes.write import read_fixable
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.report.escape import escape_own_line
from gangplan.report.plan import format_run_line
from gangplan.spec.root import JOB_TEMPLATES, locate_workspace_root
from gangplan.starter.answers import check_name
from gangplan.starter.draft import create_temporary_workspace
from gangplan.starter.templates import (
    parse_template_parameters,
    render_template_text,
    render_templated_job,
)
from gangplan.starter.text import render_modeline
from gangplan.starter.write import write_new_files


def write_template(
    name: str,
    job: str,
    given: Sequence[str],
    is_shared: bool,
    workspace: Path | None,
    is_dry: bool,
    is_quiet: bool,
) -> Exit:
    """Write the template of a job for its team, or for all teams, and check the job as made from it. Raises
    UserError."""
    root = locate_workspace_root(workspace)
    check_name("job", name)
    source = find_job_spec_path(root, job)
    team = "/".join(source.split("/")[:2])
    file = f"{JOB_TEMPLATES}/{name}.yaml" if is_shared else f"{team}/templates/{name}.yaml"
    if os.path.lexists(root / file):
        help = "Edit it, take another name, or write a second version of it: docs/templates.md#versions."
        raise UserError(f"nothing was written: {file} exists", help)
    data = read_fixable(root, source)
    if data is None:
        raise UserError(f"{source} is no plain file", "Name the spec of a job.")
    parameters = parse_template_parameters(given)
    text = render_template_text(data, source, parameters, render_modeline("template", root, file))
    with create_temporary_workspace(root, {file: text, source: render_templated_job(data, name)}) as draft:
        result = preview_render(Request(draft, specs=(source,), engine="serial"))
    print_findings(result.findings)
    errors = sum(one.is_error for one in result.findings)
    if errors:
        sys.stderr.write(f"nothing was written: {format_plural(errors, 'error')}\n")
        return choose_exit_code(result.findings)
    if is_dry:
        sys.stdout.write(text)
        return Exit.CLEAN
    write_new_files(root, {file: text})
    if not is_quiet:
        flags = "".join(f" --param {one}=..." for one in parameters)
        lines = [
            f"wrote {file}",
            *(f"  {format_run_line(run)}" for run in result.runs),
            f"next: gangplan new job NAME --template {name}{flags}",
        ]
        sys.stdout.write("".join(f"{escape_own_line(line)}\n" for line in lines))
    return Exit.CLEAN
