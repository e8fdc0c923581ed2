"""Which versions gangplan knows, and what each line decides. Adding a version is a line in a table here.

A line is major and minor, such as "2.3". Schemas of a new line go into `validate/apiserver/schemas/` besides.
"""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.model.version import Version
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class TrainerLine:
    """A line of Kubeflow Trainer. `override_field` is the place in a TrainJob that a queue writes into."""

    jobset: Version
    override_field: str
    has_run_deadline: bool
    is_run_immutable: bool
    ssh_key_mode: str


@dataclass(frozen=True, slots=True)
class KueueLine:
    """A line of Kueue. `override_field` is what it writes into a TrainJob that it starts.

    `least_kubernetes` is its minimum; `most_pod_sets` how many kinds of pods one run may have;
    `waits_for_pods` whether waitForPodsReady is on where the configuration does not name it;
    `is_flavor_frozen` whether a flavor with a topology cannot change at all (later lines: taints can).
    """

    api_version: str
    override_field: str
    least_kubernetes: str
    most_pod_sets: int
    waits_for_pods: bool
    is_flavor_frozen: bool


@dataclass(frozen=True, slots=True)
class SupportedTool:
    """A component whose version decides nothing that is rendered: the lines that gangplan was made for."""

    name: str
    first: str
    last: str


# Those whose API schemas are in validate/apiserver/schemas/.
KUBERNETES = tuple(f"1.{minor}" for minor in range(30, 38))

# JobSet: go.mod of the tags v2.1.0, v2.2.1, v2.3.0. Fields: the TrainJob CRD of the same tags
# (podTemplateOverrides until 2.1, runtimePatches from 2.2; activeDeadlineSeconds and the CEL rules
# `self == oldSelf` from 2.2). Mode of the SSH key: pkg/runtime/framework/plugins/mpi.
TRAINER = {
    "2.1": TrainerLine(Version(0, 10, 1), "podTemplateOverrides", False, False, "0644"),
    "2.2": TrainerLine(Version(0, 11, 0), "runtimePatches", True, True, "0644"),
    "2.3": TrainerLine(Version(0, 12, 0), "runtimePatches", True, True, "0640"),
}
JOBSET = ("0.10", "0.11", "0.12")

# Field: pkg/controller/jobs/trainjob of each line. Minimum of Kubernetes: its installation page. Pod sets:
# maxItems of Workload spec.podSets. waitForPodsReady: apis/config/v1beta2/defaults.go (CHANGELOG-0.19).
# Flavors: the XValidation rules of resourceflavor_types.go (0.15.2: the whole spec; 0.18.2: three fields).
_V2 = "kueue.x-k8s.io/v1beta2"  # served from 0.15 on (CHANGELOG-0.15)
KUEUE = {
    "0.15": KueueLine(_V2, "podTemplateOverrides", "1.29", 8, False, True),
    "0.16": KueueLine(_V2, "podTemplateOverrides", "1.29", 8, False, True),
    "0.17": KueueLine(_V2, "runtimePatches", "1.29", 8, False, False),
    "0.18": KueueLine(_V2, "runtimePatches", "1.29", 10, False, False),
    "0.19": KueueLine(_V2, "runtimePatches", "1.29", 18, True, False),
}

# The Kubernetes inside each OpenShift line (release notes of 4.14 to 4.21). The founding requirements
# name 4.14 and later; those whose Kubernetes is not in the table above are named in messages only.
KUBERNETES_OF_OPENSHIFT = {
    "4.14": "1.27",
    "4.15": "1.28",
    "4.16": "1.29",
    "4.17": "1.30",
    "4.18": "1.31",
    "4.19": "1.32",
    "4.20": "1.33",
    "4.21": "1.34",
}
OPENSHIFT = {line: inside for line, inside in KUBERNETES_OF_OPENSHIFT.items() if inside in KUBERNETES}
LEAST_OPENSHIFT = next(iter(OPENSHIFT))
NO_OPENSHIFT_SDN = "4.17"  # the release that removed the network plugin openshift-sdn

# By the name in a cluster file. MPI operator: v2beta1 of 0.8. Argo CD: server-side diff is stable from
# 3.1 on, 3.5.1 is what the lab runs. Flux: health checks by expression came with 2.5.
TOOLS = {
    "mpiOperator": SupportedTool("MPI operator", "0.8", "0.8"),
    "argocd": SupportedTool("Argo CD", "3.1", "3.5"),
    "flux": SupportedTool("Flux", "2.5", "2.9"),
}

# The resource that NVIDIA's operator offers; devices under another name have an owner of their own.
NVIDIA_GPU = "nvidia.com/gpu"


def number(line: str) -> tuple[int, int]:
    """A line as numbers, for comparing."""
    major, minor = line.split(".")
    return int(major), int(minor)


def work_together(trainer: str, kueue: str) -> bool:
    """Whether Kueue writes the field that this Trainer reads; both lines are known ones."""
    return TRAINER[trainer].override_field == KUEUE[kueue].override_field


def kueue_for(trainer: str) -> tuple[str, ...]:
    """The Kueue lines that work with a Trainer line; none for a line that is not known."""
    return tuple(line for line in KUEUE if trainer in TRAINER and work_together(trainer, line))


def trainer_for(kueue: str) -> tuple[str, ...]:
    """The Trainer lines that work with a Kueue line; none for a line that is not known."""
    return tuple(line for line in TRAINER if kueue in KUEUE and work_together(line, kueue))


def nearest_line(line: str, lines: Iterable[str]) -> str:
    """The line that is closest to a given one: the least to change."""
    major, minor = number(line)

    def distance(other: str) -> tuple[int, int]:
        other_major, other_minor = number(other)
        return abs(other_major - major), abs(other_minor - minor)

    return min(lines, key=distance)
