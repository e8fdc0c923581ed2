"""`gangplan new template`: a template from the spec of a job, checked before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.new_from_job import (
    FileFromJob,
    find_spec_path_of_job_argument,
    read_spec_of_job_argument,
    refuse_existing_file,
    write_new_file_after_check,
)
from gangplan.errors import Exit
from gangplan.pipeline.request import Result
from gangplan.report.plan import format_run_plan_line
from gangplan.spec.root import JOB_TEMPLATES, locate_workspace_root
from gangplan.starter.answers import check_name
from gangplan.starter.templates import (
    parse_new_template_parameters,
    render_job_of_new_template,
    render_new_template_text,
)
from gangplan.starter.text import render_new_file_modeline


def run_new_template_command(
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
    source = find_spec_path_of_job_argument(root, job)
    of_team = f"{'/'.join(source.split('/')[:2])}/templates/{name}.yaml"
    file = f"{JOB_TEMPLATES}/{name}.yaml" if is_shared else of_team
    help = "Edit it, take another name, or write a second version of it: docs/templates.md#versions."
    refuse_existing_file(root, file, help)
    if is_shared:
        refuse_existing_file(root, of_team, "The team would use its own template; take another name.")
    data = read_spec_of_job_argument(root, source)
    parameters = parse_new_template_parameters(given)
    text = render_new_template_text(
        data, source, parameters, render_new_file_modeline("template", root, file)
    )

    def describe(result: Result) -> list[str]:
        flags = "".join(f" --param {one}=..." for one in parameters)
        next_step = f"next: gangplan new job NAME --template {name}{flags}"
        return [*(f"  {format_run_plan_line(run)}" for run in result.runs), next_step]

    new = FileFromJob(root, file, text, source, {source: render_job_of_new_template(data, name)})
    return write_new_file_after_check(new, describe, is_dry, is_quiet)
