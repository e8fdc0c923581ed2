"""What pods of all roles share: labels, annotations, setup and sidecar containers, scripts."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from gangplan.generators.common import (
    LABEL_PREFIX,
    MANAGED_LABEL,
    PLATFORM_PREFIX,
    LabelPairs,
    escape_kubelet_variable_references,
    generate_run_labels,
)
from gangplan.model.exits import LAUNCH_EXITS
from gangplan.model.job import EnvVar, Job, Resources, TargetPool
from gangplan.model.pods import GCSFUSE, GCSFUSE_ANNOTATION
from gangplan.model.quantity import Quantity
from gangplan.plan import RunPlan
from gangplan.plan.environment import build_side_container_env
from gangplan.records import dataclass
from gangplan.template import render_script


@dataclass(frozen=True, slots=True)
class BuiltContainer:
    """A setup or sidecar container, as the template writes it."""

    name: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[EnvVar, ...]
    cpu: Quantity
    memory: Quantity
    is_sidecar: bool


def generate_setup_and_sidecar_containers(job: Job) -> list[BuiltContainer]:
    """Return the setup and sidecar containers.

    In the job's image a shell passes SIGTERM on; another image may have no shell.
    """
    return [
        BuiltContainer(
            one.name,
            one.image,
            (*("/bin/sh", "-c", render_script_text("launch/beside.sh.j2", {}), one.name),)
            if one.is_own
            else tuple(map(escape_kubelet_variable_references, one.argv)),
            tuple(map(escape_kubelet_variable_references, one.argv)) if one.is_own else (),
            build_side_container_env(job, one),
            one.cpu,
            one.memory,
            one.is_sidecar,
        )
        for one in job.containers
    ]


def render_script_text(template: str, values: dict[str, Hashable]) -> str:
    """Render a script that ends with exactly one line break, which makes YAML show it line by line."""
    return _render_cached_script(template, tuple(values.items()))


@lru_cache(maxsize=256)  # a script has counts and waits but no names, so few runs have a script of their own
def _render_cached_script(template: str, values: tuple[tuple[str, Hashable], ...]) -> str:
    return render_script(template, {**dict(values), "exits": LAUNCH_EXITS}).rstrip("\n") + "\n"


def generate_pod_labels(unit: RunPlan, role: str) -> LabelPairs:
    """Return the labels of the pods of one role."""
    labels = dict(generate_run_labels(unit))
    del labels[MANAGED_LABEL]
    labels |= {
        f"{LABEL_PREFIX}role": role,
        # A sidecar that outlives the program would keep the run from ever completing (trainer#2794).
        "sidecar.istio.io/inject": "false",
        f"{PLATFORM_PREFIX}mpijob": unit.run_name,
        f"{PLATFORM_PREFIX}mpijob-role": role,
        **dict(unit.job.identity.pod_labels if unit.job.identity else ()),
    }
    return tuple(sorted(labels.items()))


def generate_pod_annotations(job: Job, role: str) -> LabelPairs:
    """Return the annotations of the pods of a role, for autoscalers, Kueue, networks and volumes."""
    # Moving a pod of a run to save a node would end the run (Karpenter 1.0: disruption).
    annotations = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }
    access = job.access_of(role)
    annotations |= dict(access.annotations)
    if any(mount.inline and mount.inline.driver == GCSFUSE for mount in job.mounts_of(role)):
        annotations |= dict((GCSFUSE_ANNOTATION,))
    if job.platform.openshift is not None:
        annotations["openshift.io/required-scc"] = access.scc or "nonroot-v2"
    if job.trains(role):
        if job.topology is not None:
            annotations[f"kueue.x-k8s.io/{job.topology[0]}"] = job.topology[1]
        if job.fabric.networks:
            annotations["k8s.v1.cni.cncf.io/networks"] = ",".join(job.fabric.networks)
    elif job.topology is not None and _find_role_pool(job, role) == job.worker_pool:
        # Kueue never admits a pod set without a topology request to a flavor with topology.
        annotations["kueue.x-k8s.io/podset-unconstrained-topology"] = "true"
    return tuple(sorted(annotations.items()))


def _find_role_pool(job: Job, role: str) -> TargetPool:
    return next((one.pool for one in job.others if one.name == role), job.launcher_pool)


@dataclass(frozen=True, slots=True)
class BuiltRole:
    """The pods of a role other than the workers, as the template writes them."""

    name: str
    workers: int
    image: str
    resources: Resources
    pool: TargetPool
    labels: LabelPairs
    annotations: LabelPairs
    env: tuple[EnvVar, ...]
    command: list[str]
    args: list[str]
    deadline_s: int = 0


def choose_restart_policy(job: Job, role: str) -> str:
    """Return Never, or OnFailure for pods that are kept after a failure.

    Steps end before there is a run to look at, so theirs is always Never.
    """
    return "OnFailure" if job.debug and all(one.name != role for one in job.steps) else "Never"


def compute_backoff_limit(job: Job, pods: int) -> int:
    """Return the backoffLimit of a Job: 0, or one more than its pods if debug lets each fail and stay.

    A Job whose containers are restarted in place has failed once all restarts reach the limit (Kubernetes
    v1.34, pkg/controller/job/job_controller.go, pastBackoffLimitOnFailure).
    """
    return pods + 1 if job.debug else 0
