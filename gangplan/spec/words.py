"""What people bring from other tools (Slurm, SageMaker, Kubernetes, Kubeflow v1, torchrun, Docker): their names of
our fields and values, and what is no field here and why. Patterns in plain words."""

from __future__ import annotations


def bare(name: str) -> str:
    """A name without what tools differ in: its case, dashes, underscores and dots."""
    return name.lower().translate(str.maketrans("", "", "_-. /"))


def _by_name(groups: dict[str, str]) -> dict[str, str]:
    return {bare(name): meant for meant, names in groups.items() for name in names.split()}


# Our field -> its names elsewhere. A field in a block is named by its path.
SYNONYMS = _by_name(
    {
        "workers": "replicas num_replicas nodes num_nodes nnodes n_nodes node_count workerCount num_workers"
        " worker_count instance_count instances num_instances parallelism completions hosts_count pods",
        "slots": "slotsPerWorker slots_per_worker numProcPerNode nproc_per_node ntasks_per_node tasks_per_node ppn"
        " processes processes_per_node processes_per_host procs_per_node ranks_per_node ranks_per_worker",
        "gpus": "gpu_count num_gpus gpus_per_worker gpus_per_node gpus_per_task gpus_per_pod gres accelerators"
        " accelerator_count nvidia.com/gpu amd.com/gpu",
        "gpu.model": "gpu_type gpu_model accelerator accelerator_type device_type",
        "gpu.mig": "mig_profile mig_slice",
        "cpu": "cpus cores num_cpus cpus_per_task cpus_per_worker cpu_count vcpus ncpus",
        "memory": "mem ram mem_per_node memory_per_worker memory_gb mem_gb memory_limit",
        "cpu, memory and gpus": "resources limits requests resource resources_per_worker instance_type machine_type",
        "command": "cmd entrypoint entry_point args arguments run_command program script",
        "image": "image_uri image_name container_image docker_image container docker training_image",
        "data": "volumes volume volume_mounts mounts pvc pvcs datasets dataset inputs input_data channels",
        "env": "environment environment_variables env_vars envs variables export",
        "secrets.env": "secret secret_env env_from",
        "priority": "priority_class priority_class_name qos",
        "timeout": "time time_limit walltime wall_time max_run max_runtime max_run_time max_runtime_in_seconds"
        " activeDeadlineSeconds deadline duration timeout_seconds max_duration",
        "gracePeriod": "terminationGracePeriodSeconds grace_period_seconds grace_time termination_grace_period",
        "retries": "backoffLimit max_retries restarts max_restarts retry restart_policy requeue",
        "clusters": "cluster target targets",
        "placement.nodePool": "partition node_pool pool node_selector constraint node_group nodepools",
        "placement.capacity": "spot use_spot preemptible interruptible",
        "placement.topology": "topology_request",
        "checkpoint": "checkpoints checkpointing checkpoint_config checkpoint_dir output_dir",
        "mpi.implementation": "mpi_implementation mpi_type mpi_family",
        "mpi.flags": "mpi_flags mpi_args mpi_options mpirun_args",
        "launcher.runsRanks": "run_launcher_as_worker runLauncherAsWorker",
        "network.transport": "fabric",
        "network.rdma": "rdma infiniband ib roce efa",
        "team": "project account owner group",
        "name": "job_name jobname title run_name",
        "description": "comment notes",
        "labels": "annotations tags metadata_labels",
        "compliance": "regime regimes regulations",
    }
)  # fmt: skip

# No field of a job, and what to do instead.
_LOGS = "Remove it; what each rank prints is in the log of its pod (kubectl logs)."
_ORDER = "Remove it; runs cannot wait for each other in this version."
_NODES = "Remove it; Kueue chooses the nodes. placement: {nodePool: ...} narrows them to one pool."
_MANIFEST = "A spec is not a Kubernetes manifest: write image, command and workers at the top level."
_IN_IMAGE = (
    "Remove it; the program and its packages are part of the image, or are on a claim that data mounts."
)
_IN_COMMAND = "Remove it; this is a setting of your program: pass it in command or env."
_LAUNCH = "Remove it; gangplan sets the hosts, ports and ranks of the launch."
_PLATFORM = (
    "Remove it; the platform sets this for every run. Patches for a cluster belong in overlays/<cluster>/."
)
_SWEEP = "Remove it; sweeps are not part of this version. Write one spec for each run."
_ABSENT = {
    "Remove it; the cluster's owner gives each team its queue in overlays/<cluster>/cluster.yaml.": "queue queue_name"
    " local_queue cluster_queue kueue.x-k8s.io/queue-name queue_label",
    "Remove it; the namespace is set in specs/<team>/team.yaml.": "namespace ns",
    "Write workers, and slots where a worker runs more than one rank: ranks are workers x slots.": "ntasks np nprocs"
    " num_processes n_procs world_size ranks num_ranks tasks",
    _LOGS: "logs log logging log_dir stdout stderr output error logfile tensorboard",
    _ORDER: "after depends_on dependency dependencies needs dag pipeline stages steps before then",
    _NODES: "nodelist node_list nodename node_name hosts hostfile exclude exclusive affinity tolerations",
    _MANIFEST: "template pod_template spec containers metadata worker master launcher_spec ps chief pytorchReplicaSpecs"
    " mpiReplicaSpecs trainer runtimeRef",
    _IN_IMAGE: "workdir working_dir cwd chdir git repo repository code source source_dir dockerfile build requirements"
    " pip conda packages modules module_load setup pre_script conda_env venv",
    _IN_COMMAND: "hyperparameters epochs batch_size lr learning_rate seed config config_file deepspeed_config fp16"
    " mixed_precision precision model_name parameters params",
    _LAUNCH: "master_addr master_port rdzv_backend rdzv_endpoint node_rank rendezvous port ports ssh ssh_port hostnames",
    _PLATFORM: "serviceAccount service_account service_account_name securityContext privileged hostNetwork"
    " runtimeClassName schedulerName imagePullSecrets image_pull_secrets imagePullPolicy shm shm_size shared_memory"
    " sidecars initContainers livenessProbe ttl ttlSecondsAfterFinished restartPolicy user uid runAsUser dns"
    " podLabels networkPolicy managedBy runPolicy",
    _SWEEP: "sweep array matrix grid search trials experiments job_array",
    "Remove it; gangplan sends no messages. Alerts are set in the cluster's cluster.yaml.": "email mail mail_user"
    " mail_type notify notifications slack alerts",
}  # fmt: skip
ABSENT = {bare(name): help for help, names in _ABSENT.items() for name in names.split()}

RESERVED = {
    "schedule": "schedules are not part of this version",
    "elastic": "a run keeps its number of workers; elastic training is not supported",
    "suspend": "Kueue owns suspend; set state: archived to keep a run from being applied",
    "backend": "every run is a TrainJob, which needs no MPI operator; MPIJobs are not part of this version",
    "preempt": "a run preempts others by its priority alone; write priority: high where the team may",
    "expert": "raw patches are not part of this version; use overlays/<cluster>/kustomization.yaml",
}
KINDS = {"Sweep": "sweeps are not part of this version"}
# Kinds of files of this format, and where they stand.
PLACES = {
    "TrainingJob": "specs/<team>/<job>.yaml",
    "Team": "specs/<team>/team.yaml",
    "Cluster": "overlays/<cluster>/cluster.yaml",
    "ImageCatalog": "images/catalog.yaml",
    "Waiver": "policies/waivers/<name>.yaml",
}

# What each of a few words means, where the words alone do not say.
MEANINGS = {
    "priority": "critical starts before high, high before normal, normal before low; a run may preempt those below it",
    "state": "active runs are applied; an archived run stays in Git and is not applied",
    "framework": "it says how the command is started: by mpirun (mpi, horovod, deepspeed) or by torchrun (torch)",
    "capacity": "spot nodes are cheaper and may be reclaimed",
}
# Field -> our word (or words) -> what people write for it.
VALUES = {
    "priority": {
        "high or critical": "urgent highest asap important top emergency",
        "critical": "p0 max maximum blocker system-cluster-critical",
        "high": "p1 above-normal",
        "normal": "medium default standard regular mid p2",
        "low": "lowest background best-effort idle batch scavenger min p3",
    },
    "state": {
        "archived": "done finished completed complete disabled off stopped stop paused pause suspended inactive deleted"
        " delete removed cancelled canceled old closed succeeded failed ended false",
        "active": "running on enabled run started start live open true pending",
    },
    "framework": {
        "torch": "pytorch torchrun ddp fsdp torch-ddp pytorchjob lightning accelerate torch.distributed",
        "mpi": "openmpi mpirun mpich intelmpi mpijob hpc",
    },
    "implementation": {"OpenMPI": "ompi open", "IntelMPI": "intel impi", "MPICH": "mpich3 mpich4 hydra"},
    "posture": {
        "default": "open none off public normal unrestricted",
        "restricted": "private limited",
        "isolated": "closed strict airgapped air-gapped offline internal",
    },
    "rdma": {"off": "no none false disabled", "required": "yes true on enabled must", "auto": "optional preferred", "per-gpu": "pergpu gpu gpus one-per-gpu"},
    "transport": {"tcp": "ethernet eth socket sockets", "auto": "ib infiniband rdma roce verbs ucx efa"},
    "capacity": {"spot": "preemptible interruptible cheap", "on-demand": "ondemand reserved standard regular"},
    "spread": {"pack": "packed dense binpack", "spread": "scatter spreading true yes"},
    "profile": {"small": "tiny xs s", "medium": "m default normal standard", "large": "big xl l huge"},
    "launch": {"ssh": "rsh default pmi pmi2 srun mpiexec"},
    "compliance": {"pci-dss": "pci", "hipaa": "hippa phi", "gdpr": "dsgvo rgpd eu"},
}  # fmt: skip
# MPI libraries that are known to people and have no launch recipe here.
OTHER_MPI = {
    bare(name): name
    for name in [
        "SpectrumMPI",
        "MVAPICH",
        "MVAPICH2",
        "CrayMPICH",
        "HPE-MPT",
        "MSMPI",
        "PlatformMPI",
        "FujitsuMPI",
        "ParaStationMPI",
    ]
}

DNS_LABEL = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
# Patterns in words; where none is known, the field's example has to do.
FORMS = {
    DNS_LABEL: "lower-case letters, digits and '-', starting with a letter, ending with a letter or digit",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits and '_', not starting with a digit",
    r"^sha256:[0-9a-f]{64}$": "sha256: and 64 hexadecimal digits",
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$": "letters, digits, '-', '_' and '.', starting and ending with a letter or digit",
    r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$": "two or three numbers, such as 1.34.4",
    LABEL_KEY: "letters, digits, '-', '_' and '.', behind a domain and '/' if there is one",
    r"^[1-7]g\.[0-9]+gb$": "slices and memory as NVIDIA writes them, such as 1g.10gb",
}
