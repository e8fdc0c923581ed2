"""Extend the policies of gangplan's packs to MPIJobs.

The packs are written for TrainJobs and their runtimes, the only kinds of runs on most clusters, where they
stay unchanged. On a cluster whose file states the MPI operator, each policy gets a rule for MPIJobs, and its
expressions read their fields. A workspace's own policies stay as they are: they name the kinds that they
judge.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gangplan.model.backend import TRAINJOB
from gangplan.objects import Body
from gangplan.packs.read import PolicySource

TRAINER = TRAINJOB.group
_SUSPENDED = "dyn(object).spec.?suspend.orValue(false)"
_REPLICAS = "dyn(object).spec.mpiReplicaSpecs"
_POLICY = "dyn(object).spec.?runPolicy"
_DEADLINE = f"{_POLICY}.?activeDeadlineSeconds"
_RESTARTS = "dyn(object).spec.template.spec.?failurePolicy.?maxRestarts.orValue(0)"
_JOBS = "dyn(object).spec.template.spec.?replicatedJobs.orValue([])\n  .map(j, j.template.spec.?backoffLimit"
_HAS = 'object.kind == "TrainJob" ? (has(dyn(object).spec.activeDeadlineSeconds) ?'
_IS = 'object.kind == "MPIJob"'
# Parts of expressions that depend on the kind, and their replacements that know MPIJobs too.
TEXTS = (
    ('object.kind == "TrainJob" &&', 'object.kind in ["TrainJob", "MPIJob"] &&'),
    (
        'object.kind in ["TrainJob", "TrainingRuntime"]',
        'object.kind in ["TrainJob", "TrainingRuntime", "MPIJob"]',
    ),
    ('(object.kind == "TrainingRuntime" &&', '(object.kind in ["TrainingRuntime", "MPIJob"] &&'),
    ('(object.kind == "TrainJob" ? "the run"', '(object.kind in ["TrainJob", "MPIJob"] ? "the run"'),
    ('object.kind == "TrainJob" ? 0 :', 'object.kind in ["TrainJob", "MPIJob"] ? 0 :'),
    ("object.kind == params.data.kind", 'object.kind == params.data.kind || object.kind == "MPIJob"'),
    (_SUSPENDED, f"({_IS} ? {_POLICY}.?suspend.orValue(false) : {_SUSPENDED})"),
    ("!has(object.spec.mlPolicy)", 'object.kind != "MPIJob" && !has(dyn(object).spec.mlPolicy)'),
    (
        _HAS,
        f"{_IS} ? ({_DEADLINE}.hasValue() ? [int({_DEADLINE}.value())] : []) :\n  {_HAS}",
    ),
    # The default backoffLimit of a Job is 6.
    (_RESTARTS, f"({_IS} ? {_POLICY}.?backoffLimit.orValue(6) : {_RESTARTS})"),
    (_JOBS, f"({_IS} ? [] : {_JOBS.partition(chr(10))[0]})\n{_JOBS.partition(chr(10))[2]}"),
)


@lru_cache(maxsize=512)
def extend_policy_to_mpi_jobs(source: PolicySource, has_trainer: bool) -> PolicySource:
    """Return a policy that judges MPIJobs too if it judges runs; otherwise return it unchanged."""
    spec = source.body.get("spec") or {}
    matched = spec.get("matchConstraints") or {}
    rules = matched.get("resourceRules") or []
    of_runs = [rule for rule in rules if TRAINER in rule["apiGroups"]]
    if not source.is_shipped or not of_runs:
        return source
    own = {**of_runs[0], "apiGroups": ["kubeflow.org"], "apiVersions": ["v2beta1"], "resources": ["mpijobs"]}
    kept = [rule for rule in rules if has_trainer or rule not in of_runs]
    last = max((at for at, rule in enumerate(kept) if rule in of_runs), default=-1)
    changed: Body = {
        **spec,
        "matchConstraints": {**matched, "resourceRules": [*kept[: last + 1], own, *kept[last + 1 :]]},
    }
    for part in ("matchConditions", "variables", "validations"):
        if part in spec:
            changed[part] = [_extend_policy_expression_to_mpi_jobs(one) for one in spec[part]]
    # The body no longer matches the lines of the document, nor the programs compiled from it.
    return replace(source, body={**source.body, "spec": changed}, document=None)


def _extend_policy_expression_to_mpi_jobs(one: Body) -> Body:
    """Return a condition, variable or validation that reads the fields of MPIJobs too."""
    if one.get("name") == "pods":
        pods = f"{_REPLICAS}.map(k, {_REPLICAS}[k].template.spec)"
        return {**one, "expression": f"{_IS} ? {pods} :\n  ({one['expression']})"}
    found = dict(one)
    for name in ("expression", "messageExpression"):
        for old, new in TEXTS if name in found else ():
            found[name] = found[name].replace(old, new)
    return found
