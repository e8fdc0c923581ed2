"""Compare a snapshot with the cluster's file; findings are at the lines to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gangplan.findings import Finding
from gangplan.live.snapshot import Snapshot
from gangplan.model.amounts import format_for_spec, format_with_unit
from gangplan.model.backend import TRAINJOB
from gangplan.model.quantity import Quantity, QuantityError, parse_quantity
from gangplan.model.support import KUEUE_LINES, TRAINER_LINES
from gangplan.model.version import parse_version
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.rules.live import (
    OBSERVED_CLASS,
    OBSERVED_KIND,
    OBSERVED_NODES,
    OBSERVED_TOPOLOGY,
    OBSERVED_VERSION,
)
from gangplan.rules.model import ERROR, NOTE, Rule, Severity
from gangplan.spec.nodes import NodePool, find_spec_field_of_resource
from gangplan.workspace import ClusterFile

# Component names in `versions` of a cluster file, and their usual names.
_NAMES = {
    "kubernetes": "Kubernetes",
    "trainer": "Trainer",
    "jobset": "JobSet",
    "kueue": "Kueue",
    "mpiOperator": "MPI operator",
    "argocd": "Argo CD",
    "gpuOperator": "GPU operator",
    "externalSecrets": "External Secrets Operator",
}
# The CRDs of gang schedulers other than Kueue (volcano v1.9 and later; scheduler-plugins, coscheduling).
_GANGS = {"volcano": "podgroups.scheduling.volcano.sh", "coscheduling": "podgroups.scheduling.x-k8s.io"}
_DECISIVE = ("trainer", "jobset", "kueue")
_JOBSET_API = "v1alpha2"  # jobset v0.10.1 to v0.12.0, api/jobset/v1alpha2
_TRAINER_API = "v1alpha1"  # trainer v2.1.0 to v2.3.0, pkg/apis/trainer/v1alpha1


class _Reporter:
    """A builder of findings about one cluster's file."""

    def __init__(self, file: ClusterFile, snapshot: Snapshot) -> None:
        self.file, self.snapshot = file, snapshot

    def __call__(
        self,
        rule: Rule,
        path: tuple[str | int, ...],
        message: str,
        help: str,
        level: Severity | None = None,
        key: bool = False,
    ) -> Finding:
        where = self.file.document.where(path, key=key)
        when = f" (seen {self.snapshot.observed})"
        return Finding(rule, where, f"{message}{when}", help, clusters=(self.file.name,), level=level)


def compare_snapshot_with_cluster_file(file: ClusterFile, snapshot: Snapshot) -> list[Finding]:
    """Return where a cluster's snapshot differs from its file. What could not be seen is left out."""
    report = _Reporter(file, snapshot)
    found = [*_check_live_versions(report), *_check_live_served_kinds(report)]
    if snapshot.saw("nodes"):
        found += [*_check_live_node_pools(report), *_check_live_topology_labels(report)]
    return [*found, *_check_live_classes(report)]


def _check_live_versions(report: _Reporter) -> Iterator[Finding]:
    stated: dict[str, str] = report.file.spec.versions.model_dump(by_alias=True, exclude_none=True)
    platform = resolve_platform_of_cluster_file(report.file)
    implied = {**stated, "jobset": str(platform.jobset)}
    for name, title in _NAMES.items():
        seen, said = report.snapshot.versions.get(name), implied.get(name)
        if not seen or (said is None and name != "kueue"):
            continue
        path = ("versions", name) if name in stated else ("versions",)
        help = f'Write {name}: "{seen}" in versions, or install the stated one.'
        if said is None:
            message = f"{title} {seen} is installed, and the file states none"
            yield report(OBSERVED_VERSION, path, message, help, NOTE, key=True)
            continue
        one, other = parse_version(seen), parse_version(said)
        short = said.removeprefix("v")
        if one.line != other.line:
            level = ERROR if name in _DECISIVE else None
            message = f"the cluster has {title} {seen}, and the file states {short}"
            if name not in stated:
                message = (
                    f"the cluster has {title} {seen}, and Trainer {stated['trainer']} comes with {short}"
                )
            yield report(OBSERVED_VERSION, path, message, help, level)
        elif one != other and short.count(".") == 2 and seen.count(".") == 2:
            message = f"the cluster has {title} {seen}, and the file states {short}"
            yield report(OBSERVED_VERSION, path, message, help, NOTE)


def _check_live_served_kinds(report: _Reporter) -> Iterator[Finding]:
    """Yield findings about kinds, versions and fields that runs need."""
    platform = resolve_platform_of_cluster_file(report.file)
    needed = [
        ("trainer", TRAINJOB.resource, _TRAINER_API),
        ("trainer", f"trainingruntimes.{TRAINJOB.group}", _TRAINER_API),
        ("trainer", "jobsets.jobset.x-k8s.io", _JOBSET_API),
    ]
    line = KUEUE_LINES.get(platform.kueue.line) if platform.kueue else None
    if line is not None:
        version = line.api_version.rpartition("/")[2]
        needed += [("kueue", f"{name}.kueue.x-k8s.io", version) for name in ("clusterqueues", "workloads")]
    for part, name, version in needed:
        served = report.snapshot.crds.get(name)
        if served is None:
            message, help = f"the cluster does not serve {name}", f"Install {_NAMES[part]} first."
        elif version not in served:
            message = f"the cluster serves {name} as {', '.join(served)}, and runs need {version}"
            help = f"Install the {_NAMES[part]} that the file states, or correct its version."
        else:
            continue
        yield report(OBSERVED_KIND, ("versions", part), message, help)
    gang = _GANGS.get(report.file.spec.gang)
    if gang is not None and gang not in report.snapshot.crds:
        message = f"the cluster does not serve {gang}, which gang: {report.file.spec.gang} needs"
        yield report(OBSERVED_KIND, ("gang",), message, "Install it first, or correct gang.")
    yield from _check_live_trainjob_fields(report)


def _check_live_trainjob_fields(report: _Reporter) -> Iterator[Finding]:
    """Yield a finding if the TrainJob's fields differ between the stated Trainer line and the cluster's."""
    line = TRAINER_LINES.get(resolve_platform_of_cluster_file(report.file).trainer.line)
    fields = report.snapshot.fields.get(TRAINJOB.kind)
    if line is None or not fields:
        return
    lines = [
        name
        for name, one in TRAINER_LINES.items()
        if one.override_field in fields and one.has_run_deadline == ("activeDeadlineSeconds" in fields)
    ]
    if line.override_field in fields and line.has_run_deadline == ("activeDeadlineSeconds" in fields):
        return
    stated = report.file.spec.versions.trainer
    message = (
        f"the TrainJob of the cluster has other fields than that of Trainer {stated}:"
        f" they are those of {' or '.join(lines) or 'no version that gangplan knows'}"
    )
    yield report(OBSERVED_KIND, ("versions", "trainer"), message, "Write the version that is installed.")


def _check_live_node_pools(report: _Reporter) -> Iterator[Finding]:
    seen = {str(one["pool"]): one for one in report.snapshot.nodes}
    for name, pool in report.file.spec.node_pools.items():
        path = ("nodePools", name)
        body = seen.get(name)
        if body is None:
            if pool.count:
                labels = ", ".join(f"{key}={value}" for key, value in sorted(pool.labels.items()))
                message = f"no node belongs to pool '{name}'{f' ({labels})' if labels else ''}"
                help = "Correct its labels and GPUs, or write count: 0."
                yield report(OBSERVED_NODES, path, message, help, key=True)
            continue
        yield from _check_live_pool_node_count(report, name, pool, body)
        yield from _check_live_pool_resources(report, name, pool, body["allocatable"])
        yield from _check_live_pool_taints(report, name, pool, body)
    if "" in seen:
        count = seen[""]["count"]
        message = (
            f"{count} node{'' if count == 1 else 's'} {'belongs' if count == 1 else 'belong'} to no pool"
        )
        yield report(OBSERVED_NODES, ("nodePools",), message, "Describe them as a pool.", NOTE, key=True)


def _check_live_pool_node_count(
    report: _Reporter, name: str, pool: NodePool, body: Mapping[str, Any]
) -> Iterator[Finding]:
    path, count = ("nodePools", name, "count"), body["count"]
    most = pool.autoscale.most if pool.autoscale else pool.count
    if count > most or (count < pool.count and not pool.autoscale):
        stated = f"at most {most}" if pool.autoscale else str(pool.count)
        message = (
            f"pool '{name}' has {count} {'node' if count == 1 else 'nodes'}, and the file states {stated}"
        )
        yield report(OBSERVED_NODES, path, message, f"Write count: {count}, or find out where they are.")
    if body["ready"] < count:
        away = count - body["ready"]
        message = (
            f"{away} of the {count} nodes of pool '{name}' {'takes' if away == 1 else 'take'} no new pods"
        )
        help = "Look at them with kubectl get nodes: they are cordoned or not ready."
        yield report(OBSERVED_NODES, path, message, help, NOTE)


def _check_live_pool_resources(
    report: _Reporter, name: str, pool: NodePool, offered: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    wanted: list[tuple[tuple[str | int, ...], str, Quantity]] = [
        (("cpu",), "cpu", pool.cpu),
        (("memory",), "memory", pool.memory),
    ]
    # With a device class, the driver reports devices in ResourceSlices, not in nodes.
    if pool.gpu and pool.gpu.device_class is None:
        wanted.append((("gpu", "count"), pool.gpu.resource, Quantity.of(pool.gpu.count)))
    for index, rail in enumerate(pool.rails):
        own = ("rdma", index, "count") if isinstance(pool.rdma, tuple) else ("rdma", "count")
        if rail.device_class is None:
            wanted.append((own, rail.resource, Quantity.of(rail.count)))
    wanted += [
        (find_spec_field_of_resource(resource), resource, amount) for resource, amount in pool.others.items()
    ]
    for place, resource, stated in wanted:
        least = _parse_quantity_or_zero(offered.get(resource, {}).get("least", "0"))
        is_device = resource not in ("cpu", "memory", "ephemeral-storage")
        if least < stated or (is_device and least != stated):
            message = (
                f"a node of pool '{name}' has {format_with_unit(resource, least)} to give, and the file states"
                f" {format_with_unit(resource, stated)}"
            )
            help = f"Write {place[-1]}: {format_for_spec(resource, least)}, or correct the nodes."
            yield report(OBSERVED_NODES, ("nodePools", name, *place), message, help)


def _parse_quantity_or_zero(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError:
        return Quantity(0)


def _check_live_pool_taints(
    report: _Reporter, name: str, pool: NodePool, body: Mapping[str, Any]
) -> Iterator[Finding]:
    stated = {(one.key, one.effect) for one in pool.taints}
    path: tuple[str | int, ...] = ("nodePools", name, "taints") if pool.taints else ("nodePools", name)
    seen = {(one["key"], one["effect"]): one for one in body["taints"]}
    for key, effect in sorted(seen.keys() - stated):
        one = seen[key, effect]
        is_hard = effect != "PreferNoSchedule"
        message = (
            f"{one['nodes']} of the {body['count']} nodes of pool '{name}' have the taint {key}"
            f"={one['value']}:{effect}, which the file does not state"
        )
        value = f", value: {one['value']}" if one["value"] else ""
        help = f"Add {{key: {key}{value}, effect: {effect}}} to its taints: pods must tolerate it."
        yield report(OBSERVED_NODES, path, message, help, None if is_hard else NOTE, key=True)
    for key, effect in sorted(stated - seen.keys()):
        message = f"no node of pool '{name}' has the taint {key}:{effect}, which the file states"
        help = "Remove it from the file, or taint the nodes: others may run there."
        yield report(OBSERVED_NODES, path, message, help, NOTE, key=True)


def _check_live_topology_labels(report: _Reporter) -> Iterator[Finding]:
    spec = report.file.spec
    placed = {name for name, pool in spec.node_pools.items() if pool.topology} or {*spec.node_pools}
    count = sum(one["count"] for one in report.snapshot.nodes if one["pool"] in placed)
    for index, level in enumerate(spec.topology):
        body = report.snapshot.topology.get(level.label)
        if body is None:
            continue
        if body["nodes"] < count:
            message = f"{count - body['nodes']} of {count} nodes lack the label {level.label} of level '{level.name}'"
            help = f"Label them: kubectl label node NAME {level.label}=VALUE, or correct the label here."
            yield report(OBSERVED_TOPOLOGY, ("topology", index, "label"), message, help)
        if level.nodes is not None and body["largest"] > level.nodes:
            message = f"a domain of level '{level.name}' has {body['largest']} nodes, and the file states {level.nodes}"
            help = f"Write nodes: {body['largest']}."
            yield report(OBSERVED_TOPOLOGY, ("topology", index, "nodes"), message, help, NOTE)


def _check_live_classes(report: _Reporter) -> Iterator[Finding]:
    spec, snapshot = report.file.spec, report.snapshot
    if snapshot.saw("storageclasses.storage.k8s.io"):
        for name, one in spec.storage_classes.items():
            seen = snapshot.storage_classes.get(name)
            if seen is None:
                message = f"the cluster has no storage class '{name}'"
                help = _describe_class_choices(sorted(snapshot.storage_classes))
                yield report(OBSERVED_CLASS, ("storageClasses", name), message, help, key=True)
            elif bool(seen.get("default")) != one.default:
                is_it = "is" if seen.get("default") else "is not"
                message = f"storage class '{name}' {is_it} the default of the cluster"
                help = f"Write default: {'true' if seen.get('default') else 'false'}."
                yield report(OBSERVED_CLASS, ("storageClasses", name), message, help, key=True)
    if snapshot.saw("runtimeclasses.node.k8s.io"):
        for index, name in enumerate(spec.runtime_classes or ()):
            if name not in snapshot.runtime_classes:
                message = f"the cluster has no RuntimeClass '{name}'"
                help = _describe_class_choices(snapshot.runtime_classes)
                yield report(OBSERVED_CLASS, ("runtimeClasses", index), message, help)


def _describe_class_choices(names: Sequence[str]) -> str:
    if not names:
        return "Create it, or remove it here: the cluster has none."
    return f"Create it, or write one that the cluster has: {', '.join(names)}."
