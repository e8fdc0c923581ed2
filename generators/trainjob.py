"""TrainJob: the run itself. Everything but counts and deadline stands in its runtime."""

from __future__ import annotations

from gangplan.generators.common import PREFIX, objects_of, run_annotations, run_labels
from gangplan.generators.runtime import has_run_deadline
from gangplan.objects import Body
from gangplan.plan import Unit

# The highest wave: nothing may wait for a run.
WAVE = 10
# What the user wrote, hashed: tells a new spec from a new platform (gangplan.emit.earlier).
SPEC_HASH = f"{PREFIX}spec-hash"


def train_job(unit: Unit) -> list[Body]:
    """The TrainJob of a run."""
    job = unit.job
    return objects_of(
        "trainjob.yaml.j2",
        {
            "job": job,
            "layout": unit.layout,
            "name": unit.run_name,
            "labels": run_labels(unit),
            "annotations": tuple(sorted((*run_annotations(unit, WAVE), (SPEC_HASH, job.spec_hash)))),
            "priority_class": f"training-{job.priority}",
            "deadline_s": job.timeout_s if has_run_deadline(job) else 0,
        },
    )
