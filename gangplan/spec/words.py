"""What people know from other tools (Slurm, SageMaker, Kubernetes, Kubeflow v1, torchrun, Docker).

Their names for fields and values, words that are not fields here, with the reason, and patterns in words.
"""

from __future__ import annotations


def fold_name(name: str) -> str:
    """Return a name without what tools write differently: its case, dashes, underscores and dots."""
    return name.lower().translate(str.maketrans("", "", "_-. /"))


def _index_synonyms_by_name(groups: dict[str, str]) -> dict[str, str]:
    return {fold_name(name): meant for meant, names in groups.items() for name in names.split()}


# Field of gangplan -> its names elsewhere. A field in a block is named by its path.
SYNONYMS = _index_synonyms_by_name(
    {
        "workers": "replicas num_replicas nodes num_nodes nnodes n_nodes node_count workerCount num_workers"
        " worker_count replica_count select instance_count instances num_instances parallelism completions hosts_count pods",
        "elastic": "elasticPolicy elastic_policy elastic_config",
        "elastic.min": "min_replicas min_nodes min_workers",
        "elastic.max": "max_replicas max_nodes max_workers",
        "roles": "replica_specs tfReplicaSpecs tf_replica_specs",
        "slots": "slotsPerWorker slots_per_worker numProcPerNode nproc_per_node ntasks_per_node tasks_per_node ppn"
        " processes processes_per_node processes_per_host procs_per_node ranks_per_node ranks_per_worker",
        "gpus": "gpu_count num_gpus gpus_per_worker gpus_per_node gpus_per_task gpus_per_pod gres accelerators"
        " accelerator_count nvidia.com/gpu amd.com/gpu",
        "gpu.model": "gpu_type gpu_model accelerator accelerator_type device_type",
        "gpu.mig": "mig_profile mig_slice",
        "cpu": "cpus cores n_cpus num_cpus cpus_per_task cpus_per_worker cpu_count vcpus ncpus",
        "memory": "mem ram mem_per_node memory_per_worker memory_gb mem_gb memory_limit memory_mb mem_mb memory_in_gb memory_in_mb",
        "disk": "ephemeral_storage ephemeral-storage disk_size disk_size_gb volume_size disk_gb tmp tmp_size volume_size_in_gb",
        "scratch": "scratch_size scratch_dir empty_dir emptyDir temp_dir tmp_dir local_scratch scratch_space",
        "hugePages": "huge_page hugepages-2Mi hugepages-1Gi",
        "devices": "device extended_resources custom_resources",
        "cpu, memory and gpus": "resources limits requests resource resources_per_worker scaling_config instance_type machine_type deploy",
        "command": "cmd cmds entrypoint entry_point args arguments run_command program script",
        "image": "image_uri image_name container_image docker_image container docker training_image",
        "volumes": "csi csi_volumes ephemeral_volumes ephemeral inline_volumes",
        "data": "volume volume_mounts mounts pvc pvcs datasets dataset inputs input_data channels",
        "workdir": "working_dir working_directory cwd chdir container_workdir",
        "files": "config_maps config_map configMap configMaps configs",
        "env": "environment environment_variables env_vars envs variables export",
        "setup": "initContainers init_containers init_container init before_start prologue",
        "steps": "initializer initializers prepare preprocessing",
        "sidecars": "sidecar sidecarContainers sidecar_containers extra_containers",
        "secrets.env": "secret secret_env env_from",
        "serviceAccount": "service_account_name",
        "queue": "queue_name local_queue kueue.x-k8s.io/queue-name queue_label",
        "priority": "priority_class priority_class_name qos",
        "timeout": "time time_limit walltime wall_time max_run max_runtime max_run_time max_runtime_in_seconds"
        " activeDeadlineSeconds deadline duration execution_timeout timeout_seconds timeout_minutes timeout_hours max_duration",
        "gracePeriod": "terminationGracePeriodSeconds grace_period_seconds grace_time termination_grace_period",
        "logRetention": "log_retention_days logs_retention keep_logs",
        "exitCodes": "exit_code on_exit_codes podFailurePolicy pod_failure_policy",
        "retries": "backoffLimit max_retries restarts max_restarts retry restart restart_policy restartPolicy requeue",
        "clusters": "cluster target targets",
        "placement.nodePool": "partition node_pool pool node_selector constraint node_group nodepools",
        "placement.near": "pod_affinity podAffinity colocate co_locate",
        "placement.apart": "pod_anti_affinity podAntiAffinity anti_affinity",
        "placement.capacity": "spot use_spot use_spot_instances preemptible interruptible",
        "placement.topology": "topology_request",
        "numa.policy": "topologyManager topology_manager topologyManagerPolicy topology_manager_policy",
        "checkpoint": "checkpoints checkpointing checkpoint_config checkpoint_dir output_dir",
        "mpi.implementation": "mpi_implementation mpi_type mpi_family",
        "mpi.flags": "mpi_flags mpi_args mpi_options mpirun_args",
        "launcher.runsRanks": "run_launcher_as_worker runLauncherAsWorker",
        "network.transport": "fabric",
        "network.rdma": "rdma infiniband ib roce efa",
        "team": "project account owner group",
        "name": "job_name jobname title run_name dag_id task_id experiment_name display_name",
        "description": "comment notes", "labels": "annotations tags metadata_labels",
        "compliance": "regime regimes regulations",
    }
)  # fmt: skip

# Words that are not fields of a job, and what to do instead.
_LOGS = "Remove it; what each rank prints is in the log of its pod (kubectl logs)."
_ORDER = "Write after: [JOB] for a run that waits until others are complete (docs/pipelines.md)."
_PARTS = (
    "Write steps: for what the run does before its workers start, or after: [JOB] to wait for other jobs."
)
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
_SWEEP = (
    "Remove it; a job that runs once for each setting is a file with kind: Sweep (gangplan explain Sweep)."
)
_CLAIMS = (
    "Remove it; runs ask for devices by gpus, network.rdma and devices. On clusters whose pools state a deviceClass,"
    " GPUs and RDMA devices come by dynamic resource allocation, the latter with claims that gangplan writes."
)
_ABSENT = {
    _CLAIMS: "resourceClaims resource_claims resourceClaimTemplates deviceClass device_class dra",
    "Remove it; the cluster's owner gives each team its quota in overlays/<cluster>/cluster.yaml.": "cluster_queue",
    "Remove it; the cluster's owner raises the Pod Security of a team in overlays/<cluster>/cluster.yaml, below teams.": "podSecurity"
    " pod_security pod_security_standard",
    "Write workers: with the number of all of them, which are alike; pods that run something else are roles.": "worker_groups"
    " worker_group_specs ray_worker_groups",
    "Write data: {CONNECTION: env} for the keys of a bucket; the team's file declares it below connections.": "s3_data_sets"
    " s3_datasets s3_data s3 buckets bucket",
    "Remove it; the namespace is set in specs/<team>/team.yaml.": "namespace ns",
    "Write workers, and slots where a worker runs more than one rank: ranks are workers x slots.": "ntasks np nprocs"
    " num_processes n_procs world_size ranks num_ranks tasks",
    "Write memory: for the whole worker: what each CPU gets, times cpu.": "mem_per_cpu memory_per_cpu",
    "Write memory: for the whole worker: what each GPU gets, times gpus.": "mem_per_gpu memory_per_gpu",
    "Write gpus: with the number for each worker.": "use_gpu use_gpus",
    "Write gracePeriod: the program gets SIGTERM and so much time before it ends.": "signal stop_signal",
    "Write its options as fields here; gangplan import slurm FILE does so for a whole script.": "sbatch slurm",
    "Write variables in env: {NAME: value}, and those of secrets in secrets: {env: {NAME: SECRET/KEY}}.": "env_file envfile",
    "Remove it; a run that failed starts again at once: retries says how often.": "retry_delay backoff",
    "Remove it; whom a run is for other systems, the team's file says (identity) and its owner grants.": "role role_arn iam_role",
    "Remove it; the program saves to a claim that data mounts, or below CHECKPOINT_DIR with checkpoint: {to: CLAIM}.": "output_path"
    " outputs model_dir s3_output_path checkpoint_s3_uri checkpoint_uri",
    "Remove it; placement: {nodePool: ...} and clusters: [...] say where a run goes.": "compute compute_target runs_on job_tier",
    "Remove it; a file is one job, and its kind is TrainingJob.": "type $schema services jobs version on",
    _LOGS: "metric_definitions logs log logging log_dir stdout stderr output error logfile tensorboard",
    _ORDER: "depends_on dependency dependencies needs dag before then",
    _PARTS: "pipeline stages",
    _NODES: "nodelist node_list nodename node_name hosts hostfile exclude exclusive affinity tolerations",
    _MANIFEST: "pod_template spec containers metadata worker master launcher_spec ps chief pytorchReplicaSpecs"
    " mpiReplicaSpecs trainer runtimeRef",
    _IN_IMAGE: "runtime_env git repo repository code source source_dir dockerfile build requirements"
    " pip conda packages modules module_load pre_script conda_env venv",
    _IN_COMMAND: "hyperparameters epochs batch_size lr learning_rate seed config config_file deepspeed_config fp16"
    " mixed_precision precision model_name params",
    _LAUNCH: "distribution master_addr master_port rdzv_backend rdzv_endpoint node_rank rendezvous port ports ssh ssh_port hostnames",
    _PLATFORM: "securityContext privileged hostNetwork"
    " runtimeClassName schedulerName imagePullSecrets image_pull_secrets imagePullPolicy shm shm_size shared_memory"
    " livenessProbe ulimits runtime cleanPodPolicy subnets security_group_ids vpc ttl ttlSecondsAfterFinished user uid runAsUser dns"
    " podLabels networkPolicy managedBy runPolicy",
    _SWEEP: "sweep array matrix strategy grid search trials experiments job_array",
    "Remove it; gangplan sends no messages. Alerts are set in the cluster's cluster.yaml.": "email mail mail_user"
    " mail_type notify notifications slack alerts",
}  # fmt: skip
ABSENT_FIELDS = {fold_name(name): help for help, names in _ABSENT.items() for name in names.split()}
# The same for fields inside a field of any file: the field or kind of file, the help, and the field that the
# help writes.
_NO_HOSTS = "Write cidr: with the addresses behind the name, such as 10.20.0.0/16: a NetworkPolicy knows no host names."
_NO_QUOTA = "Remove it; its owner gives each team its quota in overlays/<cluster>/cluster.yaml, below teams."
_NO_MEMBERS = "Write groups: {dataScientists: [GROUP]}: the identity provider says who is in a group."
_BY_TEAM = "Write it for each team below teams:, such as teams: {nlp: {queue: gpu, quota: {POOL: {gpus: 16}}, borrow: {POOL: {gpus: 8}}}}."
_BY_POOL = (
    "Remove it; pools below nodePools: have the labels and taints of their nodes, and runs get what follows."
)
_BY_NODE = (
    "Write what one node has for pods: cpu and memory as kubectl get nodes shows them allocatable, and"
    " gpu: {model: MODEL, count: 8}."
)
_ABSENT_INSIDE = {
    (
        "Cluster",
        _BY_TEAM,
        "",
    ): "queues queue cluster_queue cluster_queues local_queues quota quotas gpu_quota resource_quota"
    " nominal_quota borrowing_limit lending_limit borrow lend weight weights flavors resource_flavors projects",
    ("Cluster", _BY_POOL, ""): "tolerations taints node_selector node_labels labels affinity",
    (
        "Cluster",
        "Remove it; nothing outside a run reaches its pods. Where runs may go, egress: names.",
        "",
    ): "ingress ingresses",
    (
        "Cluster",
        "Remove it; a team's file names them: pullSecrets: [NAME].",
        "",
    ): "image_pull_secrets image_pull_secret pull_secrets pull_secret",
    ("Cluster", "Remove it; a team's file says its namespace.", ""): "namespace namespaces namespace_prefix",
    ("nodePools", _BY_NODE, "cpu"): "instance_type instance_types machine_type vm_size sku flavor shape",
    ("egress", _NO_HOSTS, "cidr"): "host hosts hostname fqdn dns domain domains url name",
    ("Team", _NO_QUOTA, ""): "quota quotas limits",
    ("Team", _NO_MEMBERS, "groups"): "members users people",
}
# Further names of fields in a kind of file, or below one of its fields, which mean another field elsewhere.
_SYNONYMS_INSIDE = {
    ("steps", "command"): "run script bash_command",
    ("nodePools", "count"): "nodes size replicas num_nodes instances node_count",
    ("nodePools", "labels"): "node_selector selector node_labels match_labels",
    ("nodePools", "taints"): "tolerations node_taints",
    ("nodePools", "capacity"): "spot preemptible capacity_type",
    ("nodePools", "autoscale"): "autoscaling autoscaler min_nodes max_nodes min_size max_size",
    ("nodePools", "networkGbps"): "bandwidth network_bandwidth bandwidth_gbps",
    ("nodePools", "price"): "cost price_per_hour hourly_price",
    ("Cluster", "nodePools"): "pools nodes node_groups",
    ("Cluster", "registries"): "allowed_registries image_registries trusted_registries",
    ("Cluster", "policies.packs"): "packs policy_packs",
    ("Cluster", "policies"): "admission_policies",
    ("Cluster", "monitoring"): "prometheus grafana observability",
    ("Cluster", "secretStore"): "external_secrets cluster_secret_store vault",
    ("Cluster", "cohorts"): "cohort",
    ("Cluster", "limits.priorities"): "priorities priority_classes workload_priority_classes",
    ("teams", "quota"): "quotas nominal_quota gpu_quota gpus resources limits guaranteed",
    ("teams", "borrow"): "borrowing_limit borrow_limit borrowing max_borrow",
    ("teams", "lend"): "lending_limit lend_limit lending",
    ("teams", "weight"): "fair_share fair_sharing fair_share_weight fair_sharing_weight share",
    ("teams", "queue"): "local_queue queue_name",
    ("teams", "cohort"): "cohort_name parent",
    ("teams", "monthlyBudget"): "budget",
    ("teams", "posture"): "network network_policy isolation",
    ("Team", "pullSecrets"): "image_pull_secrets image_pull_secret registry_secrets",
    ("Team", "contact"): "email mail owner owners contacts lead slack",
    ("Team", "claims"): "pvc pvcs volumes storage persistent_volume_claims",
    ("Team", "connections"): "buckets bucket s3 object_stores",
    ("images", "repository"): "image registry repo url uri name",
    ("images", "digest"): "sha sha256 hash",
    ("images", "cuda"): "cuda_version",
    ("images", "user.uid"): "run_as_user uid",
    (
        "Sweep",
        "maxConcurrent",
    ): "parallelism parallel parallel_trial_count max_parallel max_parallel_trials concurrency"
    " max_concurrent_trials max_concurrent_jobs max_parallel_jobs",
    ("Sweep", "parameters"): "matrix grid search_space sweep strategy hyperparameters params parameter",
    ("Sweep", "template"): "job trial trial_template trial_spec spec job_template",
    ("JobTemplate", "parameters"): "params parameter inputs arguments args variables vars values",
    ("JobTemplate", "job"): "template spec",
}
SYNONYMS_INSIDE = {
    (place, fold_name(name)): field
    for (place, field), names in _SYNONYMS_INSIDE.items()
    for name in names.split()
}
ABSENT_INSIDE = {
    (field, fold_name(name)): (help, written)
    for (field, help, written), names in _ABSENT_INSIDE.items()
    for name in names.split()
}

RESERVED_FIELDS = {
    "suspend": "Kueue owns suspend; set state: stopped to end a run",
    "preempt": "a run preempts others by its priority alone; write priority: high where the team may",
    "expert": "raw patches are not part of this version; use overlays/<cluster>/kustomization.yaml",
}
# Kinds that `gangplan import` reads.
IMPORTABLE_KINDS = frozenset(
    ("MPIJob", "PyTorchJob", "TrainJob", "JobSet", "Job", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob")
)
# Kinds of files of this format, and where they are.
PATH_OF_KIND = {
    "TrainingJob": "specs/<team>/<job>.yaml",
    "Sweep": "specs/<team>/<sweep>.yaml",
    "JobTemplate": "jobtemplates/<name>.yaml or specs/<team>/templates/<name>.yaml",
    "Team": "specs/<team>/team.yaml",
    "Cluster": "overlays/<cluster>/cluster.yaml",
    "ImageCatalog": "images/catalog.yaml",
    "Waiver": "policies/waivers/<name>.yaml",
}

# The meanings of some words, for helps that need more than the words alone.
FIELD_MEANINGS = {
    "priority": "critical starts before high, high before normal, normal before low; a run may preempt those below it",
    "state": "active runs are applied; a stopped run is ended and kept as a record; an archived run stays in Git and is not applied",
    "framework": "it says how the command is started: by mpirun (mpi, horovod, deepspeed) or by torchrun (torch)",
    "capacity": "spot nodes are cheaper and may be reclaimed",
}
# The same, for a word that resembles none that is allowed.
FIELD_ALTERNATIVES = {
    "compliance": "for another law, such as CCPA, the platform writes policies of its own (docs/own-policies.md); residency keeps data in a region",
}
# Field -> value (or values) of gangplan -> what people write for it.
VALUE_SYNONYMS = {
    "priority": {
        "high or critical": "urgent highest asap important top emergency",
        "critical": "p0 max maximum blocker system-cluster-critical",
        "high": "p1 above-normal",
        "normal": "medium default standard regular mid p2",
        "low": "lowest background best-effort idle batch scavenger min p3",
    },
    "state": {
        "archived": "done finished completed complete inactive old closed succeeded failed ended",
        "stopped": "disabled off stop paused pause suspended suspend deleted delete removed cancelled canceled cancel"
        " kill killed abort aborted false",
        "active": "running on enabled run started start live open true pending",
    },
    "framework": {
        "torch": "pytorch torchrun ddp fsdp torch-ddp pytorchjob lightning accelerate torch.distributed",
        "jax": "flax pax jaxjob",
        "tensorflow": "tf tfjob keras multiworkermirrored",
        "xgboost": "xgb xgboostjob rabit",
        "paddle": "paddlepaddle paddlejob fleet fleetrun paddle.distributed",
        "plain": "none other generic custom shell indexed",
        "mpi": "openmpi mpirun mpich intelmpi mpijob hpc",
    },
    "implementation": {"OpenMPI": "ompi open hpcx", "IntelMPI": "intel impi", "MPICH": "mpich3 mpich4 hydra"},
    "accessModes": {"ReadWriteMany": "rwx", "ReadWriteOnce": "rwo", "ReadOnlyMany": "rox", "ReadWriteOncePod": "rwop"},
    "environment": {"prod": "production live prd", "dev": "development test staging qa"},
    "posture": {
        "default": "open none off public normal unrestricted",
        "restricted": "private limited",
        "isolated": "closed strict airgapped air-gapped offline internal",
    },
    "rdma": {"off": "no none false disabled", "required": "yes true on enabled must", "auto": "optional preferred", "per-gpu": "pergpu gpu gpus one-per-gpu"},
    "transport": {"tcp": "ethernet eth socket sockets", "auto": "ib infiniband rdma roce verbs ucx efa"},
    "medium": {"disk": "ssd hdd emptydir ephemeral default", "memory": "ram tmpfs shm ramdisk", "local": "nvme local-ssd instance-store lssd"},
    "capacity": {"spot": "preemptible interruptible cheap", "on-demand": "ondemand reserved standard regular"},
    "spread": {"pack": "packed dense binpack", "spread": "scatter spreading true yes"},
    "profile": {"small": "tiny xs s", "medium": "m default normal standard", "large": "big xl l huge"},
    "launch": {"ssh": "rsh default pmi pmi2 srun mpiexec"},
    "compliance": {"pci-dss": "pci", "hipaa": "hippa phi", "gdpr": "dsgvo rgpd eu"},
}  # fmt: skip
# Known MPI libraries that gangplan cannot launch.
OTHER_MPI = {
    fold_name(name): name
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
        "ParaStation",
        "MVAPICH-Plus",
        "custom",
    ]
}
OTHER_MPI_HELP = {
    fold_name("SpectrumMPI"): (
        "Choose an image with one of them. IBM's licence does not let others pass Spectrum MPI on: it can only be in an image of "
        "your own, which gangplan does not start."
    ),
    fold_name("custom"): (
        "For a build of your own, write the family whose mpirun it has, such as OpenMPI for HPC-X, and its version; it runs at your "
        "own support."
    ),
}

REPOSITORY_FORM = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)+$"
DIGEST_FORM = r"^sha256:[0-9a-f]{64}$"
DNS_LABEL = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
# Patterns in words; for other patterns, the field's example is used.
PATTERN_DESCRIPTIONS = {
    r"^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$": "the name of a CSI driver, such as secrets-store.csi.k8s.io",
    r"^[a-z0-9]+$": "the name of a file system, such as ext4",
    r"^(hf://(datasets/)?[A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.]*(@[A-Za-z0-9][-A-Za-z0-9_./]*)?|[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[!-~]+)?)$": "hf://OWNER/NAME or hf://datasets/OWNER/NAME, with @REVISION, or a connection of the team with a path",
    r"^[a-z0-9]{3,24}$": "3 to 24 lower-case letters and digits",
    r"^/": "a path that begins with '/'",
    DNS_LABEL: "lower-case letters, digits and '-', starting with a letter, ending with a letter or digit",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits and '_', not starting with a digit",
    DIGEST_FORM: "sha256: and 64 hexadecimal digits",
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$": "letters, digits, '-', '_' and '.', starting and ending with a letter or digit",
    r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$": "two or three numbers, such as 1.34.4",
    LABEL_KEY: "letters, digits, '-', '_' and '.', behind a domain and '/' if there is one",
    r"^\./[^/].*$": "./ and the path of a file next to the sweep",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(@[1-9][0-9]*)?$": "the name of a template, with @ and a version if one is meant",
    r"^(0?\.[0-9]{1,4}|1(\.[0-9]{1,4})?)(-(0?\.[0-9]{1,4}|1(\.[0-9]{1,4})?))?$": "a share such as 0.9, or from one to another: 0.85-0.95",
    r"^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$": "letters, digits and any of -_./, starting and ending with a letter or digit",
    r"^[A-Za-z0-9]([-A-Za-z0-9._+]*[A-Za-z0-9])?$": "letters, digits and any of -_.+, starting and ending with a letter or digit",
    r"^[a-z2-7]{8}$": "the name of a trial: eight letters and digits from 2 to 7",
    r"^[A-Za-z_][A-Za-z0-9_-]*$": "letters, digits, '_' and '-', not starting with a digit",
    r"^[1-7]g\.[0-9]+gb$": "slices and memory as NVIDIA writes them, such as 1g.10gb",
    r"^[0-9]+(\.[0-9]+|m)?$": "a number of cores, such as 8, 0.5 or 500m",
    r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)$": "a number and its unit, such as 32Gi",
    r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$": "a time such as 30m, 24h, 7d or 1h30m",
    r"^[a-z]([-a-z0-9]*[a-z0-9])?-[0-9a-f]{8}$": "the name of a run: the job's, '-' and eight hexadecimal digits",
    r"^(metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)|metadata\.(labels|annotations)\['[^']+'\])$": "a field of a pod that Kubernetes gives to containers: metadata.name, .namespace, .uid, .labels['KEY'], .annotations['KEY'], spec.nodeName, .serviceAccountName, status.hostIP, .podIP",
    r"^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-[A-Za-z0-9]+)$": "limits or requests, a dot, and cpu, memory, ephemeral-storage or hugepages-SIZE",
    r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-._a-zA-Z0-9]+$": "the name of a ConfigMap, a slash and its key",
    r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": "lower-case letters, digits, '-' and '.', starting and ending with a letter or digit",
    r"^https?://[!-~]+$": "an address that begins with https://, without spaces",
    r"^https?://[A-Za-z0-9.-]+(:[0-9]+)?$": "https:// and a host, with a port if it needs one, and no path",
    r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$": "3 to 63 lower-case letters, digits, '-' and '.', as buckets are called",
    r"^[A-Za-z0-9][-A-Za-z0-9_.@/=, ]*$": "letters, digits, blanks and any of -_.@/=, as groups are called",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "a day such as 2026-12-31",
    r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": "letters, digits, '-', '_' and '.', starting and ending with a letter or digit",
    r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?$": "a registry's host, with a port or a path if it needs one, and no https://",
    REPOSITORY_FORM: "a registry's host and the path in it, without tag or digest",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": "NAMESPACE/NAME of a service account",
    r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": "a resource with its domain, such as nvidia.com/gpu",
    r"^[0-9]{1,4}(\.[0-9]{1,4}){1,3}$": "two to four numbers with dots, such as 570.124.06",
    r"^[A-Za-z0-9(][A-Za-z0-9 .()+:-]*$": "an SPDX expression, such as Apache-2.0 or MIT AND BSD-3-Clause",
    r"^[^\s,=^/:]+$": "the name of a network interface",
    r"^[A-Za-z0-9._:%\[\]-]+$": "the name or address of a server",
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?(@[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$": "NAMESPACE/NAME of a NetworkAttachmentDefinition, in lower-case letters, digits and '-'",
    r"^[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+)?$": "an adapter, with ':' and its port if it has several, such as mlx5_0:1",
    r"^[A-Z][A-Z_]*[A-Z]$": "a capability as Linux names it, without CAP_, such as IPC_LOCK",
    r"^[a-z0-9][a-zA-Z0-9._/:-]*(@sha256:[0-9a-f]{64})?$": "an image with its registry, best with @sha256: and its digest",
    r"^[A-Za-z0-9][-A-Za-z0-9_./]*$": "the beginning of a resource's name, such as networking.example.com/",
    r"^arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$": "the ARN of a role, such as arn:aws:iam::123456789012:role/NAME",
    r"^[a-z][-a-z0-9]{4,28}[a-z0-9]@[-a-z0-9.:]+\.iam\.gserviceaccount\.com$": "NAME@PROJECT.iam.gserviceaccount.com",
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$": "a UUID in lower case",
    r"^[A-Z]{3}$": "three capital letters, such as EUR",
    r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$": "letters, digits, '_', '.' and '-', at most 128",
    r"^[0-9]+(\.[0-9]+){0,2}$": "one to three numbers, such as 5.0.8",
    r"^[a-z?*][-a-z0-9?*]*$": "a name; * stands for any characters, ? for one",
    r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$": "the id of a rule or of a policy, such as run-too-long",
}
