"""The supported versions, and what each line decides. Adding a version adds a line to a table here.

A line is major and minor, such as "2.3". A new line also needs schemas in `validate/apiserver/schemas/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeVar

from gangplan.model.version import ToolVersion
from gangplan.records import dataclass

_L = TypeVar("_L")


@dataclass(frozen=True, slots=True)
class JobSetLine:
    """A line of JobSet. `has_claim_policies`: its API fills in what happens to volume claims."""

    has_claim_policies: bool


@dataclass(frozen=True, slots=True)
class TrainerLine:
    """A line of Kubeflow Trainer, by its behaviour."""

    jobset: ToolVersion  # that it is built for
    override_field: str  # of a TrainJob, for changes by a queue
    has_run_deadline: bool  # TrainJobs have activeDeadlineSeconds
    is_run_immutable: bool
    reruns_after_ttl: str  # which runs it creates again once a TTL has deleted their JobSet
    fills_torch_processes: bool  # mlPolicy.torch.numProcPerNode is auto by default; later, only flux has one
    respects_managers: bool  # it ignores a TrainJob that another controller manages
    keys_need_group: bool  # only the pod's group can read SSH keys
    refuses_mpi_variables: bool  # variables that it sets itself; else it overwrites them
    merges_resources: bool  # resources of a run are merged into its runtime's instead of replacing them


@dataclass(frozen=True, slots=True)
class KueueLine:
    """A line of Kueue, by its behaviour. The values here are those of 0.15."""

    api_version: str = "kueue.x-k8s.io/v1beta2"  # served from 0.15 on (CHANGELOG-0.15)
    most_pod_sets: int = 8  # kinds of pods in one run
    # Runs and the manager's configuration.
    override_field: str = "podTemplateOverrides"  # of a TrainJob, which it sets to start the run
    patches_on_create: bool = False  # an empty one exists from the start
    refuses_elastic: bool = False  # elastic TrainJobs
    waits_for_pods: bool = False  # waitForPodsReady is on if the configuration does not set it
    has_recovery_timeout: bool = False  # and its recoveryTimeout has a default
    has_concurrent_admission: bool = False
    has_pending_metric: bool = False  # of the resources that pending runs request
    says_workload_small: bool = False  # messages begin with lower-case letters
    # Flavors.
    is_flavor_frozen: bool = True  # one with a topology cannot change at all; later, its taints can
    swaps_preferences: bool = True  # each preference of flavorFungibility means the other
    skips_unasked: bool = False  # a resource with no request needs no quota
    matches_group_labels: bool = True  # affinity is checked against the labels of all flavors of a group
    orders_by_hash: bool = False  # a run's resources are considered in this order; before, at random
    ranks_hopeless_last: bool = False  # a flavor without candidates for preemption comes after others
    keeps_progress: bool = False  # an interrupted search continues (FlavorFungibilityPreserveScanProgress)
    counts_exactly: bool = False  # amounts are not rounded up before they are transformed
    # Fair sharing.
    puts_own_first: bool = False  # runs within their own quota go first, and may reclaim all of it
    weightless_last_from: int | None = None  # the patch from which an idle LocalQueue of weight 0 is last
    # Topologies.
    mixes_flavors: bool = False  # a pod set may have flavors with a topology and without
    shares_nodes: bool = False  # flavors see what other flavors use on a node
    places_as_written: bool = False  # topology uses requests as written, not as quota counts them
    has_layers: bool = False  # slices within slices
    groups_without_quota: bool = False  # in a group of pod sets, those that request no quota share the flavor
    # Devices that pods claim.
    counts_claims: bool = False  # KueueDRAIntegration (pkg/features/kube_features.go) is on


@dataclass(frozen=True, slots=True)
class SupportedTool:
    """A component whose version does not affect rendering: the lines that gangplan supports."""

    name: str
    first: str
    last: str


# The versions whose API schemas are in validate/apiserver/schemas/.
KUBERNETES_LINES = tuple(f"1.{minor}" for minor in range(30, 38))

# startupPolicy and volumeClaimPolicies: jobset_types.go of v0.10.1 to v0.12.0.
JOBSET_LINES = {"0.10": JobSetLine(False), "0.11": JobSetLine(True), "0.12": JobSetLine(True)}

# JobSet: go.mod of the tags v2.1.0, v2.2.1, v2.3.0. Fields: the TrainJob CRD of the same tags
# (podTemplateOverrides until 2.1, runtimePatches from 2.2; activeDeadlineSeconds and the CEL rules `self ==
# oldSelf` from 2.2). SSH keys (mode 0644, from 2.3 on 0640) and variables: pkg/runtime/framework/plugins/mpi.
# TTL: trainer#2981 was fixed in 2.2 for runs that succeeded, trainer#3737 in no release up to 2.3.
_TRAINER_21 = TrainerLine(
    jobset=ToolVersion(0, 10, 1),
    override_field="podTemplateOverrides",
    has_run_deadline=False,
    is_run_immutable=False,
    reruns_after_ttl="every finished",
    fills_torch_processes=True,
    respects_managers=False,
    keys_need_group=False,
    refuses_mpi_variables=False,
    merges_resources=False,
)
_TRAINER_22 = replace(
    _TRAINER_21,
    jobset=ToolVersion(0, 11, 0),
    override_field="runtimePatches",
    has_run_deadline=True,
    is_run_immutable=True,
    reruns_after_ttl="a failed",
    fills_torch_processes=False,
)
_TRAINER_23 = replace(
    _TRAINER_22,
    jobset=ToolVersion(0, 12, 0),
    respects_managers=True,
    keys_need_group=True,
    refuses_mpi_variables=True,
    merges_resources=True,
)
TRAINER_LINES = {"2.1": _TRAINER_21, "2.2": _TRAINER_22, "2.3": _TRAINER_23}

# Field: pkg/controller/jobs/trainjob of each line. Pod sets: maxItems of Workload spec.podSets.
# waitForPodsReady: apis/config/v1beta2/defaults.go (CHANGELOG-0.19). Flavors: the XValidation rules of
# resourceflavor_types.go (0.15.2: the whole spec; 0.18.2: three fields). Metric: pkg/metrics/metrics.go
# (v0.15.2 and v0.16.1 do not have it, v0.18.2 does; 0.17 was not checked). The rest: pkg/scheduler,
# pkg/cache/scheduler and pkg/workload of v0.15.2, v0.16.1, v0.18.2 and v0.19.2. Weight 0: kueue#13479,
# fixed by #13481 in v0.18.5 and by #13559 in v0.19.1; v0.15.8, v0.16.9 and v0.17.8 still divide by it.
_KUEUE_15 = KueueLine()
_KUEUE_16 = replace(_KUEUE_15, swaps_preferences=False, skips_unasked=True)
_KUEUE_17 = replace(
    _KUEUE_16,
    override_field="runtimePatches",
    is_flavor_frozen=False,
    puts_own_first=True,
    mixes_flavors=True,
)
_KUEUE_18 = replace(
    _KUEUE_17,
    most_pod_sets=10,
    has_recovery_timeout=True,
    patches_on_create=True,
    matches_group_labels=False,
    shares_nodes=True,
    places_as_written=True,
    has_concurrent_admission=True,
    has_pending_metric=True,
    refuses_elastic=True,
    counts_claims=True,
    weightless_last_from=5,
)
_KUEUE_19 = replace(
    _KUEUE_18,
    most_pod_sets=18,
    waits_for_pods=True,
    orders_by_hash=True,
    ranks_hopeless_last=True,
    keeps_progress=True,
    counts_exactly=True,
    has_layers=True,
    groups_without_quota=True,
    says_workload_small=True,
    weightless_last_from=1,
)
KUEUE_LINES = {"0.15": _KUEUE_15, "0.16": _KUEUE_16, "0.17": _KUEUE_17, "0.18": _KUEUE_18, "0.19": _KUEUE_19}
LATEST_KUEUE = _KUEUE_19

# The Kubernetes inside each OpenShift line (release notes of 4.14 to 4.21). The founding requirements name
# 4.14 and later; lines whose Kubernetes is not in the table above appear in messages only.
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
OPENSHIFT_LINES = {
    line: inside for line, inside in KUBERNETES_OF_OPENSHIFT.items() if inside in KUBERNETES_LINES
}
LEAST_OPENSHIFT = next(iter(OPENSHIFT_LINES))
NO_OPENSHIFT_SDN = "4.17"  # the release that removed the network plugin openshift-sdn

# By the name in a cluster file. MPI operator: v2beta1 of 0.8. Argo CD: server-side diff is stable from 3.1
# on, the lab runs 3.5.1. Flux: health checks by expression came with 2.5.
SUPPORTED_TOOLS = {
    "mpiOperator": SupportedTool("MPI operator", "0.8", "0.8"),
    "argocd": SupportedTool("Argo CD", "3.1", "3.5"),
    "flux": SupportedTool("Flux", "2.5", "2.9"),
}

# The resource of NVIDIA's operator; devices with another name belong to another operator.
NVIDIA_GPU = "nvidia.com/gpu"


def look_up_trainer_line(line: str | None) -> TrainerLine:
    """Return the behaviour of a line of Trainer; for an unknown line, that of the newest before it, or of the
    first."""
    return _find_version_line(TRAINER_LINES, line)


def look_up_kueue_line(line: str | None) -> KueueLine:
    """Return the behaviour of a line of Kueue, like `look_up_trainer_line`."""
    return _find_version_line(KUEUE_LINES, line)


def has_reached_kueue_patch(kueue: ToolVersion, since: int | None) -> bool:
    """Return whether a version has what its line has since a patch. Lines newer than all here have it."""
    if parse_line_key(kueue.line) > max(map(parse_line_key, KUEUE_LINES)):
        return True
    return since is not None and kueue.patch >= since


def look_up_jobset_line(line: str | None) -> JobSetLine:
    """Return the behaviour of a line of JobSet, like `look_up_trainer_line`."""
    return _find_version_line(JOBSET_LINES, line)


def _find_version_line(table: Mapping[str, _L], line: str | None) -> _L:
    line = line or "0.0"
    if line in table:
        return table[line]
    before = (one for one in table if parse_line_key(one) <= parse_line_key(line))
    return table[max(before, key=parse_line_key, default=next(iter(table)))]


@cache
def parse_line_key(line: str) -> tuple[int, ...]:
    """Return a line as numbers, for comparison: 0.10 comes after 0.9, and 0 before all of them."""
    return tuple(int(part) for part in line.split("."))


def can_work_together(trainer: str, kueue: str) -> bool:
    """Return whether Kueue sets the field that this Trainer reads; both lines must be known."""
    return TRAINER_LINES[trainer].override_field == KUEUE_LINES[kueue].override_field


def list_kueue_lines(trainer: str) -> tuple[str, ...]:
    """Return the Kueue lines that work with a Trainer line; none if that line is unknown."""
    return tuple(
        line for line in KUEUE_LINES if trainer in TRAINER_LINES and can_work_together(trainer, line)
    )


def list_trainer_lines(kueue: str) -> tuple[str, ...]:
    """Return the Trainer lines that work with a Kueue line; none if that line is unknown."""
    return tuple(line for line in TRAINER_LINES if kueue in KUEUE_LINES and can_work_together(line, kueue))


def find_nearest_version_line(line: str, lines: Iterable[str]) -> str:
    """Return the line that is closest to a given one, so that the change is small."""
    major, minor = parse_line_key(line)

    def distance(other: str) -> tuple[int, int]:
        other_major, other_minor = parse_line_key(other)
        return abs(other_major - major), abs(other_minor - minor)

    return min(lines, key=distance)
