"""The object from which the Red Hat build of Kueue configures Kueue's manager, with the reason for every line.

Its operator writes the manager's ConfigMap itself, so what is written there by hand is lost. Read in August 2026
in openshift/kueue-operator: pkg/apis/kueueoperator/v1/types.go, pkg/configmap/configmap.go. Unknown fields are
refused or dropped by the API server.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.model.support import look_up_kueue_line
from gangplan.model.version import ToolVersion
from gangplan.spec.manager import map_device_classes_to_resources
from gangplan.workspace import ClusterFile

# Lines of YAML, each with the comment that explains it.
Lines = Iterator[tuple[str, str]]
# The bounds of timeoutSeconds, in seconds.
_LEAST_TIMEOUT_S, _MOST_TIMEOUT_S = 30, 86400


def render_kueue_operator_config(cluster: ClusterFile, kueue: ToolVersion) -> Lines:
    """Yield the lines of the object named cluster, of which there is one."""
    spec, file = cluster.spec, cluster.document.file
    yield "apiVersion: kueue.openshift.io/v1", ""
    yield "kind: Kueue", ""
    yield "metadata:", ""
    yield "  name: cluster", "The operator reads no other."
    yield "spec:", ""
    yield "  managementState: Managed", ""
    yield "  config:", ""
    yield "    integrations:", ""
    yield "      frameworks:", "What waits in queues; add whatever else the cluster queues."
    yield "      - BatchJob", ""
    if spec.versions.trainer:
        yield "      - JobSet", "What a TrainJob becomes; those of a queued run are not queued again."
        yield "      - TrainJob", "The runs. Without it they start at once, past every queue and quota."
    if spec.versions.mpi_operator:
        yield "      - MPIJob", "Runs with backend: mpijob."
    yield "    workloadManagement:", ""
    yield (
        "      labelPolicy: None",
        (
            "In namespaces with the label kueue.openshift.io/managed, nothing starts outside a queue: it would"
            " take nodes\nthat quotas promise to runs. The default leaves jobs without a queue alone."
        ),
    )
    yield from _render_gang_scheduling(spec.pods_ready_timeout, file)
    yield "    preemption:", ""
    policy = "FairSharing" if spec.fair_sharing else "Classical"
    yield f"      preemptionPolicy: {policy}", f"fairSharing of {file}."
    yield from _render_admission_fair_sharing(cluster)
    classes = map_device_classes_to_resources(spec) if look_up_kueue_line(kueue.line).counts_claims else {}
    if classes:
        yield "    resources:", ""
        yield (
            "      deviceClassMappings:",
            f"As which resource Kueue counts the devices of claims; from {file}.",
        )
    for device_class, resource in sorted(classes.items()):
        yield f"      - name: {resource}", ""
        yield f"        deviceClassNames: [{device_class}]", ""


def list_settings_without_field(cluster: ClusterFile) -> list[str]:
    """Return the settings of the cluster's file for which the operator has no field."""
    spec = cluster.spec
    found = {
        "kueue.resources": spec.kueue.resources is not None,
        "monitoring (metrics per queue)": spec.monitoring is not None,
        "concurrentAdmission": any(team.concurrent_admission for team in spec.teams.values()),
    }
    return [name for name, is_asked in found.items() if is_asked]


def _render_gang_scheduling(timeout_s: int, file: str) -> Lines:
    within = min(max(timeout_s, _LEAST_TIMEOUT_S), _MOST_TIMEOUT_S)
    yield "    gangScheduling:", ""
    yield (
        "      policy: ByWorkload",
        "A run whose pods do not all become ready gives its quota back instead of holding it.",
    )
    yield "      byWorkload:", ""
    yield "        admission: Parallel", "Sequential starts one run of the whole cluster at a time."
    bounds = "" if within == timeout_s else "\nThe operator takes 30 seconds to a day."
    yield (
        f"        timeoutSeconds: {within}",
        (
            f"podsReadyTimeout of {file}.{bounds}\nIn the operator since August 2026; earlier ones have Kueue's"
            " default: leave it out."
        ),
    )


def _render_admission_fair_sharing(cluster: ClusterFile) -> Lines:
    stated = cluster.spec.kueue.admission_fair_sharing
    if stated is None:
        return
    yield (
        "    admissionFairSharing:",
        (
            f"For queues whose admissionMode says so; from kueue of {cluster.document.file}."
            "\nIn the operator since April 2026."
        ),
    )
    yield "      configuration: Custom", ""
    yield "      custom:", ""
    yield (
        f"        usageHalfLifeTimeSeconds: {stated.usage_half_life_time}",
        "After this time past use counts half.",
    )
    yield f"        usageSamplingIntervalSeconds: {stated.usage_sampling_interval}", ""
    if stated.resource_weights:
        yield "        resourceWeights:", "What a core, a byte or a device counts; 1 where it is not listed."
    for resource, weight in sorted(stated.resource_weights.items()):
        yield f"        - name: {resource}", ""
        yield f'          weight: "{weight.nano / 10**9:g}"', ""
