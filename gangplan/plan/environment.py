"""The launch environment: the variables that MPI families need in addition to Trainer's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from gangplan.model.frameworks import COMPLETION_INDEX_FIELD, PADDLE_VARIABLES, RENDEZVOUS_PORT
from gangplan.model.job import (
    HASH_PLACEHOLDER,
    EnvVar,
    Job,
    Origins,
    ResolvedRole,
    SideContainer,
    ValueOrigin,
)
from gangplan.model.pods import SCRATCH_VARIABLE, sort_variables
from gangplan.model.quantity import Quantity
from gangplan.plan.flags import is_pinned_by_user
from gangplan.plan.names import HOSTFILE_PATH, HYDRA_HOSTFILE_PATH
from gangplan.plan.traffic import START_ORIGINS, build_traffic_env
from gangplan.resolve.launcher import count_openmp_threads

_SSH_ARGS = "-o ConnectionAttempts=10"

# The variable that the NVIDIA container runtime reads; CUDA images set it to `all` (nvidia-container-toolkit,
# docs).
VISIBLE_GPUS_VARIABLE = "NVIDIA_VISIBLE_DEVICES"


def build_launcher_env(job: Job) -> tuple[EnvVar, ...]:
    """Return the variables of the launcher's container, sorted by name.

    The job's own override the defaults.
    """
    hidden = [_build_hidden_gpus_variable(*START_ORIGINS)] if needs_gpus_hidden_from_launcher(job) else []
    return _merge_default_env(job, (*_build_mpi_family_env(job), *build_traffic_env(job), *hidden))


def build_worker_env(job: Job) -> tuple[EnvVar, ...]:
    """Return the variables of the workers' containers.

    The job's own override those for hidden GPUs and, without MPI, for traffic and the rendezvous.
    """
    told = () if job.uses_mpi else (*meeting(job), *_build_elastic_env(job))
    devices = [name for name, _ in job.resources.others if name.startswith("nvidia.com/")]
    hidden = (
        [_build_hidden_gpus_variable(*START_ORIGINS)]
        if job.worker_pool.gpu and not job.gpus and not devices
        else []
    )
    return _merge_default_env(job, (*([] if job.uses_mpi else build_traffic_env(job)), *hidden, *told))


def build_side_container_env(job: Job, container: SideContainer) -> tuple[EnvVar, ...]:
    """Return the variables of a setup container or sidecar: the job's and its own, which win.

    It has asked for no GPU, so it must not see those of its node, which may belong to other runs.
    """
    hidden = (
        [_build_hidden_gpus_variable(ValueOrigin("job", ("worker_pool",)))] if job.worker_pool.gpu else []
    )
    asked = ValueOrigin("spec", container.place), ValueOrigin("spec", ("launcher", "runsRanks"))
    inherited = _list_inherited_env(job, container.cpu, container.place)
    return _merge_own_env_variables((*hidden, *inherited), container.env, container.place, asked)


def needs_gpus_hidden_from_launcher(job: Job) -> bool:
    """Return whether a dedicated launcher runs on a GPU node, whose GPUs it must not see because it has none.

    The MPI operator hides them by itself (v0.8.2, nvidiaDisableEnvVars).
    """
    is_dedicated = job.uses_mpi and not job.launcher_runs_ranks and not job.backend.sets_environment
    return (
        is_dedicated
        and bool(job.launcher_pool.gpu)
        and all(one.name != VISIBLE_GPUS_VARIABLE for one in job.env)
    )


def meeting(job: Job) -> tuple[EnvVar, ...]:
    """Return the variables with each worker's number and rendezvous, if Trainer does not set them."""
    return _build_peer_discovery_env(job, "worker")


def list_meeting_names(job: Job, role: str = "worker") -> frozenset[str]:
    """Return the names of the variables that tell pods of a role of the others, set by gangplan or Kubernetes.

    The Job controller gives each pod its index, unless its template has a variable of that name
    (pkg/controller/job/indexed_job_utils.go of Kubernetes v1.34, addCompletionIndexEnvVariable).
    """
    found = _build_peer_discovery_env(job, role)
    names = [one.name for one in (*found, *(_build_elastic_env(job) if role == "worker" else ()))]
    return frozenset(names if job.uses_mpi else (*names, "JOB_COMPLETION_INDEX"))


def build_role_env(job: Job, role: ResolvedRole) -> tuple[EnvVar, ...]:
    """Return the variables of another role's pods: the job's, those about the workers, and its own."""
    gpus = ValueOrigin("spec", (*role.place, "gpus"))
    hidden = [_build_hidden_gpus_variable(gpus)] if role.pool.gpu and not role.resources.devices else []
    given = (*hidden, *_build_peer_discovery_env(job, role.name), *_list_env_of_job_for_pod(job, role))
    return _merge_own_env_variables(given, role.env, role.place)


def build_step_env(job: Job, step: ResolvedRole) -> tuple[EnvVar, ...]:
    """Return the variables of a step's pod: the job's own and its own, which win.

    It has no workers to know about.
    """
    gpus = ValueOrigin("spec", (*step.place, "gpus"))
    hidden = [_build_hidden_gpus_variable(gpus)] if step.pool.gpu and not step.resources.devices else []
    given = (*hidden, *_list_env_of_job_for_pod(job, step))
    return _merge_own_env_variables(given, step.env, step.place)


def _list_env_of_job_for_pod(job: Job, other: ResolvedRole) -> list[EnvVar]:
    """Return the job's variables for a role's or step's pods, which do not have the scratch of a worker."""
    found = _list_inherited_env(job, other.resources.cpu, other.place)
    has_scratch = any(one.scratch for one in job.mounts)
    return [one for one in found if one.name != SCRATCH_VARIABLE] if has_scratch else found


def _list_inherited_env(job: Job, cpu: Quantity, place: tuple[str | int, ...]) -> list[EnvVar]:
    """Return the job's variables for the one program of another pod or container, whose cores are all its own."""
    own = ValueOrigin("", because="OpenMP sees the cores of the node, so gangplan passes it those requested")
    asked = ValueOrigin("spec", (*place, "cpu"))
    return [
        replace(
            one,
            value=str(count_openmp_threads(cpu)),
            origins=(own, asked, *_mark_origins_aside(*one.origins)),
        )
        if one.is_share
        else one
        for one in job.env
    ]


def _merge_own_env_variables(
    inherited: Iterable[EnvVar], own: Iterable[EnvVar], place: tuple[str | int, ...], asked: Origins = ()
) -> tuple[EnvVar, ...]:
    """Return variables merged with those of a place in the spec, which win.

    `asked` lists further origins that decide whether they are set at all.
    """
    variables = {one.name: one for one in (*inherited, *own)}
    return tuple(
        replace(
            one,
            origins=(
                *one.origins,
                *_mark_origins_aside(ValueOrigin("spec", (*place, "env", one.name)), *asked),
            ),
        )
        for one in sort_variables(variables.values())
    )


def _mark_origins_aside(*origins: ValueOrigin) -> Origins:
    return tuple(one.aside() for one in origins)


def _build_hidden_gpus_variable(*around: ValueOrigin) -> EnvVar:
    """Return the variable that hides a node's GPUs from a pod that asks for none."""
    why = ValueOrigin("", because="it asks for no GPU, so it must not see those of its node")
    could = ValueOrigin(
        "spec", ("env", VISIBLE_GPUS_VARIABLE), f"env in the spec could set {VISIBLE_GPUS_VARIABLE}"
    )
    return EnvVar(VISIBLE_GPUS_VARIABLE, "void", origins=(why, *_mark_origins_aside(could, *around)))


_MEETING = (
    ValueOrigin("", because="what tells the pods of a run of each other"),
    *(ValueOrigin("job", (name,)).aside() for name in ("workers", "framework", "name")),
    ValueOrigin("spec", ("roles",)).aside(),
)


def _build_peer_discovery_env(job: Job, role: str) -> tuple[EnvVar, ...]:
    if job.image.framework not in ("tensorflow", "plain", "paddle"):
        return ()
    # Another role has these variables because the spec has roles, so that origin goes first.
    origins = _MEETING if role == "worker" else _MEETING[::-1]
    if job.image.framework == "paddle":
        return _build_paddle_env(job, origins)
    number = EnvVar("NODE_RANK", field=COMPLETION_INDEX_FIELD, origins=origins)
    if job.image.framework == "plain":
        hosts = _list_pod_host_names(job, "node", job.workers)
        told = {"MASTER_ADDR": hosts[0], "MASTER_PORT": str(RENDEZVOUS_PORT), "NNODES": str(job.workers)}
        told |= {
            hosts_name(one.name): ",".join(_list_pod_host_names(job, one.name, one.workers))
            for one in job.roles
        }
        told |= {"ROLE": role} if job.roles else {}
        return (*(EnvVar(name, value, origins=origins) for name, value in told.items()), number)
    # An evaluator knows about the others, but they do not know about it (tf.estimator.RunConfig).
    counts = {one.name: (one.name, one.workers) for one in job.roles if one.name != "evaluator"}
    counts["worker"] = ("node", job.workers)
    addresses = {
        name: [f"{host}:{RENDEZVOUS_PORT}" for host in _list_pod_host_names(job, entry, count)]
        for name, (entry, count) in sorted(counts.items())
    }
    cluster = json.dumps(addresses, separators=(",", ":"))
    task = f'{{"type":"{role}","index":$(NODE_RANK)}}'
    value = f'{{"cluster":{cluster},"task":{task}}}'
    return number, EnvVar("TF_CONFIG", value, is_expanded=True, origins=origins)


def _build_paddle_env(job: Job, origins: Origins) -> tuple[EnvVar, ...]:
    """Return what Paddle's launcher reads as its options; the start changes the address on the first worker."""
    master, nodes, processes, rank = PADDLE_VARIABLES
    told = {
        master: f"{_list_pod_host_names(job, 'node', 1)[0]}:{RENDEZVOUS_PORT}",
        nodes: str(job.workers),
        processes: str(job.slots),
    }
    number = EnvVar(rank, field=COMPLETION_INDEX_FIELD, origins=origins)
    return (*(EnvVar(name, value, origins=origins) for name, value in told.items()), number)


def hosts_name(role: str) -> str:
    """Return the name of the variable that lists the hosts of a role, such as LOADER_HOSTS."""
    return f"{role.upper().replace('-', '_')}_HOSTS"


def _list_pod_host_names(job: Job, entry: str, count: int) -> list[str]:
    """Return the pod names of a replicated job (JobSet v0.12, pkg/controllers; service of the run's name)."""
    run = f"{job.name}-{HASH_PLACEHOLDER}"
    return [f"{run}-{entry}-0-{number}.{run}" for number in range(count)]


def _merge_default_env(job: Job, defaults: Iterable[EnvVar]) -> tuple[EnvVar, ...]:
    return sort_variables({variable.name: variable for variable in (*defaults, *job.env)}.values())


# Variables that the MPI operator sets in a launcher after those of its template, which would therefore have
# no effect (v0.8.2, newLauncherPodTemplate).
SET_BY_OPERATOR = frozenset(
    {
        *("K_MPI_JOB_ROLE", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES"),
        *("OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames"),
        *("OMPI_MCA_orte_set_default_slots", "OMPI_MCA_plm_rsh_args"),
        *("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "I_MPI_HYDRA_HOST_FILE", "I_MPI_PERHOST"),
        *("HYDRA_HOST_FILE", "HYDRA_LAUNCH_EXTRA_ARGS"),
    }
)


def _build_mpi_family_env(job: Job) -> list[EnvVar]:
    """Return the variables that the MPI family needs and the run's controller does not set."""
    named = ((name, value) for name, value in _list_mpi_family_values(job) if _is_needed(job, name))
    return [
        EnvVar(name, value, origins=(*_OF_FAMILY.get(name, _FOUND), *START_ORIGINS)) for name, value in named
    ]


def _is_needed(job: Job, name: str) -> bool:
    return not job.backend.sets_environment or name not in SET_BY_OPERATOR


_FOUND = (ValueOrigin("", because="what this MPI needs to find its hosts, beyond what Trainer sets"),)
_BINDING = (
    ValueOrigin(
        "",
        because="an mpirun of your own binds its ranks so; by default, pods of a node would share its first cores",
    ),
    ValueOrigin("spec", ("mpi", "bindTo")),
)
_DIRECT = (
    ValueOrigin("", because="only the launcher may open SSH sessions in this network posture"),
    ValueOrigin("job", ("posture",)).aside(),
)
_FROM_LAUNCHER = (
    ValueOrigin(
        "", because="no worker could start the others: the posture denies it, or the launcher has ranks"
    ),
    ValueOrigin("job", ("posture",)).aside(),
    ValueOrigin("spec", ("launcher", "runsRanks")).aside(),
)
_OF_FAMILY: dict[str, Origins] = {
    "I_MPI_HYDRA_BRANCH_COUNT": _FROM_LAUNCHER,
    "I_MPI_PERHOST": (ValueOrigin("job", ("slots",)),),
    "I_MPI_PIN": (
        ValueOrigin("", because="ranks are not bound to cores"),
        ValueOrigin("spec", ("mpi", "bindTo")).aside(),
    ),
    "OMPI_MCA_hwloc_base_binding_policy": _BINDING,
    "OMPI_MCA_plm_rsh_no_tree_spawn": _DIRECT,
    "PRTE_MCA_hwloc_default_binding_policy": _BINDING,
    "PRTE_MCA_plm_ssh_no_tree_spawn": _DIRECT,
}


def _list_mpi_family_values(job: Job) -> list[tuple[str, str]]:
    if job.image.mpi is None:
        return []
    if job.image.mpi.family == "IntelMPI":
        return _list_intel_mpi_values(job)
    if job.image.mpi.family == "MPICH":
        return [
            ("HYDRA_HOST_FILE", HYDRA_HOSTFILE_PATH),
            ("HYDRA_IFACE", "eth0"),
            ("HYDRA_LAUNCHER", "ssh"),
            ("HYDRA_LAUNCHER_EXTRA_ARGS", _SSH_ARGS),
        ]
    return _build_open_mpi_env(job)


def _list_intel_mpi_values(job: Job) -> list[tuple[str, str]]:
    return [
        # Above 16 hosts, Hydra starts the others from workers, which restricted postures deny. If the launcher
        # has ranks, a worker would even start the launcher's, which has no SSH server. 0 starts all from the
        # launcher (Intel MPI 2021.18: 140 of 140; -1 changes nothing). MPICH's Hydra has no such tree.
        *([("I_MPI_HYDRA_BRANCH_COUNT", "0")] if job.posture != "default" or job.launcher_runs_ranks else []),
        ("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", _SSH_ARGS),
        ("I_MPI_HYDRA_HOST_FILE", HYDRA_HOSTFILE_PATH),
        # Hydra tells workers to call back by the bare host name, which other pods cannot resolve; with an
        # interface it passes the address (Intel MPI 2021.18, MPICH 5.0.2).
        ("I_MPI_HYDRA_IFACE", "eth0"),
        ("I_MPI_PERHOST", str(job.slots)),
        *([("I_MPI_PIN", "off")] if job.bind_to == "none" and not is_pinned_by_user(job) else []),
    ]


def _build_open_mpi_env(job: Job) -> list[tuple[str, str]]:
    """Return the variables of Open MPI.

    Open MPI 4 reads what Trainer injects. Open MPI 5 reads none of it and would run on the launcher alone
    (trainer#4028), so its runtime PRRTE gets its own names.

    In restricted postures only the launcher may open SSH sessions, so the tree spawn over workers (from 65
    hosts on) is switched off. The binding is for an mpirun of the user's own: pods of one node see the same
    cores, and by default each would put its first rank on the first (4.1.8 and 5.0.11).
    """
    major = job.image.mpi.major if job.image.mpi else 5
    is_pinned = is_pinned_by_user(job)
    direct = job.posture != "default"
    if major < 5:
        return [
            *([] if is_pinned else [("OMPI_MCA_hwloc_base_binding_policy", job.bind_to)]),
            *([("OMPI_MCA_plm_rsh_no_tree_spawn", "1")] if direct else []),
        ]
    return [
        *([] if is_pinned else [("PRTE_MCA_hwloc_default_binding_policy", job.bind_to)]),
        ("PRTE_MCA_plm_ssh_args", _SSH_ARGS),
        ("PRTE_MCA_prte_default_hostfile", HOSTFILE_PATH),
        *([("PRTE_MCA_plm_ssh_no_tree_spawn", "1")] if direct else []),
    ]


def _build_elastic_env(job: Job) -> tuple[EnvVar, ...]:
    """Return the variables of an elastic run's rendezvous."""
    if job.elastic is None:
        return ()
    from gangplan.plan.elastic import build_elastic_rendezvous_env  # few runs are elastic

    return build_elastic_rendezvous_env(job)
