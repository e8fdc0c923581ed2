"""Objects in, the order to apply them in out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.objects import ref_of

# An object comes after everything that it names or is judged by: quotas and policies before pods, queues
# before the jobs in them, the runtime before its TrainJob. Kinds not listed come before all workloads.
APPLY_ORDER = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "ServiceAccount",
    "ResourceQuota",
    "LimitRange",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "NetworkPolicy",
    "SecretStore",
    "ExternalSecret",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Topology",
    "ResourceFlavor",
    "AdmissionCheck",
    "WorkloadPriorityClass",
    "Cohort",
    "ClusterQueue",
    "LocalQueue",
    "",
    "Service",
    "ClusterTrainingRuntime",
    "TrainingRuntime",
    "Pod",
    "Deployment",
    "StatefulSet",
    "Job",
    "CronJob",
    "JobSet",
    "MPIJob",
    "TrainJob",
)
_RANK = {kind: rank for rank, kind in enumerate(APPLY_ORDER)}


def apply_key(body: Mapping[str, Any]) -> tuple[int, str, str, str, str]:
    """Sorts objects into the order to apply them in, then by kind, namespace and name."""
    ref = ref_of(body)
    return _RANK.get(ref.kind, _RANK[""]), ref.kind, ref.namespace, ref.name, ref.api_version
