"""TrainJob: the run itself. All but counts and deadline are in its runtime."""

from __future__ import annotations

from typing import Any

from gangplan.generators.common import (
    LABEL_PREFIX,
    PLATFORM_PREFIX,
    TemplateRenderer,
    generate_run_annotations,
    generate_run_labels,
    render_to_objects,
)
from gangplan.generators.launch import has_run_deadline
from gangplan.model import syncing
from gangplan.model.duration import format_duration
from gangplan.model.frameworks import ML_POLICIES
from gangplan.model.job import Job
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.plan.names import DATED_SUFFIX, SCHEDULE_LABEL

# The hash of what the user wrote: distinguishes a new spec from a new platform (gangplan.emit.earlier).
SPEC_HASH = f"{LABEL_PREFIX}spec-hash"


# The digest of the image, and the claims and connections that a run reads and writes.
IMAGE_DIGEST = f"{LABEL_PREFIX}image-digest"
DATASETS = f"{LABEL_PREFIX}datasets"
PARAMETERS = f"{LABEL_PREFIX}parameters"  # of a trial of a sweep

# Its last word is also the name of a rule, so it is written whole.
LOG_RETENTION_ANNOTATION = "training.openshift.io/log-retention"


def generate_train_job(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return the TrainJob of a run."""
    job = unit.job
    return write(
        "trainjob.yaml.j2",
        {
            "job": job,
            "layout": unit.layout,
            "per_node": ML_POLICIES.get(job.image.framework) in ("mpi", "torch"),
            **generate_run_object_values(unit),
            **_generate_dated_run_values(unit),
            "runtime": unit.run_name,
            "deadline_s": job.timeout_s if has_run_deadline(job) else 0,
        },
    )


def _generate_dated_run_values(unit: RunPlan) -> dict[str, Any]:
    """Return the values of a scheduled run: a name that ends in a date, and the label to find it by."""
    if not unit.job.is_dated:
        return {}
    labels = tuple(sorted((*generate_run_labels(unit), (SCHEDULE_LABEL, unit.job.name))))
    return {"name": f"{unit.job.name}-{DATED_SUFFIX}", "labels": labels}


def _remove_needless_train_job_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """Return the annotations of a TrainJob, which has no other text of users, without the one that keeps Flux
    from filling in ${NAME} where there is none."""
    if any("${" in text for text in annotations.values()):
        return annotations
    keys = syncing.build_verbatim_annotations().keys()
    return {key: text for key, text in annotations.items() if key not in keys}


def generate_run_object_values(unit: RunPlan) -> dict[str, Any]:
    """Return the name, labels, annotations and priority class of a run's object, of either kind."""
    backend = unit.job.backend
    annotations = {
        **dict(generate_run_annotations(unit, backend.kind)),
        **_generate_lineage_annotations(unit),
        **_generate_platform_tool_annotations(unit.job),
    }
    if backend.by_jobset:
        annotations = _remove_needless_train_job_annotations(annotations)
    return {
        "name": unit.run_name,
        "labels": generate_run_labels(unit),
        "annotations": tuple(sorted(annotations.items())),
        "priority_class": f"training-{unit.job.priority}",
    }


def _generate_lineage_annotations(unit: RunPlan) -> dict[str, str]:
    """Return what the run was rendered from.

    These annotations are on the run's own object only; they may change on an existing run.
    """
    job = unit.job
    _, _, digest = job.image.reference.partition("@")
    found = {SPEC_HASH: job.spec_hash}
    if digest:
        found[IMAGE_DIGEST] = digest
    if job.trial:
        found[PARAMETERS] = " ".join(f"{name}={text}" for name, text in job.trial.values)
    if job.datasets:
        found[DATASETS] = ",".join(job.datasets)
    return found


def _generate_platform_tool_annotations(job: Job) -> dict[str, str]:
    """Return what the platform's log and cost tools look for on a run (founding requirements).

    Not on pods: their templates cannot change while the run exists, and a longer retention must not make a
    new run.
    """
    found = {LOG_RETENTION_ANNOTATION: format_duration(job.log_retention_s)}
    if job.timeout_s:
        found[f"{PLATFORM_PREFIX}timeout"] = format_duration(job.timeout_s)
        found[f"{PLATFORM_PREFIX}timeout-action"] = "terminate"
    if job.debug is not None:
        found[f"{PLATFORM_PREFIX}debug-mode"] = "true"
    return found
