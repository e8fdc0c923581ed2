"""The defaults of the CRDs: Kubeflow Trainer 2.1 to 2.3, JobSet 0.10 to 0.12, Kueue 0.15 to 0.19, and the
ExternalSecret of external-secrets 1.3.

Facts by hand; tests/policy/test_defaults.py compares them with the CRDs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from gangplan.model.backend import MPIJOB, RUNTIME_KINDS, SHARED_RUNTIME_KIND, TRAINJOB
from gangplan.model.support import look_up_jobset_line, look_up_trainer_line
from gangplan.validate.apiserver.defaulting.filling import Filling
from gangplan.validate.apiserver.schema import SchemaVersions

Row = tuple[str, Any]

# Defaults that a CRD repeats from the types of Kubernetes that it embeds (their `+default` marks).
_REFERENCE = ("configMapKeyRef", "secretKeyRef")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ENV: tuple[Row, ...] = (
    *((f"env[].valueFrom.{name}.name", "") for name in _REFERENCE),
    ("env[].valueFrom.fileKeyRef.optional", False),
)
_CONTAINER: tuple[Row, ...] = (
    *_ENV,
    ("envFrom[].configMapRef.name", ""),
    ("envFrom[].secretRef.name", ""),
    *((f"{probe}.grpc.service", "") for probe in _PROBES),
    ("ports[].protocol", "TCP"),
)
_VOLUME: tuple[Row, ...] = (
    ("azureDisk.fsType", "ext4"),
    ("azureDisk.readOnly", False),
    *(
        (f"{name}.secretRef.name", "")
        for name in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO")
    ),
    ("storageos.secretRef.name", ""),
    ("configMap.name", ""),
    ("csi.nodePublishSecretRef.name", ""),
    ("iscsi.iscsiInterface", "default"),
    ("projected.sources[].configMap.name", ""),
    ("projected.sources[].secret.name", ""),
    ("rbd.keyring", "/etc/ceph/keyring"),
    ("rbd.pool", "rbd"),
    ("rbd.user", "admin"),
    ("scaleIO.fsType", "xfs"),
    ("scaleIO.storageMode", "ThinProvisioned"),
)


def _prefix_default_rows(prefix: str, *groups: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple((f"{prefix}.{path}", value) for rows in groups for path, value in rows)


_POD: tuple[Row, ...] = (
    *_prefix_default_rows("containers[]", _CONTAINER),
    *_prefix_default_rows("initContainers[]", _CONTAINER),
    *_prefix_default_rows("ephemeralContainers[]", _CONTAINER),
    *_prefix_default_rows("volumes[]", _VOLUME),
    ("imagePullSecrets[].name", ""),
)
# What a TrainJob may override in its pods: fewer fields than a pod has.
_OVERRIDE: tuple[Row, ...] = (
    *_prefix_default_rows("containers[]", _ENV),
    *_prefix_default_rows("initContainers[]", _ENV),
    *_prefix_default_rows("volumes[]", _VOLUME),
    ("imagePullSecrets[].name", ""),
)
_JOBSET: tuple[Row, ...] = (
    ("failurePolicy.restartStrategy", "Recreate"),
    ("replicatedJobs[].groupName", "default"),
    ("replicatedJobs[].replicas", 1),
    *_prefix_default_rows("replicatedJobs[].template.spec.template.spec", _POD),
)
_CLAIM_POLICIES: tuple[Row, ...] = (("volumeClaimPolicies[].retentionPolicy.whenDeleted", "Delete"),)
_RUNTIME: tuple[Row, ...] = (
    ("spec.mlPolicy.mpi.mpiImplementation", "OpenMPI"),
    ("spec.mlPolicy.mpi.numProcPerNode", 1),
    ("spec.mlPolicy.mpi.runLauncherAsNode", False),
    ("spec.mlPolicy.mpi.sshAuthMountPath", "/root/.ssh"),
    ("spec.podGroupPolicy.coscheduling.scheduleTimeoutSeconds", 60),
    ("spec.podGroupPolicy.volcano.networkTopology.highestTierAllowed", 1),
    ("spec.podGroupPolicy.volcano.networkTopology.mode", "hard"),
    *_prefix_default_rows("spec.template.spec", _JOBSET),
)
_TRAIN_JOB: tuple[Row, ...] = (
    ("spec.managedBy", TRAINJOB.manager),
    ("spec.suspend", False),
    ("spec.runtimeRef.apiGroup", TRAINJOB.group),
    ("spec.runtimeRef.kind", SHARED_RUNTIME_KIND),
    *_prefix_default_rows("spec.trainer", _ENV),
    *_prefix_default_rows("spec.initializer.dataset", _ENV, (("secretRef.name", ""),)),
    *_prefix_default_rows("spec.initializer.model", _ENV, (("secretRef.name", ""),)),
    *_prefix_default_rows("spec.podTemplateOverrides[].spec", _OVERRIDE),
    *_prefix_default_rows(
        "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template.spec",
        _OVERRIDE,
    ),
)
_MPI_JOB: tuple[Row, ...] = (
    ("spec.launcherCreationPolicy", "AtStartup"),
    ("spec.mpiImplementation", "OpenMPI"),
    ("spec.runLauncherAsWorker", False),
    ("spec.runPolicy.suspend", False),
    ("spec.slotsPerWorker", 1),
    ("spec.sshAuthMountPath", "/root/.ssh"),
    *_prefix_default_rows("spec.mpiReplicaSpecs.Launcher.template.spec", _POD),
    *_prefix_default_rows("spec.mpiReplicaSpecs.Worker.template.spec", _POD),
)
_CLUSTER_QUEUE: tuple[Row, ...] = (
    ("spec.fairSharing.weight", 1),
    ("spec.flavorFungibility", {}),
    ("spec.flavorFungibility.whenCanBorrow", "MayStopSearch"),
    ("spec.flavorFungibility.whenCanPreempt", "TryNextFlavor"),
    ("spec.preemption", {}),
    ("spec.preemption.borrowWithinCohort", {}),
    ("spec.preemption.borrowWithinCohort.policy", "Never"),
    ("spec.preemption.reclaimWithinCohort", "Never"),
    ("spec.preemption.withinClusterQueue", "Never"),
    ("spec.queueingStrategy", "BestEffortFIFO"),
    ("spec.stopPolicy", "None"),
)
_RETRY = {"backoffBaseSeconds": 60, "backoffLimitCount": 3, "backoffMaxSeconds": 1800}
_BACKOFF: tuple[Row, ...] = (
    ("spec.retryStrategy", {}),
    *((f"spec.retryStrategy.{name}", value) for name, value in _RETRY.items()),
)
_GENERATOR: Row = ("sourceRef.generatorRef.apiVersion", "generators.external-secrets.io/v1alpha1")
_REMOTE = (("conversionStrategy", "Default"), ("decodingStrategy", "None"), ("metadataPolicy", "None"))
_REWRITE = {"conflictPolicy": "Error", "into": "", "priorityPolicy": "Strict", "strategy": "Extract"}
_SECRET: tuple[Row, ...] = (
    ("spec.refreshInterval", "1h0m0s"),
    *_prefix_default_rows("spec.data[]", (_GENERATOR,), _prefix_default_rows("remoteRef", _REMOTE)),
    *_prefix_default_rows(
        "spec.dataFrom[]",
        (_GENERATOR,),
        _prefix_default_rows("extract", _REMOTE),
        _prefix_default_rows("find", _REMOTE[:2]),
    ),
    *((f"spec.dataFrom[].rewrite[].merge.{name}", value) for name, value in _REWRITE.items()),
    ("spec.target", {}),
    ("spec.target.creationPolicy", "Owner"),
    ("spec.target.deletionPolicy", "Retain"),
    ("spec.target.template.engineVersion", "v2"),
    ("spec.target.template.mergePolicy", "Replace"),
    ("spec.target.template.templateFrom[].configMap.items[].templateAs", "Values"),
    ("spec.target.template.templateFrom[].secret.items[].templateAs", "Values"),
    ("spec.target.template.templateFrom[].target", "Data"),
)
# (group, kind) -> rows, for every served version of the group. PrometheusRule has no defaults.
CRD_DEFAULTS: dict[tuple[str, str], tuple[Row, ...]] = {
    ("kueue.x-k8s.io", "ClusterQueue"): _CLUSTER_QUEUE,
    ("kueue.x-k8s.io", "Cohort"): (("spec.fairSharing.weight", 1),),
    ("kueue.x-k8s.io", "LocalQueue"): (("spec.fairSharing.weight", 1), ("spec.stopPolicy", "None")),
    ("kueue.x-k8s.io", "MultiKueueCluster"): (
        ("spec.kubeConfig.locationType", "Secret"),
        ("spec.clusterSource.kubeConfig.locationType", "Secret"),
    ),
    ("kueue.x-k8s.io", "ProvisioningRequestConfig"): _BACKOFF,
    **{(TRAINJOB.group, kind): _RUNTIME for kind in RUNTIME_KINDS},
    (TRAINJOB.group, TRAINJOB.kind): _TRAIN_JOB,
    (MPIJOB.group, MPIJOB.kind): _MPI_JOB,
    ("external-secrets.io", "ExternalSecret"): _SECRET,
    ("jobset.x-k8s.io", "JobSet"): _prefix_default_rows("spec", _JOBSET),
}


def find_crd_defaults(api_version: Any, kind: Any, versions: SchemaVersions) -> tuple[Row, ...]:
    """Return the defaults of a kind at the versions of a cluster; () for a kind that is not a CRD's."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return ()
    return tuple(_build_crd_default_table(api_version, kind, versions.trainer or "0", versions.jobset or "0"))


def find_crd_filling(api_version: Any, kind: Any, versions: SchemaVersions) -> Filling:
    """Return the defaults of a kind at the versions of a cluster as a Filling."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return NOTHING
    return _build_crd_filling(api_version, kind, versions.trainer or "0", versions.jobset or "0")


NOTHING = Filling(())


@cache
def _build_crd_filling(api_version: str, kind: str, trainer: str, jobset: str) -> Filling:
    return Filling(_build_crd_default_table(api_version, kind, trainer, jobset))


@cache
def _build_crd_default_table(api_version: str, kind: str, trainer: str, jobset: str) -> tuple[Row, ...]:
    return tuple(_iterate_crd_default_rows(api_version, kind, trainer, jobset))


def _iterate_crd_default_rows(api_version: str, kind: str, trainer: str, jobset: str) -> Iterator[Row]:
    group, _, version = api_version.rpartition("/")
    yield from CRD_DEFAULTS.get((group, kind), ())
    if (group, kind, version) == ("kueue.x-k8s.io", "AdmissionCheck", "v1beta1"):
        yield "spec.retryDelayMinutes", 15
    if kind in RUNTIME_KINDS:
        line = look_up_trainer_line(trainer)
        if line.fills_torch_processes:
            yield "spec.mlPolicy.torch.numProcPerNode", "auto"
        else:
            yield "spec.mlPolicy.flux.numProcPerNode", 1
        if look_up_jobset_line(line.jobset.line).has_claim_policies:
            yield from _prefix_default_rows("spec.template.spec", _CLAIM_POLICIES)
    if kind == "JobSet" and look_up_jobset_line(jobset).has_claim_policies:
        yield from _prefix_default_rows("spec", _CLAIM_POLICIES)
