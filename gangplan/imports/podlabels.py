"""Map variables that read a label or annotation of their pod: pods of a run have only the run's own."""

from __future__ import annotations

import re

from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourceVariable
from gangplan.imports.workload import PodRole
from gangplan.model.frameworks import COMPLETION_INDEX_FIELD

_READ = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
# Labels with which controllers number their pods: the training operator v1, JobSet and Volcano.
_INDEX = frozenset(
    str.split(
        "training.kubeflow.org/replica-index replica-index pytorch-replica-index mpi-job-role-index volcano.sh/task-index"
    )
)
_JOB = frozenset(
    str.split(
        "training.kubeflow.org/job-name job-name pytorch-job-name tf-job-name mpi-job-name jobset.sigs.k8s.io/jobset-name"
        " volcano.sh/job-name batch.kubernetes.io/job-name trainer.kubeflow.org/trainjob-name"
    )
)
_RUN = "metadata.labels['gangplan.dev/run']"
# Labels that pods of a run have as well.
_KEPT = ("batch.kubernetes.io/", "gangplan.dev/", "jobset.sigs.k8s.io/job-", "jobset.sigs.k8s.io/global-")


def convert_pod_label_variable(draft: SpecDraft, role: PodRole, one: SourceVariable) -> SourceVariable | None:
    """Return the variable as pods of a run can have it; None if it became a question or a plain value."""
    found = _READ.fullmatch(one.reference) if one.source == "field" else None
    if found is None or found[2].startswith(_KEPT):
        return one
    key, own = found[2], role.pod.metadata
    trained = [other for other in draft.work.roles if other is not draft.work.launcher]
    if key in _INDEX and len(trained) == 1:
        return _convert_to_field_variable(one, COMPLETION_INDEX_FIELD)
    if key in _JOB:
        return _convert_to_field_variable(one, _RUN)
    stated = own[found[1]][key] if own is not None else None
    if stated:
        draft.put(f"env/{one.name}", stated.text(), one.node)
        return None
    draft.ask(
        one.node,
        f"{one.name} reads {found[1].removesuffix('s')} {key}, which pods of a run do not have: it would be empty",
        f"Let the program read JOB_COMPLETION_INDEX, or another field of the pod ({_RUN}).",
    )
    return None


def _convert_to_field_variable(one: SourceVariable, reference: str) -> SourceVariable:
    return SourceVariable(one.name, one.node, None, "field", reference)
