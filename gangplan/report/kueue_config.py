"""The configuration that Kueue's manager needs on a cluster, as YAML in which every line says why it is
there.

Read at the tags v0.15.2, v0.18.2 and v0.19.2: apis/config/v1beta2 (fields, defaults),
pkg/config/validation.go, pkg/controller/jobframework. The manager decodes strictly: a key that it does not
know stops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gangplan.generators.common import LABEL_PREFIX
from gangplan.model.backend import TRAINJOB
from gangplan.model.quantity import Quantity
from gangplan.model.support import look_up_kueue_line
from gangplan.model.version import ToolVersion
from gangplan.report.kueue_operator import list_settings_without_field, render_kueue_operator_config
from gangplan.spec.admission import ManagedResources, UsageSharing
from gangplan.spec.manager import map_device_classes_to_resources
from gangplan.workspace import ClusterFile

# Lines of YAML, each with the comment that explains it.
Lines = Iterator[tuple[str, str]]

API_VERSION = "config.kueue.x-k8s.io/v1beta2"
TEAM_LABEL = f"{LABEL_PREFIX}team"


def render_kueue_config(cluster: ClusterFile, kueue: ToolVersion) -> str:
    """Return the configuration of one cluster with a Kueue that gangplan knows."""
    spec = cluster.spec
    first = f"# Kueue {kueue} on {cluster.name}, from {cluster.document.file}."
    if spec.versions.openshift:
        return _render_for_operator(cluster, kueue, first)
    out = [
        first,
        "# Put these keys into controller_manager_config.yaml of ConfigMap kueue-manager-config (namespace",
        "# kueue-system), in addition to those already there, and restart the manager. It fails on a key that it does not know.",
        "# Fields and defaults as of Kueue 0.15.2, 0.18.2 and 0.19.2.",
    ]
    parts = [
        _render_config_header(),
        _render_kueue_integrations(bool(spec.versions.trainer), bool(spec.versions.mpi_operator)),
    ]
    parts.append(_render_wait_for_pods_ready(cluster, kueue))
    if spec.fair_sharing:
        parts.append(_render_fair_sharing())
    if spec.kueue.admission_fair_sharing is not None:
        parts.append(_render_admission_fair_sharing(spec.kueue.admission_fair_sharing, cluster.document.file))
    if any(team.concurrent_admission for team in spec.teams.values()):
        parts.append(_render_feature_gates())
    classes = map_device_classes_to_resources(spec) if look_up_kueue_line(kueue.line).counts_claims else {}
    if spec.kueue.resources is not None or classes:
        parts.append(_render_kueue_resources(spec.kueue.resources, classes, cluster.document.file))
    if spec.monitoring is not None:
        parts.append(_render_kueue_metrics())
    parts.append(_render_managed_namespaces())
    return _join_commented_lines(out, parts)


def _render_for_operator(cluster: ClusterFile, kueue: ToolVersion, first: str) -> str:
    """Return the object that configures the Red Hat build of Kueue."""
    out = [
        first,
        "# On OpenShift, the operator of the Red Hat build of Kueue writes the manager's configuration from this object and",
        "# restarts it; what somebody writes into its ConfigMap is lost. Apply this in place of the object of that name.",
    ]
    if missing := list_settings_without_field(cluster):
        out.append(f"# The operator has no field for {', '.join(missing)} of {cluster.document.file}.")
    return _join_commented_lines(out, [render_kueue_operator_config(cluster, kueue)])


def _join_commented_lines(out: list[str], parts: Iterable[Lines]) -> str:
    """Return lines of YAML below `out`, each below the comment that explains it."""
    for part in parts:
        for line, why in part:
            indent = line[: len(line) - len(line.lstrip())].replace("- ", "  ")
            out += [*(f"{indent}# {sentence}" for sentence in why.split("\n") if sentence), line]
    return "\n".join(out) + "\n"


def _render_config_header() -> Lines:
    yield f"apiVersion: {API_VERSION}", "Served since Kueue 0.15."
    yield "kind: Configuration", ""


def _render_kueue_integrations(has_trainer: bool, has_mpi_operator: bool) -> Lines:
    yield (
        "integrations:",
        "What waits in queues. A list replaces the default, so whatever else the cluster queues belongs here too.",
    )
    yield "  frameworks:", ""
    yield '  - "batch/job"', "The only one where the list is empty."
    alone = "Without it they start at once, past every queue and quota"
    if has_trainer:
        yield (
            '  - "jobset.x-k8s.io/jobset"',
            "What a TrainJob becomes; those of a queued run are not queued again.",
        )
        yield f'  - "{TRAINJOB.group}/trainjob"', f"The runs. {alone} (since Kueue 0.14)."
    if has_mpi_operator:
        why = "The cluster has the MPI operator." if has_trainer else f"The runs. {alone}."
        yield '  - "kubeflow.org/mpijob"', why


def _render_wait_for_pods_ready(cluster: ClusterFile, kueue: ToolVersion) -> Lines:
    timeout = go_duration(cluster.spec.pods_ready_timeout)
    is_default = look_up_kueue_line(kueue.line).waits_for_pods
    state = (
        f"Kueue {kueue.line}: on by default, with 30m; this states the cluster's own time."
        if is_default
        else f"Kueue {kueue.line}: off unless this block is there."
    )
    yield (
        "waitForPodsReady:",
        f"A run whose pods do not all become ready gives its quota back instead of holding it.\n{state}",
    )
    yield f"  timeout: {timeout}", f"podsReadyTimeout of {cluster.document.file}."
    recovery = (
        "The default, stated (it is the timeout)."
        if look_up_kueue_line(kueue.line).has_recovery_timeout
        else "As Kueue 0.18 has it by default; at 0.15 none is set, and a run that lost a pod waits without end."
    )
    yield f"  recoveryTimeout: {timeout}", f"How long a lost pod may be away.\n{recovery}"
    yield (
        "  blockAdmission: false",
        "The default of v1beta2; true (the default of v1beta1) starts one run of the whole cluster at a time.",
    )
    yield "  requeuingStrategy:", ""
    yield "    timestamp: Eviction", "The default: a run that did not start goes to the end of its queue."
    yield "    backoffBaseSeconds: 60", "The default: it waits a minute, then two, then four,"
    yield (
        "    backoffMaxSeconds: 3600",
        "the default: an hour at most.\nbackoffLimitCount is left out: a run past it is switched off until somebody switches it on again.",
    )


def _render_fair_sharing() -> Lines:
    yield (
        "fairSharing:",
        "The block alone switches it on; the weights of teams and cohorts count only with it.",
    )
    yield (
        "  preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]",
        "Required. Take back while the taker's share stays the smaller one; else while it was smaller at the start.",
    )


def _render_admission_fair_sharing(stated: UsageSharing, file: str) -> Lines:
    yield (
        "admissionFairSharing:",
        f"The block alone switches it on, for queues whose admissionMode says so; from kueue of {file}.",
    )
    yield (
        f"  usageHalfLifeTime: {go_duration(stated.usage_half_life_time)}",
        "After this time past use counts half.",
    )
    yield f"  usageSamplingInterval: {go_duration(stated.usage_sampling_interval)}", ""
    if stated.resource_weights:
        yield "  resourceWeights:", "What a core, a byte or a device counts; 1 where it is not listed."
        for resource, weight in sorted(stated.resource_weights.items()):
            yield f"    {resource}: {_format_weight_number(weight)}", ""


def _format_weight_number(weight: Quantity) -> str:
    """Return a weight as a YAML number: the manager reads a float."""
    return f"{weight.nano / 10**9:g}"


def _render_kueue_resources(stated: ManagedResources | None, classes: Mapping[str, str], file: str) -> Lines:
    why = f"How quota counts: kueue.resources of {file}, by which gangplan counts quotas and runs."
    yield "resources:", why if stated is not None else ""
    if classes:
        yield (
            "  deviceClassMappings:",
            f"rdma with deviceClass of {file}: the resources that quotas count claims of each class under.\nWithout its class here, no run with such a claim is admitted.",
        )
    for device_class, resource in sorted(classes.items()):
        yield f"  - name: {resource}", ""
        yield f"    deviceClassNames: [{device_class}]", ""
    if stated is not None:
        yield from _render_counted_resources(stated)


def _render_counted_resources(stated: ManagedResources) -> Lines:
    if stated.exclude_resource_prefixes:
        yield "  excludeResourcePrefixes:", ""
        yield from ((f"  - {prefix}", "") for prefix in stated.exclude_resource_prefixes)
    if stated.transformations:
        yield "  transformations:", ""
    for resource, rule in sorted(stated.transformations.items()):
        yield f"  - input: {resource}", ""
        yield f"    strategy: {rule.strategy}", ""
        if rule.outputs:
            yield "    outputs:", ""
            yield from (
                (f'      {name}: "{factor.canonical()}"', "") for name, factor in sorted(rule.outputs.items())
            )


def _render_feature_gates() -> Lines:
    yield (
        "featureGates:",
        "Kueue refuses this list next to the flag --feature-gates: if the manager has that, write it there.",
    )
    yield (
        "  ConcurrentAdmission: true",
        "Alpha in 0.18 and 0.19, off by default: concurrentAdmission needs it.",
    )


def _render_kueue_metrics() -> Lines:
    yield "metrics:", "Quota and use per queue as series, which alerts and dashboards read. Off by default."
    yield "  enableClusterQueueResources: true", ""


def _render_managed_namespaces() -> Lines:
    yield (
        "manageJobsWithoutQueueName: true",
        "In teams' namespaces nothing starts outside a queue: it would take nodes that quotas promise to runs.\nThe default is false.",
    )
    yield (
        "managedJobsNamespaceSelector:",
        "gangplan's namespaces and no others. Jobs with a queue in any other namespace are suspended and\nnever looked at again, so add a label here before queues go elsewhere.",
    )
    yield "  matchExpressions:", ""
    yield f"  - key: {TEAM_LABEL}", "The label that every namespace in tenants/ carries."
    yield "    operator: Exists", ""


def go_duration(seconds: int) -> str:
    """Return a time as Go reads it, which knows no days: `1h30m`."""
    parts = ((seconds // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
