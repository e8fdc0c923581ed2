"""Causes of the fields of a run's pods."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath
from gangplan.generators.scripts import SCRIPTS_VOLUME
from gangplan.model.job import Mount, TargetPool
from gangplan.spec.nodes import find_spec_field_of_resource
from gangplan.trace import fabric, others, rails
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext, trace_template_causes
from gangplan.trace.files import build_own_cause, find_value_at
from gangplan.trace.launch import trace_container_argument_causes
from gangplan.trace.metadata import trace_label_causes, trace_pod_annotation_causes
from gangplan.trace.origins import trace_origins_to_causes
from gangplan.trace.starts import trace_container_command
from gangplan.trace.table import CauseTable


class PodContext:
    """A pod of a run: the run's context, the role, and the pod's own body."""

    def __init__(self, context: TraceContext, name: str, body: Any) -> None:
        """Derive the role from the name of the replicated job."""
        self.context = context
        self.other = next((one for one in context.job.others if one.name == name), None)
        self.role = self.other.name if self.other else "launcher" if name == "launcher" else "worker"
        self.body = body

    @property
    def pool(self) -> TargetPool:
        """The node pool of this role."""
        job = self.context.job
        if self.other:
            return self.other.pool
        return job.launcher_pool if self.role == "launcher" else job.worker_pool

    def word(self, word: str) -> Any:
        """Return the value of a placeholder in a table."""
        return self.pool.name if word == "pool" else self.context.word(word)

    def at(self, *path: str | int) -> Any:
        """Return the value at a path in the pod's spec."""
        return find_value_at(self.body, ("spec", *path))


def _trace_role_label_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    found = trace_label_causes(pod.context, stars)
    if pod.other and pod.other.step and str(stars[-1]).endswith("role"):
        found = [*found, *mark_indirect(others.trace_role_name_causes(pod.context, pod.other))]
    return found


def _trace_role_annotation_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    return [*trace_pod_annotation_causes(pod.context, stars), *ranks]


def _trace_node_selector_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    pool = pod.pool.name
    if stars[0] == "kubernetes.io/os":
        return [build_own_cause("every node that gangplan uses runs Linux")]
    if stars[0] == "kubernetes.io/arch":
        return [pod.context.cluster("nodePools", pool, "arch"), *_trace_role_pool_causes(pod)]
    return [pod.context.cluster("nodePools", pool, "labels", *stars), *_trace_role_pool_causes(pod)]


def _trace_toleration_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    index, field = stars[0], str(stars[-1])
    field = "value" if field == "operator" else field
    taint = pod.context.cluster("nodePools", pod.pool.name, "taints", index, field)
    return [taint.aside() if stars[-1] == "operator" else taint, *_trace_role_pool_causes(pod)]


def _trace_role_pool_causes(pod: PodContext) -> list[Cause]:
    """Return the reasons why pods of this role go to their pool."""
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    gpus = [others.trace_role_field_cause(pod.context, pod.other, "gpus").aside()] if pod.other else []
    return [*pod.context.pool(pod.pool.name), *ranks, *gpus]


def _trace_pod_affinity_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    return trace_preferred_neighbour_causes(pod.context, pod.role, stars)


def _trace_main_image_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    return (
        others.trace_role_image_causes(pod.context, pod.other)
        if pod.other
        else others.trace_job_image_causes(pod.context)
    )


def _trace_main_command_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    if pod.other and pod.other.step:
        return [build_own_cause("a shell passes SIGTERM on to what the step runs")]
    words = pod.at("containers", 0, "command") or ()
    return trace_container_command(pod.context, "worker" if pod.other else pod.role, words, int(stars[0]))


def _trace_main_argument_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    if pod.other:
        return others.trace_role_argument_causes(pod.context, pod.other, int(stars[0]))
    return trace_container_argument_causes(pod.context, pod.role, int(stars[0]))


def _trace_resource_amount_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of CPU, memory or devices of a role (resolve/job.py, resolve/placement.py)."""
    context, resource = pod.context, str(stars[-1])
    if pod.other:
        return others.trace_role_amount_causes(context, pod.other, resource)
    ranks = context.job.launcher_runs_ranks
    if pod.role == "launcher" and not ranks:
        runs = context.spec("launcher", "runsRanks").aside()
        asked = context.spec("launcher", resource)
        if asked.is_written:
            return [asked, runs]
        ladder = "a launcher grows with the number of workers (gangplan.model.profiles)"
        return [build_own_cause(ladder), *mark_indirect(context.workers()), asked.aside(), runs]
    around = [context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    if resource in ("cpu", "memory"):
        return [*context.chosen(resource), *around]
    pool = context.job.worker_pool.name
    if rail := rails.find_rail_path(context.files, pool, resource):
        return [*rails.trace_rdma_amount_causes(context, rail), *context.pool(pool), *around]
    device = context.cluster("nodePools", pool, "gpu", "resource").aside()
    if resource in dict(context.job.resources.others):
        return [*_trace_other_resource_causes(context, resource), *context.pool(pool), *around]
    return [*context.chosen("gpus"), device, *context.pool(pool), *around]


def _trace_claim_name_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a claim in a pod, by its number: its name, or the name of its template."""
    is_template = stars[-1] == "resourceClaimTemplateName"
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    return [
        *(pod.context.run_name() if is_template else ()),
        *rails.trace_device_claim_causes(pod.context, int(stars[0])),
        *ranks,
    ]


def _trace_other_resource_causes(context: TraceContext, resource: str) -> list[Cause]:
    """Return the causes of disk, huge pages and other devices.

    Scratch on disk is a part of the worker's ephemeral storage.
    """
    asked = context.spec(*find_spec_field_of_resource(resource))
    if resource != "ephemeral-storage":
        pages = find_spec_field_of_resource(resource)[0] == "hugePages" and not asked.is_written
        return (
            [asked.aside(), *fabric.trace_fabric_causes(context, *find_spec_field_of_resource(resource))]
            if pages
            else [asked]
        )
    size = [context.spec(*context.scratch("size"))] if context.files.has("spec", "scratch") else []
    return [*([asked] if asked.is_written else []), *size, asked.aside(), context.spec("scratch").aside()]


def _trace_shared_memory_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    half = build_own_cause(
        "half of the memory: NCCL and data loaders need more than the 64 MiB that containers get"
    )
    return [*_trace_resource_amount_causes(pod, ("memory",)), half]


# The same for all runs of a team, however their options differ.
_SCRIPTS = [
    build_own_cause(
        "gangplan's launch scripts: a ConfigMap next to the runs, whose name ends in the scripts' hash"
    )
]


def _trace_volume_mount_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    index, field = int(stars[0]), str(stars[-1])
    return _trace_mount_causes_at_index(pod, index, field)


def _trace_mount_causes_at_index(pod: PodContext, index: int, field: str) -> list[Cause]:
    if index == 0:
        return trace_template_causes("pod.yaml.j2")
    if index > len(pod.context.job.mounts_of(pod.role)):
        name = pod.at("containers", 0, "volumeMounts", index, "name")
        return (
            _SCRIPTS
            if name == SCRIPTS_VOLUME
            else fabric.trace_fabric_volume_causes(pod.context, str(name), field)
        )
    mount = pod.context.job.mounts_of(pod.role)[index - 1]
    return _trace_recorded_mount_causes(pod, mount, field)


def _trace_pod_volume_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    name = pod.at("volumes", stars[0], "name")
    if str(name).startswith(fabric.FABRIC_CAUSE_PREFIX):
        return fabric.trace_fabric_volume_causes(pod.context, str(name), str(stars[-1]))
    if name == SCRIPTS_VOLUME:
        return _SCRIPTS
    mounts = [mount for mount in pod.context.job.mounts if mount.volume == name]
    if not mounts:
        return trace_template_causes("pod.yaml.j2")
    return [cause for mount in mounts for cause in _trace_recorded_mount_causes(pod, mount, str(stars[-1]))]


def _trace_recorded_mount_causes(pod: PodContext, mount: Mount, field: str) -> list[Cause]:
    """Return the causes recorded with a mount.

    A launcher has the mounts of pods with ranks only if it runs some.
    """
    is_asked = mount.single and pod.role == "launcher"
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if is_asked else []
    return [*trace_origins_to_causes(pod.context, mount.origins.get(field) or mount.origins[""]), *ranks]


def _trace_restart_policy_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    asked = pod.context.spec("debug")
    return (
        [asked]
        if pod.at("restartPolicy") == "OnFailure"
        else [*trace_template_causes("pod.yaml.j2"), asked.aside()]
    )


def _trace_side_container_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    first = len(fabric.find_fabric_access(pod.context, pod.role).containers)
    index = int(stars[0]) - first
    if not 0 <= index < len(pod.context.job.containers_of(pod.role)):
        return fabric.trace_fabric_container_causes(pod.context, pod.role, stars)
    ranks = [pod.context.spec("launcher", "runsRanks").aside()] if pod.role == "launcher" else []
    if stars[1] == "volumeMounts":
        mounted = _trace_mount_causes_at_index(pod, int(stars[2]), str(stars[-1]))
        return [*mounted, *others.trace_container_entry_causes(pod.context, index), *ranks]
    found = pod.context.job.containers[index]
    return [*others.trace_job_container_causes(pod.context, found, stars[1:]), *ranks]


def _trace_security_context_causes(pod: PodContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of what the program's container may do: little, unless its fabric allows more."""
    if stars[:2] == ("capabilities", "add"):
        return fabric.trace_capability_causes(pod.context, stars)
    if stars[0] in ("privileged", "allowPrivilegeEscalation"):
        tight = [] if stars[0] == "privileged" else trace_template_causes("pod.yaml.j2")
        return (
            [*tight, *mark_indirect(fabric.trace_privilege_causes(pod.context))]
            if tight
            else fabric.trace_privilege_causes(pod.context)
        )
    return trace_template_causes("pod.yaml.j2")


_PROBE = "= the launcher starts when the workers' SSH servers answer | ~job.framework"
POD_TABLE = CauseTable(
    ("metadata labels *", _trace_role_label_causes),
    ("metadata annotations *", _trace_role_annotation_causes),
    ("spec schedulerName", "cluster.gang"),
    ("spec restartPolicy", _trace_restart_policy_causes),
    ("spec terminationGracePeriodSeconds", "job.gracePeriod"),
    ("spec nodeSelector *", _trace_node_selector_causes),
    ("spec tolerations * *", _trace_toleration_causes),
    ("spec affinity podAffinity **", _trace_pod_affinity_causes),
    ("spec affinity podAntiAffinity **", lambda pod, stars: trace_jobs_apart_causes(pod.context, stars)),
    ("spec topologySpreadConstraints **", lambda pod, stars: trace_worker_spread_causes(pod.context, stars)),
    ("spec hostNetwork", "fabric.hostNetwork"),
    ("spec dnsPolicy", "fabric.hostNetwork"),
    ("spec initContainers * **", _trace_side_container_causes),
    ("spec containers 0 securityContext **", _trace_security_context_causes),
    ("spec containers 0 image", _trace_main_image_causes),
    ("spec containers 0 command *", _trace_main_command_causes),
    ("spec containers 0 args *", _trace_main_argument_causes),
    ("spec containers 0 ports **", _PROBE),
    ("spec containers 0 startupProbe **", _PROBE),
    ("spec containers 0 readinessProbe **", _PROBE),
    ("spec containers 0 resources claims * name", _trace_claim_name_causes),
    ("spec containers 0 resources * *", _trace_resource_amount_causes),
    ("spec containers 0 volumeMounts * *", _trace_volume_mount_causes),
    ("spec volumes 0 emptyDir sizeLimit", _trace_shared_memory_causes),
    ("spec volumes * **", _trace_pod_volume_causes),
    ("spec resourceClaims * *", _trace_claim_name_causes),
)


def trace_worker_spread_causes(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of how the run's workers are spread over nodes."""
    asked = context.spec("placement", "spread")
    if stars and stars[-1] == "jobset.sigs.k8s.io/jobset-name":
        return [*context.run_name(), asked.aside()]
    return [build_own_cause(f"{asked.because}: how pods are spread over nodes"), asked.aside()]


def trace_preferred_neighbour_causes(context: TraceContext, role: str, stars: FieldPath) -> list[Cause]:
    """Return the causes of a preferred neighbour: first the run's own pods (spread: pack), then others."""
    index = int(stars[1]) - (context.job.spread == "pack" and role == "worker")
    if index < 0:
        return trace_worker_spread_causes(context, stars)
    asked = context.spec("placement", "near").aside()
    ranks = context.spec("launcher", "runsRanks").aside()
    levels_of = context.cluster("topology").aside()  # each job has a term per level
    found = context.job.near[index] if index < len(context.job.near) else None
    if found is not None and stars[-1] == "gangplan.dev/job":
        written = list(context.value("spec", "placement", "near") or ())
        return [context.spec("placement", "near", written.index(found.job)), ranks, levels_of]
    if found is not None and stars[-1] == "topologyKey":
        levels = context.value("cluster", "topology") or ()
        label = [
            context.cluster("topology", n, "label")
            for n, one in enumerate(levels)
            if one.get("label") == found.key
        ]
        return [*label, build_own_cause("as close as the cluster can tell"), asked, ranks, levels_of]
    if stars[-1] == "gangplan.dev/team":
        return [*context.team_name(), asked, ranks, levels_of]
    return [build_own_cause("the closer, the better"), asked, ranks, levels_of]


def trace_jobs_apart_causes(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of the jobs that share no node with the workers."""
    asked = context.spec("placement", "apart")
    ranks = context.spec("launcher", "runsRanks").aside()
    if stars[-1] == "gangplan.dev/job":
        return [context.spec("placement", "apart", int(stars[1])), ranks]
    if stars[-1] == "gangplan.dev/team":
        return [*context.team_name(), asked.aside(), ranks]
    return [build_own_cause("pods of these jobs share no node"), asked.aside(), ranks]
