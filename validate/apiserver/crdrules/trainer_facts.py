"""The rules in the CRDs of Kubeflow Trainer 2.1 to 2.3 and JobSet 0.10 to 0.12, in words of our own."""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.model.backend import RUNTIME_KINDS, TRAINJOB
from gangplan.validate.apiserver.crdrules.rule_fact import (
    JOBSET_GROUP,
    TRAINER_GROUP,
    RuleFact,
    build_crd_rule_facts,
    build_immutable_crd_field_facts,
)

_RUNTIMES = " ".join(RUNTIME_KINDS)
_TEMPLATE = "spec.runtimePatches.[manager].trainingRuntimeSpec.template.spec.replicatedJobs.[name].template"
_PATCHED = f"{_TEMPLATE}.spec.template.spec"
_POLICIES = ("torch", "mpi", "jax", "xgboost", "flux")
_URI = r"self.size() == 0 || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+')"
_EXCLUSIVE = (
    "!has(self.startupPolicy) || self.startupPolicy.startupPolicyOrder != 'InOrder'"
    " || self.replicatedJobs.all(job, !has(job.dependsOn))"
)
_JOBSET_FIXED = (
    "failurePolicy",
    "network",
    "replicatedJobs.[name].dependsOn",
    "startupPolicy",
    "successPolicy",
)
_CLAIMS = (
    "self.templates.all(claim, !has(claim.metadata.namespace) || claim.metadata.namespace.size() == 0)",
    "claims are made in the namespace of the run: leave metadata.namespace out",
)


def _build_at_most_one_rule(names: Iterable[str]) -> str:
    return " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in names) + " <= 1"


def _build_train_job_crd_rule_facts() -> list[RuleFact]:
    spec = tuple(f"spec.{name}" for name in ("initializer", "trainer", "activeDeadlineSeconds"))
    patched = (
        "containers",
        "imagePullSecrets",
        "initContainers",
        "securityContext",
        "serviceAccountName",
        "volumes",
    )
    managers = f"['{TRAINJOB.manager}', 'kueue.x-k8s.io/multikueue']"
    label = r"self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"
    return [
        *build_crd_rule_facts(
            TRAINER_GROUP,
            TRAINJOB.kind,
            "",
            (label, "metadata.name starts with a letter and holds lower-case letters, digits and '-'"),
            ("self.metadata.name.size() < 64", "metadata.name has at most 63 characters"),
        ),
        *build_crd_rule_facts(
            TRAINER_GROUP,
            TRAINJOB.kind,
            "spec.managedBy",
            (f"self in {managers}", f"must be one of {managers}"),
        ),
        *build_immutable_crd_field_facts(TRAINER_GROUP, TRAINJOB.kind, "spec.managedBy", "spec.runtimeRef"),
        *build_immutable_crd_field_facts(
            TRAINER_GROUP, TRAINJOB.kind, *spec, "spec.runtimePatches.[manager].manager", since="2.2"
        ),
        *build_immutable_crd_field_facts(
            TRAINER_GROUP, TRAINJOB.kind, *(f"{_PATCHED}.{name}" for name in patched), since="2.2"
        ),
        *build_immutable_crd_field_facts(
            TRAINER_GROUP, TRAINJOB.kind, f"{_PATCHED}.terminationGracePeriodSeconds", since="2.3"
        ),
        *(
            fact
            for name in ("dataset", "model")
            for fact in build_crd_rule_facts(
                TRAINER_GROUP,
                TRAINJOB.kind,
                f"spec.initializer.{name}.storageUri",
                (_URI, "must be empty or an address such as s3://bucket/path"),
                since="2.3",
            )
        ),
    ]


def _build_jobset_crd_rule_facts() -> list[RuleFact]:
    """Return the rules that JobSets and the templates of runtimes share."""
    found: list[RuleFact] = []
    message = "startupPolicy InOrder and dependsOn exclude each other"
    for group, kinds, base, since in (
        (JOBSET_GROUP, "JobSet", "spec", "0.11"),
        (TRAINER_GROUP, _RUNTIMES, "spec.template.spec", "2.2"),
    ):
        found += build_crd_rule_facts(group, kinds, base, (_EXCLUSIVE, message))
        found += build_immutable_crd_field_facts(group, kinds, *(f"{base}.{name}" for name in _JOBSET_FIXED))
        found += build_immutable_crd_field_facts(group, kinds, f"{base}.volumeClaimPolicies", since=since)
        found += build_crd_rule_facts(group, kinds, f"{base}.volumeClaimPolicies.[]", _CLAIMS, since=since)
    return found


def _build_runtime_crd_rule_facts() -> list[RuleFact]:
    policy, only_one = "spec.mlPolicy", "only one of torch, mpi, jax, xgboost, flux"
    elastic = "!has(self.numNodes) || !has(self.torch) || !has(self.torch.elasticPolicy)"
    words = "type(self) == string ? self in ['auto', 'cpu', 'gpu'] : self > 0"
    targets = "spec.mlPolicy.torch.envInjection.targets.[jobName].containerNames"
    kinds = _RUNTIMES
    return [
        *build_crd_rule_facts(
            TRAINER_GROUP, kinds, policy, (_build_at_most_one_rule(_POLICIES[:2]), only_one), until="2.1"
        ),
        *build_crd_rule_facts(
            TRAINER_GROUP, kinds, policy, (_build_at_most_one_rule(_POLICIES), only_one), since="2.2"
        ),
        *build_crd_rule_facts(
            TRAINER_GROUP,
            kinds,
            policy,
            (elastic, "numNodes and torch.elasticPolicy exclude each other"),
            until="2.1",
        ),
        *build_crd_rule_facts(
            TRAINER_GROUP,
            kinds,
            f"{policy}.torch.numProcPerNode",
            (words, "must be auto, cpu, gpu or a number above 0"),
            until="2.1",
        ),
        *build_crd_rule_facts(
            TRAINER_GROUP,
            kinds,
            f"{policy}.flux.numProcPerNode",
            ("self > 0", "must be 1 or more"),
            since="2.2",
        ),
        *build_crd_rule_facts(
            TRAINER_GROUP,
            kinds,
            targets,
            ("!('node' in self)", "cannot hold node, which gets these variables anyway"),
            since="2.3",
        ),
    ]


TRAINER_FACTS = (
    *_build_train_job_crd_rule_facts(),
    *_build_runtime_crd_rule_facts(),
    *_build_jobset_crd_rule_facts(),
)
