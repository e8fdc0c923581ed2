"""TrainingRuntime: one per run, in the team's namespace, never edited once it is in use."""

from __future__ import annotations

from typing import Any

from gangplan.generators.beside import (
    BuiltRole,
    choose_restart_policy,
    compute_backoff_limit,
    generate_pod_annotations,
    generate_pod_labels,
    generate_setup_and_sidecar_containers,
)
from gangplan.generators.common import (
    LabelPairs,
    TemplateRenderer,
    escape_kubelet_variable_references,
    generate_job_set_labels,
    generate_run_labels,
    generate_run_part_annotations,
    name_claim_template,
    render_to_objects,
)
from gangplan.generators.launch import (
    WORKER_WAIT_S,
    compute_job_deadline_grace_s,
    forgives_disruptions,
    generate_launcher_command,
    generate_worker_command,
)
from gangplan.generators.scripts import SCRIPTS_FOLDER, SCRIPTS_VOLUME, name_launch_script_config_map
from gangplan.model.backend import RUNTIME_KIND
from gangplan.model.exits import FINAL_CODES, LAUNCH_EXITS, PREFLIGHT_EXITS
from gangplan.model.frameworks import ML_POLICIES
from gangplan.model.job import Job, Mount, ResolvedRole, Resources
from gangplan.model.pods import GRACE_MARGIN_S as GRACE_MARGIN_S
from gangplan.model.quantity import parse_memory_quantity
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.plan.environment import build_role_env

# A PodGroup counts the launcher too, so it must not wait for workers that wait for it (dependsOn): its script
# waits. Trainer sets no scheduler (pkg/runtime/framework/plugins/{coscheduling,volcano}, v2.1 to v2.3).
SCHEDULERS = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}
# The default of the CRD, which the API server would fill in.
SCHEDULE_TIMEOUT_S = 60
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"

# Messages of a Job that failed by its podFailurePolicy, which rules of a JobSet match with Go's regular
# expressions (Kubernetes v1.34, pkg/controller/job/pod_failure_policy.go; JobSet v0.12, failure_policy.go).
DISRUPTION_PATTERN = "has condition DisruptionTarget matching FailJob rule"
EXIT_CODE_PATTERN = "failed with exit code [0-9]+ matching FailJob rule"
# The label by which Trainer's SDK distinguishes runtimes (stock runtimes of v2.3.0 use these values).
FRAMEWORK_LABEL = {"horovod": "mpi"}


def generate_training_runtime(unit: RunPlan, write: TemplateRenderer = render_to_objects) -> list[Body]:
    """Return the runtime of a run: images, pods, commands and policies of all its roles."""
    job, launch = unit.job, unit.launch
    argv = [escape_kubelet_variable_references(word) for word in launch.argv]
    worker_command, worker_args = generate_worker_command(job, argv)
    return write(
        "runtime.yaml.j2",
        {
            "launch": launch,
            "argv": argv,
            "name": unit.run_name,
            "framework": FRAMEWORK_LABEL.get(job.image.framework, job.image.framework),
            "policy": ML_POLICIES.get(job.image.framework, ""),
            "labels": generate_run_labels(unit),
            "annotations": generate_run_part_annotations(unit, RUNTIME_KIND),
            "group_labels": generate_job_set_labels(job),
            "group_annotations": _group_annotations(job),
            "schedule_timeout_s": SCHEDULE_TIMEOUT_S,
            **generate_pod_template_values(unit),
            "worker_command": worker_command,
            "worker_args": worker_args,
            "forgives": forgives_disruptions(job),
            "disruption_pattern": DISRUPTION_PATTERN,
            "exit_code_pattern": EXIT_CODE_PATTERN,
            "exit_operator": "NotIn" if job.exit_codes.retry else "In",
            "final_codes": final_codes(job),
            "job_deadline_s": job.timeout_s + compute_job_deadline_grace_s(job.platform),
            "roles": [_generate_runtime_role(unit, one) for one in job.roles],
            "steps": _generate_runtime_steps(unit),
            "before": job.steps[-1].name if job.steps else "",
            "target": success_target(job),
            "restarts": compute_backoff_limit,
        },
    )


def generate_pod_template_values(unit: RunPlan) -> dict[str, Any]:
    """Return the values that the templates of pods read, for every backend."""
    job = unit.job
    same_run = ((job.backend.run_label, unit.run_name),)
    return {
        "unit": unit,
        "job": job,
        "layout": unit.layout,
        "literal": escape_kubelet_variable_references,
        "same_run": same_run,
        "same_workers": (*same_run, (job.backend.role_label, job.backend.role("worker"))),
        "schedulers": SCHEDULERS,
        "worker_labels": generate_pod_labels(unit, "worker"),
        "worker_annotations": generate_pod_annotations(job, "worker"),
        "launcher_labels": generate_pod_labels(unit, "launcher"),
        "launcher_annotations": generate_pod_annotations(job, "launcher"),
        "launcher_command": generate_launcher_command(unit) if job.uses_mpi else [],
        "scripts_of": _find_script_config_map,
        "scripts_folder": SCRIPTS_FOLDER,
        "scripts_volume": SCRIPTS_VOLUME,
        "grace_s": job.grace_s + GRACE_MARGIN_S,
        "startup_tries": WORKER_WAIT_S // 2,  # one each two seconds
        "restart_policy": choose_restart_policy,
        "shm_size": _compute_shm_size,
        "claims_of": _list_pod_claims,
        "volumes": _select_distinct_volumes,
        "containers": generate_setup_and_sidecar_containers(job),
    }


def _find_script_config_map(job: Job, role: str) -> str:
    """Return the ConfigMap of the launch scripts, which all pods mount but those of steps."""
    return "" if any(one.name == role for one in job.steps) else name_launch_script_config_map()


def _group_annotations(job: Job) -> LabelPairs:
    """Return the annotation of the JobSet from which Volcano's PodGroup takes its queue."""
    return ((VOLCANO_QUEUE, job.queue),) if job.platform.gang == "volcano" and job.queue else ()


def success_target(job: Job) -> str:
    """Return the replicated job that completes the run: launcher for MPI, chief for TensorFlow, else node."""
    if job.uses_mpi:
        return "launcher"
    return "chief" if any(role.name == "chief" for role in job.roles) else "node"


def _generate_runtime_role(unit: RunPlan, role: ResolvedRole) -> BuiltRole:
    argv = [escape_kubelet_variable_references(word) for word in role.argv or unit.launch.argv]
    return BuiltRole(
        role.name,
        role.workers,
        role.image,
        role.resources,
        role.pool,
        generate_pod_labels(unit, role.name),
        generate_pod_annotations(unit.job, role.name),
        build_role_env(unit.job, role),
        *generate_worker_command(unit.job, argv),
    )


def _generate_runtime_steps(unit: RunPlan) -> list[BuiltRole]:
    if not unit.job.steps:
        return []
    from gangplan.generators.steps import generate_step_roles  # few runs have one

    return generate_step_roles(unit)


def final_codes(job: Job) -> tuple[int, ...]:
    """Return the exit codes that end the run or, with `retry`, the only ones that do not (NotIn ignores 0).

    A failed launch that a new try may fix is tried again under every list.
    """
    looks = PREFLIGHT_EXITS.values() if job.image.preflight else ()
    own = (*FINAL_CODES, *(one.code for one in looks if one.is_final)) if job.uses_mpi else ()
    if not job.retries or not job.exit_codes.retry:
        return tuple(sorted({*own, *job.exit_codes.fail})) if job.retries else own
    mine = (*LAUNCH_EXITS.values(), *looks) if job.uses_mpi else ()
    cured = tuple(one.code for one in mine if not one.is_final)
    return tuple(sorted({*job.exit_codes.retry, *cured}))


def _compute_shm_size(resources: Resources) -> str:
    """Return half of the memory: NCCL and data loaders need far more than the default of 64 MiB."""
    half_mib = resources.memory.value() // 2 // 2**20
    return parse_memory_quantity(f"{max(half_mib, 1)}Mi").canonical()


def _list_pod_claims(resources: Resources, run_name: str) -> list[tuple[str, str]]:
    """Return the name of each claim in a pod, with that of its template."""
    return [(one.name, name_claim_template(run_name, one)) for one in resources.claims]


def _select_distinct_volumes(mounts: tuple[Mount, ...]) -> list[Mount]:
    """Return one volume per claim or secret, even if it is mounted twice."""
    return list({mount.volume: mount for mount in mounts}.values())
