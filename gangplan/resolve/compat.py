"""Checks that versions in a cluster file are known and work together, by facts in `model/support.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gangplan.findings import Finding
from gangplan.model.job import Platform
from gangplan.model.support import (
    JOBSET_LINES,
    KUBERNETES_LINES,
    KUBERNETES_OF_OPENSHIFT,
    KUEUE_LINES,
    LEAST_OPENSHIFT,
    NO_OPENSHIFT_SDN,
    NVIDIA_GPU,
    OPENSHIFT_LINES,
    SUPPORTED_TOOLS,
    TRAINER_LINES,
    can_work_together,
    find_nearest_version_line,
    list_kueue_lines,
    list_trainer_lines,
    parse_line_key,
)
from gangplan.model.version import parse_version
from gangplan.records import dataclass
from gangplan.rules.clusters import (
    CNI_DEPRECATED,
    CNI_REMOVED,
    GANG_NONE_IN_PROD,
    GANG_WITHOUT_KUEUE,
    GPU_OPERATOR_UNSTATED,
    JOBSET_PAIR,
    KUEUE_UNUSED,
    OPENSHIFT_KUBERNETES,
    VERSION_PAIR,
    VERSION_UNSUPPORTED,
    VERSION_UNTRIED,
)
from gangplan.rules.platform import MONITORING_LABEL_ENFORCED
from gangplan.workspace import ClusterFile


@dataclass(frozen=True, slots=True)
class _Asked:
    """A cluster: its file, and the versions that follow from it."""

    cluster: ClusterFile
    platform: Platform

    @property
    def openshift(self) -> str:
        """The line of OpenShift; empty without it."""
        return self.platform.openshift.line if self.platform.openshift else ""

    @property
    def is_openshift_old(self) -> bool:
        """Whether its Kubernetes is older than the first that gangplan knows."""
        return bool(self.openshift) and parse_line_key(self.openshift) < parse_line_key(LEAST_OPENSHIFT)


def check_versions(cluster: ClusterFile, platform: Platform) -> list[Finding]:
    """Check for versions that gangplan does not know, and for pairs that do not work together."""
    asked = _Asked(cluster, platform)
    return [finding for check in CHECKS for finding in check(asked)]


def either(words: Iterable[str]) -> str:
    """Join words as `a`, `a or b`, `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _check_component_versions(asked: _Asked) -> Iterable[Finding]:
    """Check that each component's line is in its table."""
    platform = asked.platform
    if not asked.is_openshift_old or KUBERNETES_OF_OPENSHIFT.get(asked.openshift) != platform.kubernetes.line:
        yield from _check_version_line(
            asked, "kubernetes", "Kubernetes", platform.kubernetes.line, KUBERNETES_LINES
        )
    if platform.has_trainer:
        yield from _check_version_line(asked, "trainer", "Trainer", platform.trainer.line, TRAINER_LINES)
    if asked.cluster.spec.versions.jobset:
        yield from _check_version_line(asked, "jobset", "JobSet", platform.jobset.line, JOBSET_LINES)
    if platform.kueue is not None:
        lines = list_kueue_lines(platform.trainer.line) or KUEUE_LINES
        yield from _check_version_line(asked, "kueue", "Kueue", platform.kueue.line, KUEUE_LINES, lines)
    if asked.openshift and not asked.is_openshift_old:
        yield from _check_version_line(asked, "openshift", "OpenShift", asked.openshift, OPENSHIFT_LINES)


def _check_version_line(
    asked: _Asked, key: str, name: str, line: str, known: Iterable[str], offered: Iterable[str] = ()
) -> Iterable[Finding]:
    if line in set(known):
        return
    where = asked.cluster.document.where(("versions", key))
    message = f"{name} {line} is not a version that gangplan knows"
    with_trainer = f" with Trainer {asked.platform.trainer.line}" if offered and offered != known else ""
    yield Finding(
        VERSION_UNSUPPORTED, where, message, f"Supported{with_trainer}: {', '.join(offered or known)}."
    )


def _check_kueue_trainer_compatibility(asked: _Asked) -> Iterable[Finding]:
    """Check that Trainer reads what Kueue writes into a TrainJob (kueue#11931, kueue#14722)."""
    platform = asked.platform
    trainer, kueue = platform.trainer.line, platform.kueue.line if platform.kueue else ""
    if trainer not in TRAINER_LINES or kueue not in KUEUE_LINES or can_work_together(trainer, kueue):
        return
    message = (
        f"Kueue {platform.kueue} and Trainer {platform.trainer} do not work together: "
        f"Kueue {kueue} starts a run through {KUEUE_LINES[kueue].override_field}, Trainer {trainer} reads "
        f"{TRAINER_LINES[trainer].override_field}, so runs would be admitted and stay suspended forever"
    )
    help = (
        f"With Trainer {trainer} use Kueue {find_nearest_version_line(kueue, list_kueue_lines(trainer))}; "
        f"with Kueue {kueue} use Trainer {either(list_trainer_lines(kueue))}."
    )
    yield Finding(VERSION_PAIR, asked.cluster.document.where(("versions", "kueue")), message, help)


def _check_jobset_trainer_compatibility(asked: _Asked) -> Iterable[Finding]:
    """Check that JobSet is of the line that Trainer is built for, whose fields Trainer's CRD copies."""
    trainer, jobset = asked.platform.trainer.line, asked.platform.jobset.line
    if (
        trainer not in TRAINER_LINES
        or jobset not in JOBSET_LINES
        or jobset == TRAINER_LINES[trainer].jobset.line
    ):
        return
    yield Finding(
        JOBSET_PAIR,
        asked.cluster.document.where(("versions", "jobset")),
        f"Trainer {trainer} is made for JobSet {TRAINER_LINES[trainer].jobset.line}, not {jobset}",
        "Remove versions.jobset unless another JobSet was installed on purpose.",
    )


def _check_openshift_version(asked: _Asked) -> Iterable[Finding]:
    """Check that OpenShift is new enough, and that its Kubernetes is the one stated."""
    line, document = asked.openshift, asked.cluster.document
    if not line:
        return
    if asked.is_openshift_old:
        inside = KUBERNETES_OF_OPENSHIFT.get(line)
        message = f"OpenShift {line} is too old" + (f": it is Kubernetes {inside}" if inside else "")
        message += f"; gangplan needs Kubernetes {KUBERNETES_LINES[0]}, which is OpenShift {LEAST_OPENSHIFT}, or later"
        help = f"Supported: {', '.join(OPENSHIFT_LINES)}."
        yield Finding(VERSION_UNSUPPORTED, document.where(("versions", "openshift")), message, help)
        return
    stated = asked.platform.kubernetes.line
    right = OPENSHIFT_LINES.get(line, stated)
    if stated == right:
        return
    other = next((name for name, kubernetes in OPENSHIFT_LINES.items() if kubernetes == stated), "")
    yield Finding(
        OPENSHIFT_KUBERNETES,
        document.where(("versions", "kubernetes")),
        f"OpenShift {line} is Kubernetes {right}, not {stated}",
        f'Write kubernetes: "{right}"' + (f', or openshift: "{other}".' if other else "."),
    )


def _check_network_plugin(asked: _Asked) -> Iterable[Finding]:
    if asked.cluster.spec.cni != "openshift-sdn":
        return
    where = asked.cluster.document.where(("cni",))
    if asked.openshift and parse_line_key(asked.openshift) >= parse_line_key(NO_OPENSHIFT_SDN):
        message = (
            f"openshift-sdn does not exist on OpenShift {asked.openshift}: {NO_OPENSHIFT_SDN} removed it"
        )
        yield Finding(CNI_REMOVED, where, message, "Write cni: ovn-kubernetes.")
    else:
        message = f"openshift-sdn is deprecated, and OpenShift {NO_OPENSHIFT_SDN} removes it"
        yield Finding(CNI_DEPRECATED, where, message, "Move the cluster to ovn-kubernetes before upgrading.")


def _check_gang_scheduler_compatibility(asked: _Asked) -> Iterable[Finding]:
    """Check that what starts the pods of a run together is installed, and fits the environment."""
    spec, document = asked.cluster.spec, asked.cluster.document
    if spec.gang == "kueue" and asked.platform.kueue is None:
        yield Finding(
            GANG_WITHOUT_KUEUE,
            document.where(("versions",)),
            "gang is kueue, but versions.kueue is missing",
            "Add versions.kueue, or set gang: none on a dev cluster.",
        )
    if spec.gang == "none" and spec.environment == "prod":
        message = (
            "gang: none lets two runs block each other forever; it is not allowed where environment is prod"
        )
        help = "Use gang: kueue, or environment: dev."
        yield Finding(GANG_NONE_IN_PROD, document.where(("gang",)), message, help)
    if spec.gang != "kueue" and spec.versions.kueue:
        yield Finding(
            KUEUE_UNUSED,
            document.where(("versions", "kueue")),
            f"gang is {spec.gang}: runs bypass Kueue, so no queue and no quota is rendered",
            "Remove versions.kueue, or set gang: kueue.",
        )


def _check_gpu_operator(asked: _Asked) -> Iterable[Finding]:
    """Check that NVIDIA's GPU operator is stated: only NVIDIA's device plugin offers nvidia.com/gpu."""
    pools = asked.cluster.spec.node_pools
    plugged = (
        name
        for name, pool in pools.items()
        if pool.gpu and pool.gpu.resource == NVIDIA_GPU and pool.gpu.device_class is None
    )
    name = next(plugged, None)
    if name is None or asked.cluster.spec.versions.gpu_operator:
        return
    yield Finding(
        GPU_OPERATOR_UNSTATED,
        asked.cluster.document.where(("nodePools", name), key=True),
        f"pool '{name}' offers {NVIDIA_GPU}, but versions.gpuOperator is not stated",
        "Add versions.gpuOperator once NVIDIA's GPU operator is installed.",
    )


def _check_tool_versions(asked: _Asked) -> Iterable[Finding]:
    versions = asked.cluster.spec.versions
    stated = {"mpiOperator": versions.mpi_operator, "argocd": versions.argocd, "flux": versions.flux}
    for key, text in stated.items():
        tool = SUPPORTED_TOOLS[key]
        line = parse_version(text).line if text else tool.first
        if parse_line_key(tool.first) <= parse_line_key(line) <= parse_line_key(tool.last):
            continue
        lines = tool.first if tool.first == tool.last else f"{tool.first} to {tool.last}"
        yield Finding(
            VERSION_UNTRIED,
            asked.cluster.document.where(("versions", key)),
            f"{tool.name} {line} is outside the range that gangplan supports",
            f"Supported: {tool.name} {lines}.",
        )


def _check_openshift_monitoring(asked: _Asked) -> Iterable[Finding]:
    """Check for OpenShift's user-workload monitoring, which limits a rule to series of its own namespace.

    It adds the rule's namespace to every series that the rule reads (Monitoring stack for OpenShift 4.21,
    "Creating cross-project alerting rules for user-defined projects").
    """
    wanted = asked.cluster.spec.monitoring
    if wanted is None or not asked.openshift or wanted.all_namespaces:
        return
    yield Finding(
        MONITORING_LABEL_ENFORCED,
        asked.cluster.document.where(("monitoring",), key=True),
        f"OpenShift narrows rules in '{wanted.namespace}' to series of that namespace, and runs are in those of"
        " their teams: no alert would ever fire, and dashboards stay empty",
        f"Write namespacesWithoutLabelEnforcement: [{wanted.namespace}] in ConfigMap user-workload-monitoring-config"
        " of namespace openshift-user-workload-monitoring, then allNamespaces: true here.",
    )


CHECKS: tuple[Callable[[_Asked], Iterable[Finding]], ...] = (
    _check_component_versions,
    _check_kueue_trainer_compatibility,
    _check_jobset_trainer_compatibility,
    _check_openshift_version,
    _check_network_plugin,
    _check_gang_scheduler_compatibility,
    _check_gpu_operator,
    _check_tool_versions,
    _check_openshift_monitoring,
)
