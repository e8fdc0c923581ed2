"""The software that a cluster file states: whether it is known and needed, and what its version decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from gangplan.model.job import Platform
from gangplan.model.support import (
    JOBSET,
    KUBERNETES,
    KUEUE,
    LEAST_OPENSHIFT,
    NVIDIA_GPU,
    OPENSHIFT,
    TOOLS,
    TRAINER,
    minor_key,
    work_together,
)
from gangplan.model.version import parse_version
from gangplan.records import dataclass
from gangplan.resolve.platform import resolve_platform
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


def inventory(cluster: ClusterFile) -> list[InstalledComponent]:
    """Return the components of a cluster in the order of its file.

    Components that no run needs are left out unless stated.
    """
    spec, platform = cluster.spec, resolve_platform(cluster)
    return [*_core(spec, platform), *_openshift(spec, platform), *_tools(spec), *_gpu_operator(spec)]


def _core(spec: Cluster, platform: Platform) -> Iterator[InstalledComponent]:
    versions = spec.versions
    kubernetes = platform.kubernetes.line
    yield InstalledComponent(
        "kubernetes",
        "Kubernetes",
        versions.kubernetes,
        _known(kubernetes, KUBERNETES),
        (f"schemas and pod security rules of {kubernetes}",),
    )
    if versions.trainer:
        yield from _trainer(versions.trainer, spec, platform)
    yield _kueue(spec, platform)


def _trainer(stated: str, spec: Cluster, platform: Platform) -> Iterator[InstalledComponent]:
    trainer = platform.trainer.line
    yield InstalledComponent(
        "trainer", "Trainer", stated, _known(trainer, TRAINER), tuple(_trainer_facts(trainer))
    )
    pinned = TRAINER[trainer].jobset.line if trainer in TRAINER else ""
    jobset = platform.jobset.line
    yield InstalledComponent(
        "jobset",
        "JobSet",
        spec.versions.jobset or "",
        _known(jobset, JOBSET) if jobset == pinned or jobset not in JOBSET else "untried",
        (
            "template of a runtime, names of pods",
            f"Trainer {trainer} brings {pinned or 'one that is not known'}",
        ),
    )


def _trainer_facts(line: str) -> Iterator[str]:
    facts = TRAINER.get(line)
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


def _kueue(spec: Cluster, platform: Platform) -> InstalledComponent:
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
    facts = KUEUE.get(line)
    if facts is None:
        return InstalledComponent("kueue", "Kueue", stated, "no", ())
    is_pair = not platform.has_trainer or (trainer in TRAINER and work_together(trainer, line))
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


def _openshift(spec: Cluster, platform: Platform) -> Iterator[InstalledComponent]:
    if platform.openshift is None:
        return
    line = platform.openshift.line
    is_known = line in OPENSHIFT and OPENSHIFT[line] == platform.kubernetes.line
    decides: tuple[str, ...] = (
        f"Kubernetes {OPENSHIFT.get(line, 'of an unknown line')}",
        "nonroot-v2, DNS in openshift-dns",
    )
    if minor_key(line) < minor_key(LEAST_OPENSHIFT):
        decides = (f"{LEAST_OPENSHIFT} or later is needed, which is Kubernetes {OPENSHIFT[LEAST_OPENSHIFT]}",)
    yield InstalledComponent(
        "openshift", "OpenShift", spec.versions.openshift or "", "yes" if is_known else "no", decides
    )


def _tools(spec: Cluster) -> Iterator[InstalledComponent]:
    versions = spec.versions
    stated = {"mpiOperator": versions.mpi_operator, "argocd": versions.argocd, "flux": versions.flux}
    for key, text in stated.items():
        if text:
            tool, line = TOOLS[key], minor_key(parse_version(text).line)
            is_known = minor_key(tool.first) <= line <= minor_key(tool.last)
            lines = tool.first if tool.first == tool.last else f"{tool.first} to {tool.last}"
            yield InstalledComponent(
                key, tool.name, text, "yes" if is_known else "untried", (f"made for {lines}",)
            )
    if versions.external_secrets:
        what = ("API version of ExternalSecrets",)
        yield InstalledComponent(
            "externalSecrets", "External Secrets", versions.external_secrets, "yes", what
        )


def _gpu_operator(spec: Cluster) -> Iterator[InstalledComponent]:
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


def _known(line: str, known: Iterable[str]) -> State:
    return "yes" if line in set(known) else "no"
