"""Map variables that read a label or annotation of their pod: pods of a run have only the run's own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.imports.draft import SpecDraft
from gangplan.imports.pods import SourceVariable
from gangplan.imports.workload import BY_INDEX, NOT_IN_RUN, PodRole
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
_KEPT = (
    "batch.kubernetes.io/",
    "gangplan.dev/",
    "jobset.sigs.k8s.io/job-",
    "jobset.sigs.k8s.io/global-",
    "jobset.sigs.k8s.io/restart-attempt",
)


def convert_pod_label_variable(draft: SpecDraft, role: PodRole, one: SourceVariable) -> SourceVariable | None:
    """Return the variable as pods of a run can have it, or with a plain value; None if it became a question."""
    found = _READ.fullmatch(one.reference) if one.source == "field" else None
    if found is None:
        return one
    key, own = found[2], role.pod.metadata
    trained = [other for other in draft.work.roles if other is not draft.work.launcher]
    is_alone = role not in trained or len(trained) == 1
    number = _find_number_in_source(draft, [role] if is_alone else trained, key)
    if number == NOT_IN_RUN:
        draft.ask(
            one.node,
            f"{one.name} reads {found[1].removesuffix('s')} {key}, and numbers of the source's jobs are others in a run, which has one job",
            "Let the program read its rank, or compute the number from JOB_COMPLETION_INDEX.",
        )
        return None
    if number == BY_INDEX or (key in _INDEX and is_alone):
        return _convert_to_field_variable(one, COMPLETION_INDEX_FIELD)
    if number:
        return SourceVariable(one.name, one.node, number)
    if key.startswith(_KEPT):
        return one
    if key in _JOB:
        return _convert_to_field_variable(one, _RUN)
    stated = own[found[1]][key] if own is not None else None
    if stated:
        return SourceVariable(one.name, one.node, stated.text())
    draft.ask(
        one.node,
        f"{one.name} reads {found[1].removesuffix('s')} {key}, which pods of a run do not have: it would be empty",
        f"Let the program read JOB_COMPLETION_INDEX, or another field of the pod ({_RUN}).",
    )
    return None


def _find_number_in_source(draft: SpecDraft, roles: Sequence[PodRole], key: str) -> str:
    """Return what a label says in the pods of these roles, which become one; empty if the source does not say."""
    found = {one.labels.get(key, "") for role in roles for one in draft.work.numbers if one.pod is role.pod}
    if len(found) > 1 or (BY_INDEX in found and len(roles) > 1):
        return NOT_IN_RUN
    return next(iter(found), "")


def _convert_to_field_variable(one: SourceVariable, reference: str) -> SourceVariable:
    return SourceVariable(one.name, one.node, None, "field", reference)
