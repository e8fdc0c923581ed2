"""The model version that a job registers: there is only one, once other jobs are complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gangplan.model.job import EnvVar, Job, ValueOrigin
from gangplan.model.pods import MODEL_ENV, RegisteredModel
from gangplan.resolve.context import JobResolution
from gangplan.resolve.order import read_ordered_job
from gangplan.rules.models import MODEL_ALONE, MODEL_TWICE
from gangplan.source import MAX_DOCUMENT_BYTES
from gangplan.spec.job import Model
from gangplan.workspace import SpecFile, Workspace


def resolve_registered_model_env(model: Model) -> dict[str, EnvVar]:
    """Return the variables with the model that the command should register."""
    return {
        name: EnvVar(name, getattr(model, field), origins=(ValueOrigin("spec", ("model", field)),))
        for name, field in MODEL_ENV.items()
    }


def resolve_registered_model(context: JobResolution, workspace: Workspace, job: Job) -> Job:
    """Return the job with the model that it registers, and report findings about it."""
    model = context.spec.spec.model
    assert model is not None
    if not context.spec.spec.after:
        message = f"the job registers {model.name} {model.version}, and comes after no job that trains it"
        help = "Write after: [JOB] with the job that trains it; that one stays complete if this one fails."
        context.report(MODEL_ALONE, context.where("model", key=True), message, help)
    for where, help in _find_other_model_registrations(context, workspace, model):
        message = f"{model.name} {model.version} is registered twice: {where} registers it, too"
        context.report(MODEL_TWICE, context.where("model", "version"), message, help)
    return replace(job, model=RegisteredModel(model.name, model.version))


def _find_other_model_registrations(
    context: JobResolution, workspace: Workspace, model: Model
) -> Iterator[tuple[str, str]]:
    """Yield who else registers the version, in any state: another job, or this one on another cluster."""
    own = read_ordered_job(workspace, context.spec.source)
    if len(own.clusters) > 1 and context.cluster.name != own.clusters[0]:
        help = f"Write clusters: [{own.clusters[0]}]; one cluster registers it."
        yield f"the job itself on {own.clusters[0]}", help
    for file in workspace.spec_files:
        if file.team != context.team.name or file.file == context.spec.source.file:
            continue
        other = read_ordered_job(workspace, file).spec if _may_spec_register_model(workspace, file) else None
        if other is not None and other.model == model:
            yield file.file, "Give this one another version; registries keep the first, or mix both."


def _may_spec_register_model(workspace: Workspace, file: SpecFile) -> bool:
    """Return whether a file contains `model`, or `template`, which may add one; most need not be parsed."""
    try:
        with (workspace.root / file.file).open("rb") as stream:
            data = stream.read(MAX_DOCUMENT_BYTES)
    except OSError:
        return False
    return b"model" in data or b"template" in data
