"""The replicated jobs of a run: where they are, and what a TrainJob patches in them.

The JobSet of a run is the template of its TrainingRuntime (Trainer v2.1 to v2.3, JobSet v0.10 to v0.12).
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.model.backend import ANCESTOR_LABEL
from gangplan.objects import Body

JOBSET_PATH: FieldPath = ("spec", "template", "spec")
_ENTRIES = "replicatedJobs"
REPLICATED_JOBS_PATH: FieldPath = (*JOBSET_PATH, _ENTRIES)
_INSIDE: FieldPath = ("template", "spec", _ENTRIES)
POD_TEMPLATE_PATH: FieldPath = ("template", "spec", "template")  # path of the pod template within an entry
LAUNCHER, WORKER = "launcher", "node"  # names that Trainer wires (plugins/mpi)


def list_replicated_jobs(body: Body) -> list[Body]:
    """Return the replicated jobs of a TrainingRuntime or a JobSet, as written."""
    spec = body["spec"]
    if body["kind"] != "JobSet":
        spec = (spec.get("template") or {}).get("spec") or {}
    found: list[Body] = spec.get(_ENTRIES) or []
    return found


def find_trainjob_step(entry: Body) -> str:
    """Return the step of a TrainJob that a replicated job is (trainer, dataset-initializer, ...), or ""."""
    return str(((entry["template"].get("metadata") or {}).get("labels") or {}).get(ANCESTOR_LABEL, ""))


def list_train_job_runtime_patches(spec: Body) -> Iterator[tuple[FieldPath, Body]]:
    """Yield what runtimePatches of a TrainJob change in replicated jobs (Trainer 2.2), each with its path."""
    for number, patch in enumerate(spec.get("runtimePatches") or ()):
        inner = ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("spec") or {}
        for index, one in enumerate(inner.get(_ENTRIES) or ()):
            yield ("spec", "runtimePatches", number, "trainingRuntimeSpec", *_INSIDE, index), one
