"""`gangplan pipeline katib`: a sweep as an Experiment of Katib, checked as the sweep before it is written."""

from __future__ import annotations

import shlex

from gangplan.commands.common import print_findings_to_stderr, report_nothing_written
from gangplan.commands.gitops_files import write_or_print_files
from gangplan.edits import edit_field
from gangplan.errors import Exit, UserError
from gangplan.findings import Location
from gangplan.gitops.katib import (
    IN_COMMAND,
    TRIAL_VARIABLE,
    PlaceholderRun,
    build_katib_objects,
    format_trial_placeholder,
)
from gangplan.gitops.katib_search import KatibSearch, choose_katib_search
from gangplan.gitops.made import build_gitops_write_command
from gangplan.model.backend import TRAINJOB
from gangplan.objects import dump_all, format_scalar
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.source import Document, load_objects
from gangplan.spec.placeholders import find_template_placeholders
from gangplan.spec.sweep_files import SweepFile
from gangplan.starter.draft import create_draft_copy_of_workspace

# Fields of a job in which parameters may be: those that a TrainJob states, what fills a template, and words for
# people.
_STATED = ("command", "env", "parameters", "description")


def run_pipeline_katib_command(
    request: Request,
    metric: str | None,
    goal: str | None,
    algorithm: str | None,
    output: str | None,
    is_check: bool,
) -> Exit:
    """Print, write or compare the Experiment of a sweep: a file for each cluster. Raises UserError."""
    result = preview_render(request)
    print_findings_to_stderr([one for one in result.findings if one.is_error])
    if result.has_errors:
        return report_nothing_written(result.findings)
    file = _find_only_sweep_argument(request, result)
    assert file.sweep is not None
    assert file.document is not None
    search = choose_katib_search(file.sweep, file.document, metric, goal, algorithm)
    _refuse_parameters_elsewhere(file.document)
    draft = _render_placeholder_trial_for_katib_command(request, file, search)
    flags = (("--metric", metric or ""), ("--goal", goal or ""), ("--algorithm", algorithm or ""))
    command = build_gitops_write_command("katib", flags)
    header = f"# Made by `gangplan pipeline {shlex.join([command[0], file.file, *command[1:]])}`; see docs/sweeps.md.\n"
    texts = {}
    for run in draft.runs:
        job = run.unit.job
        if job.backend != TRAINJOB or job.trial is None:
            help = "Choose clusters with Trainer: --cluster NAME."
            raise UserError(f"Katib's trials are TrainJobs, and runs on {run.cluster} are not", help)
        queue = result.workspace.clusters[run.cluster].spec.teams[job.team].queue or ""
        folder = run.path.rpartition("/")[0]
        found = [
            path for path in sorted(draft.texts) if path == run.path or path.startswith(f"{folder}/launch.")
        ]
        bodies = [body for path in found for body in load_objects(draft.texts[path])]
        made = PlaceholderRun(bodies, run.name, file.name, job.trial.name, queue)
        bodies = build_katib_objects(file.sweep, search, made)
        texts[f"{run.cluster}-{job.team}-{file.name}.yaml"] = header + dump_all(bodies)
    return write_or_print_files(texts, output, is_check, kept=True)


def _find_only_sweep_argument(request: Request, result: Result) -> SweepFile:
    """Return the only sweep that the command line names. Raises UserError."""
    found = [one for path, one in result.workspace.sweeps.items() if path in result.files]
    if len(found) != 1:
        named = ", ".join(request.specs)
        raise UserError(f"{named} is not a sweep", "Name the file of one sweep.")
    return found[0]


def _refuse_parameters_elsewhere(document: Document) -> None:
    """Refuse parameters in fields that no trial can state itself. Raises UserError."""
    places: dict[str | int, Location] = {}
    for one in find_template_placeholders(document.value["template"]):
        if one.path[0] not in _STATED:
            places.setdefault(one.path[0], document.where(("template", *one.path)))
    if places:
        named = ", ".join(f"{field} ({at.line}:{at.column})" for field, at in places.items())
        raise UserError(f"{document.file}: trials of an Experiment share {named}", IN_COMMAND)


def _render_placeholder_trial_for_katib_command(
    request: Request, file: SweepFile, search: KatibSearch
) -> Result:
    """Render one trial whose values are the placeholders that Katib fills. Raises UserError."""
    assert file.document is not None
    text = (request.root / file.file).read_text(encoding="utf-8")
    values = ", ".join(f"{name}: {format_scalar(format_trial_placeholder(name))}" for name in search.space)
    for field in ("state", "results", "stopped", "removed", "retired"):
        if field in file.document.value:
            text = edit_field(text, file.file, (field,), None)
    text = edit_field(text, file.file, ("parameters",), f"{{list: [{{{values}}}]}}")
    env = f"{{field: \"metadata.labels['{TRAINJOB.run_label}']\"}}"
    text = edit_field(text, file.file, ("template", "env", TRIAL_VARIABLE), env)
    with create_draft_copy_of_workspace(request.root, {file.file: text}) as root:
        found = preview_render(Request(root, request.clusters, specs=(file.file,), engine="serial"))
    errors = [one for one in found.findings if one.is_error]
    if errors:
        said = "; ".join(one.message for one in errors)
        raise UserError(f"{file.file}: with placeholders as values, {said}", IN_COMMAND)
    return found
