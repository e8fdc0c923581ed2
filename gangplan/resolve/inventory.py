"""The software that a cluster file states: whether it is known and needed, and what its version decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from gangplan.model.job import Platform
from gangplan.model.support import (
    JOBSET_LINES,
    KUBERNETES_LINES,
    KUEUE_LINES,
    LEAST_OPENSHIFT,
    NVIDIA_GPU,
    OPENSHIFT_LINES,
    SUPPORTED_TOOLS,
    TRAINER_LINES,
    can_work_together,
    parse_line_key,
)
from gangplan.model.version import parse_version
from gangplan.records import dataclass
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.spec.cluster import Cluster
from gangplan.workspace import ClusterFile

# `untried`: it may work, but was never tested; `unused`: it is installed, and runs bypass it.
State = Literal["yes", "no", "missing", "untried", "unused", "-"]


@dataclass(frozen=True, slots=True)
class InstalledComponent:
    """A component of the inventory. `stated` is empty if the file does not state a version."""

    key: str
    name: str
    stated: str
    state: State
    decides: tuple[str, ...]


def resolve_cluster_components(cluster: ClusterFile) -> list[InstalledComponent]:
    """Return the components of a cluster in the order of its file.

    Components that no run needs are left out unless stated.
    """
    spec, platform = cluster.spec, resolve_platform_of_cluster_file(cluster)
    return [
        *_resolve_components_every_cluster_needs(spec, platform),
        *_resolve_openshift_component(spec, platform),
        *_resolve_tool_components(spec),
        *_resolve_gpu_operator_component(spec),
    ]


def _resolve_components_every_cluster_needs(
    spec: Cluster, platform: Platform
) -> Iterator[InstalledComponent]:
    versions = spec.versions
    kubernetes = platform.kubernetes.line
    yield InstalledComponent(
        "kubernetes",
        "Kubernetes",
        versions.kubernetes,
        _judge_version_support(kubernetes, KUBERNETES_LINES),
        (f"schemas and pod security rules of {kubernetes}",),
    )
    if versions.trainer:
        yield from _resolve_trainer_components(versions.trainer, spec, platform)
    yield _resolve_kueue_component(spec, platform)


def _resolve_trainer_components(
    stated: str, spec: Cluster, platform: Platform
) -> Iterator[InstalledComponent]:
    trainer = platform.trainer.line
    yield InstalledComponent(
        "trainer",
        "Trainer",
        stated,
        _judge_version_support(trainer, TRAINER_LINES),
        tuple(_describe_trainer_version_line(trainer)),
    )
    pinned = TRAINER_LINES[trainer].jobset.line if trainer in TRAINER_LINES else ""
    jobset = platform.jobset.line
    yield InstalledComponent(
        "jobset",
        "JobSet",
        spec.versions.jobset or "",
        _judge_version_support(jobset, JOBSET_LINES)
        if jobset == pinned or jobset not in JOBSET_LINES
        else "untried",
        (
            "template of a runtime, names of pods",
            f"Trainer {trainer} brings {pinned or 'one that is not known'}",
        ),
    )


def _describe_trainer_version_line(line: str) -> Iterator[str]:
    facts = TRAINER_LINES.get(line)
    if facts is None:
        return
    yield f"a queue starts runs through {facts.override_field}"
    yield (
        "the deadline is on the TrainJob"
        if facts.has_run_deadline
        else "the deadline is on the launcher's Job"
    )
    if facts.is_run_immutable:
        yield "a run cannot be edited"


def _resolve_kueue_component(spec: Cluster, platform: Platform) -> InstalledComponent:
    stated = spec.versions.kueue or ""
    if spec.gang != "kueue":
        return InstalledComponent(
            "kueue", "Kueue", stated, "unused" if stated else "-", (f"nothing: gang is {spec.gang}",)
        )
    if platform.kueue is None:
        return InstalledComponent(
            "kueue", "Kueue", "", "missing", ("gang is kueue: queues and quotas, and that runs start whole",)
        )
    line, trainer = platform.kueue.line, platform.trainer.line
    facts = KUEUE_LINES.get(line)
    if facts is None:
        return InstalledComponent("kueue", "Kueue", stated, "no", ())
    is_pair = not platform.has_trainer or (trainer in TRAINER_LINES and can_work_together(trainer, line))
    started = f", started through {facts.override_field}" if platform.has_trainer else ""
    decides = (
        f"{facts.api_version}{started}",
        f"a run has at most {facts.most_pod_sets} kinds of pods",
        f"waitForPodsReady is {'on' if facts.waits_for_pods else 'off'} unless configured",
        "a flavor with topology cannot change"
        if facts.is_flavor_frozen
        else "of a flavor with topology only taints can change",
    )
    return InstalledComponent("kueue", "Kueue", stated, "yes" if is_pair else "no", decides)


def _resolve_openshift_component(spec: Cluster, platform: Platform) -> Iterator[InstalledComponent]:
    if platform.openshift is None:
        return
    line = platform.openshift.line
    is_known = line in OPENSHIFT_LINES and OPENSHIFT_LINES[line] == platform.kubernetes.line
    decides: tuple[str, ...] = (
        f"Kubernetes {OPENSHIFT_LINES.get(line, 'of an unknown line')}",
        "nonroot-v2, DNS in openshift-dns",
    )
    if parse_line_key(line) < parse_line_key(LEAST_OPENSHIFT):
        decides = (
            f"{LEAST_OPENSHIFT} or later is needed, which is Kubernetes {OPENSHIFT_LINES[LEAST_OPENSHIFT]}",
        )
    yield InstalledComponent(
        "openshift", "OpenShift", spec.versions.openshift or "", "yes" if is_known else "no", decides
    )


def _resolve_tool_components(spec: Cluster) -> Iterator[InstalledComponent]:
    versions = spec.versions
    stated = {"mpiOperator": versions.mpi_operator, "argocd": versions.argocd, "flux": versions.flux}
    for key, text in stated.items():
        if text:
            tool, line = SUPPORTED_TOOLS[key], parse_line_key(parse_version(text).line)
            is_known = parse_line_key(tool.first) <= line <= parse_line_key(tool.last)
            lines = tool.first if tool.first == tool.last else f"{tool.first} to {tool.last}"
            yield InstalledComponent(
                key, tool.name, text, "yes" if is_known else "untried", (f"made for {lines}",)
            )
    if versions.external_secrets:
        what = ("API version of ExternalSecrets",)
        yield InstalledComponent(
            "externalSecrets", "External Secrets", versions.external_secrets, "yes", what
        )


def _resolve_gpu_operator_component(spec: Cluster) -> Iterator[InstalledComponent]:
    pools = [name for name, pool in spec.node_pools.items() if pool.gpu and pool.gpu.resource == NVIDIA_GPU]
    stated = spec.versions.gpu_operator or ""
    if pools or stated:
        what = (
            f"{NVIDIA_GPU} on pool{'s' if len(pools) > 1 else ''} {', '.join(pools)}"
            if pools
            else "no pool needs it"
        )
        yield InstalledComponent(
            "gpuOperator", "GPU operator", stated, "yes" if stated else "missing", (what,)
        )


def _judge_version_support(line: str, known: Iterable[str]) -> State:
    return "yes" if line in set(known) else "no"
