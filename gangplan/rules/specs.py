"""Rules about a single spec: counts, limits, images, data, environment, placement."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Deduplication, Rule

IMAGE_MISSING = Rule(
    "image-missing",
    ERROR,
    "Neither the spec nor its team or cluster names an image.",
    why="No image would suit everybody, and gangplan does not make one up.",
    fix="Add image: with a name from images/catalog.yaml, or a default in team.yaml.",
)

IMAGE_UNKNOWN = Rule(
    "image-unknown",
    ERROR,
    "The image is not in the catalog.",
    why=(
        "Only images in the catalog are pinned by digest and known to contain the MPI and the SSH server "
        "that the launch needs."
    ),
    fix="Correct the name, or add the image to images/catalog.yaml.",
)

IMAGE_DIGEST_OPEN = Rule(
    "image-digest-open",
    WARNING,
    "The digest of an image is still to be looked up.",
    why=(
        "gangplan import writes zeros where a source names an image by its tag alone. No image has that digest, so "
        "the pods of a run would wait for it until its deadline."
    ),
    fix="Add its tag and run `gangplan images pin`, or write the digest that skopeo inspect prints.",
)

IMAGE_WITHOUT_MPI = Rule(
    "image-without-mpi",
    ERROR,
    "The framework needs an MPI that the image does not have.",
    why=(
        "mpirun starts Horovod, DeepSpeed and MPI jobs. An image without it fails in its first second, "
        "after waiting for its GPUs."
    ),
    fix="Choose an image with MPI, or set framework: torch.",
)

REGISTRY_UNTRUSTED = Rule(
    "registry-untrusted",
    ERROR,
    "The cluster would pull the image from a registry that it does not trust.",
    why=(
        "The cluster file lists the registries that its admission policy allows. Images from any other "
        "are refused when the pods are created, after the run was admitted."
    ),
    fix="Mirror the image, add a mirror to the cluster file, or choose another image.",
)

LICENCE_NOT_ACKNOWLEDGED = Rule(
    "licence-not-acknowledged",
    ERROR,
    "Intel MPI is used without acknowledging its licence.",
    why=("Intel MPI has licence terms of its own. Somebody has to accept them, and Git records who."),
    fix="Add mpi: {licenseAcknowledged: true} once you may use it.",
)

MPI_MISMATCH = Rule(
    "mpi-mismatch",
    ERROR,
    "The spec asks for a different MPI from the one in the image.",
    why=(
        "Each MPI starts in its own way. With the wrong one, the ranks do not find each other, or each "
        "runs alone."
    ),
    fix="Remove the line, or choose another image.",
)

MPI_LAUNCH = Rule(
    "mpi-launch",
    ERROR,
    "This way of starting ranks is not supported.",
    why=(
        "Trainer prepares SSH keys and a hostfile for its runs; starting by PMIx would need a plugin "
        "that no supported version has."
    ),
    fix="Remove the line; runs then use ssh.",
)

MPI_VERSION = Rule(
    "mpi-version",
    ERROR,
    "The image contains an MPI version that gangplan cannot start.",
    why=(
        "The variables and options of the launch differ from one major version to the next (Open MPI 5 "
        "reads none of what Open MPI 4 reads). gangplan starts only versions that were tried."
    ),
    fix="Choose an image with one of the listed versions.",
)

COMMAND_NESTED = Rule(
    "command-nested",
    ERROR,
    "A launcher would start another launcher on every rank.",
    why=(
        "mpirun, torchrun and the like start a program once on every rank. If that program is itself a "
        "launcher, each of N ranks starts N ranks again: N times N processes."
    ),
    fix="Keep one of the two launchers.",
)

RANKS_MISMATCH = Rule(
    "ranks-mismatch",
    ERROR,
    "The number of ranks in the command differs from the run's.",
    why=(
        "Workers times slots is the number of ranks, and the hostfile says so. With another -np "
        "mpirun refuses, oversubscribes, or leaves GPUs idle."
    ),
    fix="Write the right number, or {ranks} to let gangplan fill it in.",
)

LAUNCHER_ONE_WORKER = Rule(
    "launcher-one-worker",
    ERROR,
    "A launcher that runs ranks needs a second worker.",
    why=(
        "Trainer creates max(numNodes - 1, 1) workers next to such a launcher, so one worker would become "
        "two pods and twice the GPUs (Trainer 2.3, mpi.go)."
    ),
    fix="Raise workers, or remove runsRanks.",
)

LAUNCHER_RESOURCES = Rule(
    "launcher-resources",
    ERROR,
    "A launcher that runs ranks cannot have a size of its own.",
    why=(
        "Such a launcher is a worker, and Trainer gives it the resources of a worker. Any other size "
        "would silently be ignored."
    ),
    fix="Remove launcher.cpu and launcher.memory, or runsRanks.",
)

LAUNCHER_TORCH = Rule(
    "launcher-torch",
    ERROR,
    "A torch job has no launcher.",
    why=("torchrun starts on every worker by itself; there is no pod that a launcher block could describe."),
    fix="Remove the launcher block.",
)

WORKERS_OVER_LIMIT = Rule(
    "workers-over-limit",
    ERROR,
    "The run has more workers than the cluster allows.",
    why=(
        "limits.workers in the cluster file limits each run, so that a typo cannot request a whole data "
        "centre."
    ),
    fix="Use fewer workers with more GPUs each, or ask the cluster's owner.",
    waivable=True,
)

WORKERS_MANY = Rule(
    "workers-many",
    WARNING,
    "The run has very many workers.",
    why=(
        "Start-up and network load grow with every worker, and one failure stops them all. Up to 64 "
        "proved harmless; more GPUs per worker are cheaper."
    ),
    fix="Prefer more GPUs per worker where nodes have them.",
    waivable=True,
)

WORKERS_ONE = Rule(
    "workers-one",
    NOTE,
    "One worker is not distributed training.",
    why=(
        "With MPI, a run with one worker pays for a launcher that connects it to nothing; with another framework, "
        "one worker without several ranks or GPUs trains as a single process does. It is fine for a first try."
    ),
    fix="Raise workers, or ignore this.",
    waivable=True,
)

GPUS_UNUSUAL = Rule(
    "gpus-unusual",
    WARNING,
    "The number of GPUs per worker does not divide a node evenly.",
    why=("Nodes have 4 or 8 GPUs. Workers with 3 or 5 leave some on every node that nobody can use."),
    fix="Use 1, 2, 4 or 8 GPUs per worker.",
    waivable=True,
)

SLOTS_NOT_GPUS = Rule(
    "slots-not-gpus",
    WARNING,
    "The number of ranks per worker differs from its number of GPUs.",
    why=(
        "Frameworks bind one rank to one GPU. With more ranks than GPUs, ranks share a GPU and slow each "
        "other down; with fewer, GPUs stay idle."
    ),
    fix="Omit slots to run one rank per GPU.",
    waivable=True,
)

TIMEOUT_OVER_LIMIT = Rule(
    "timeout-over-limit",
    ERROR,
    "The timeout is longer than the cluster allows, or allows this team.",
    why=(
        "A run that hangs holds its GPUs until its deadline. The cluster's owner limits how long that may be: "
        "limits.timeoutHours for everybody, timeoutHours of a team for its runs."
    ),
    fix="Write a shorter timeout and save checkpoints, so that the next run can resume.",
    waivable=True,
)

TIMEOUT_NOT_EXTENDED = Rule(
    "timeout-not-extended",
    ERROR,
    "A timeout of more than a day has not been confirmed.",
    why=(
        "Most timeouts longer than a day are a mistake in the unit. A run that is meant to be long says "
        "so in one more line, which reviewers see."
    ),
    fix="Add extendedTimeout: true.",
)

PRIORITY_UNKNOWN = Rule(
    "priority-unknown",
    ERROR,
    "The priority does not exist on the cluster.",
    why=(
        "With a WorkloadPriorityClass that does not exist, Kueue refuses the run's Workload. The names "
        "are those in the cluster file."
    ),
    fix="Use one of the listed priorities.",
)

PRIORITY_NOT_ALLOWED = Rule(
    "priority-not-allowed",
    ERROR,
    "The team may not use this priority.",
    why=(
        "The team's priorities in the cluster file limit what it may ask for, so that a high priority "
        "keeps its meaning."
    ),
    fix="Use one of the team's priorities, or ask the cluster's owner.",
)

SPOT_WITHOUT_RETRY = Rule(
    "spot-without-retry",
    ERROR,
    "A run on spot nodes cannot resume after losing a node.",
    why=(
        "Spot nodes can disappear at short notice. Without a checkpoint and a retry, everything done "
        "until then is lost."
    ),
    fix="Add checkpoint: and retries: 1 or more, or use on-demand nodes.",
    waivable=True,
)

POOL_UNKNOWN = Rule(
    "pool-unknown",
    ERROR,
    "The node pool does not exist on the cluster.",
    why=(
        "The cluster file declares pools with their sizes and labels. A pool that is not declared has no "
        "node for the run."
    ),
    fix="Use one of the listed pools, or leave nodePool out.",
)

POOL_NO_FIT = Rule(
    "pool-no-fit",
    ERROR,
    "No node of the cluster is large enough for one worker.",
    why=(
        "Kueue admits by quota and does not look at nodes. The run would be admitted and hold its quota "
        "while its pods stay Pending."
    ),
    fix="Request less per worker, name another pool, or use another cluster.",
)

POOL_NOT_ALLOWED = Rule(
    "pool-not-allowed",
    ERROR,
    "The team has no quota in the pool that the spec names.",
    why=(
        "A queue without quota in a flavor never admits a run there; it waits forever with NoMatchingFlavor."
    ),
    fix="Name a pool of the team, or leave nodePool out.",
)

GPU_MODEL_UNKNOWN = Rule(
    "gpu-model-unknown",
    ERROR,
    "No pool that the team may use has this GPU model.",
    why=("The model selects the pool. With a model that no pool has, no worker can be placed."),
    fix=("Use one of the listed models, or leave it out to use the first pool that can take the whole run."),
)

RDMA_MISSING = Rule(
    "rdma-missing",
    ERROR,
    "RDMA is required where the pool has none.",
    why=(
        "A run that needs InfiniBand or RoCE is many times slower over TCP, so with rdma: required "
        "gangplan refuses the run instead of falling back."
    ),
    fix=(
        'Write rdma: "off" to use TCP, or name another pool or cluster. With rdma: auto, a run uses what '
        "its pool has, and a warning says when that is TCP."
    ),
)

RDMA_FALLBACK = Rule(
    "rdma-fallback",
    WARNING,
    "RDMA was requested, but the run falls back to TCP.",
    why=(
        "The pool has no RDMA devices. The run works, but gradients travel over TCP, which may "
        "take much longer."
    ),
    fix=(
        'Write rdma: "off" if TCP is good enough, or name a pool that has RDMA. With rdma: required, '
        "gangplan refuses the run where there is none."
    ),
    waivable=True,
)

TOPOLOGY_LEVEL_UNKNOWN = Rule(
    "topology-level-unknown",
    ERROR,
    "The topology level does not exist on the cluster.",
    why=(
        "Levels are named in the cluster file. Kueue ignores or refuses a level whose node label "
        "is not in its Topology."
    ),
    fix="Use one of the listed levels.",
)

TOPOLOGY_MISSING = Rule(
    "topology-missing",
    ERROR,
    "The run requests a topology level in a pool without a topology.",
    why=(
        "A flavor without a topology never accepts a pod set with a topology request; the run would wait "
        "forever."
    ),
    fix="Remove the request, or name a pool with a topology.",
)

CLAIM_UNKNOWN = Rule(
    "claim-unknown",
    ERROR,
    "The name is neither a claim nor a connection of the team.",
    why=(
        "A pod that mounts a claim that does not exist stays Pending forever. Claims belong to one team; "
        "those of others are in other namespaces."
    ),
    fix=(
        "Correct the name, or declare it in the team's team.yaml: under claims: ckpt: {accessModes: [ReadWriteMany]} "
        "for a PersistentVolumeClaim of that name in the team's namespace."
    ),
)

CLAIM_NOT_SHARED = Rule(
    "claim-not-shared",
    ERROR,
    "Several workers cannot mount this claim.",
    why=(
        "A ReadWriteOnce volume is attached to one node, and only one pod in the whole cluster can use a "
        "ReadWriteOncePod claim. The first worker gets it; the others stay in ContainerCreating or are "
        "never scheduled. A run with one worker works, because then only the worker mounts the claim, "
        "and the launcher does not."
    ),
    fix="Use a claim with ReadWriteMany, or workers: 1.",
    echo=Deduplication.RUN,
)

CLAIM_READ_ONLY = Rule(
    "claim-read-only",
    ERROR,
    "Checkpoints cannot be written to a read-only claim.",
    why=("The first checkpoint fails, usually after an hour of training, and the run fails with it."),
    fix="Name a writable claim.",
)

CONNECTION_NOT_MOUNTABLE = Rule(
    "connection-not-mountable",
    ERROR,
    "A bucket without a claim cannot be mounted as a folder.",
    why="An S3 connection is only an address and keys. It takes a claim to see a bucket as files.",
    fix="Write env instead of a folder, or ask for a claim that exposes the bucket.",
)

CONNECTION_CLASH = Rule(
    "connection-clash",
    ERROR,
    "Two connections need the same variables for different addresses or keys.",
    why=(
        "AWS tools and SDKs read one endpoint and one pair of keys from the environment, so requests to "
        "the second bucket would use the keys of the first."
    ),
    fix="Use one of them in this spec, or a claim that exposes the other bucket as files.",
)

MOUNT_COLLISION = Rule(
    "mount-collision",
    ERROR,
    "Two things are mounted at the same path.",
    why=(
        "The second mount hides the first, or Kubernetes refuses the pod. Some paths belong to the "
        "run itself, such as the hostfile and the shared memory."
    ),
    fix="Choose another folder.",
)

MOUNT_HIDES = Rule(
    "mount-hides",
    ERROR,
    "A claim or secret is mounted over what the run needs from its image.",
    why=(
        "A mount hides everything that the image has at that path. Without the folder of sshd's "
        "configuration, no worker ever answers; without /usr or /etc, not even the shell starts; only "
        "root may read below /root, and a run is never root; a claim at /tmp is one scratch folder for "
        "all pods, where MPI expects one per host."
    ),
    fix=(
        "Choose a separate folder, such as /data. A folder further down, such as /home/mpiuser/data or "
        "/etc/myapp, is fine."
    ),
)

MOUNT_INSIDE = Rule(
    "mount-inside",
    ERROR,
    "A file or folder is mounted inside a mount that has no room for it.",
    why=(
        "runc creates the missing place of a mount (v1.3, createMountpoint), but not inside a mounted file and "
        "not inside a read-only mount. In ConfigMaps and Secrets the kubelet creates it beforehand, always as a "
        "folder (Kubernetes v1.34, MakeNestedMountpoints), on which no file can be mounted (kubernetes#61545). "
        "No container with both mounts ever starts."
    ),
    fix="Choose a path that is not inside the other mount.",
)

MOUNT_POINT = Rule(
    "mount-point",
    WARNING,
    "A mount needs a folder or file that a read-only volume may not have.",
    why=(
        "runc creates the missing place of a mount (v1.3, createMountpoint), but not in a claim, a bucket or "
        "another volume that is mounted read-only (kubernetes#121294). If the volume does not have it already, "
        "no container with both mounts ever starts."
    ),
    fix="Choose a path outside the volume; ignore this if the volume contains the folder or file.",
    waivable=True,
)

SECRET_UNKNOWN = Rule(
    "secret-unknown",
    ERROR,
    "The team does not declare this secret.",
    why=(
        "A pod that refers to a secret that does not exist stays in CreateContainerConfigError. Only "
        "declared secrets are fetched into the team's namespace."
    ),
    fix="Correct the name, or declare the secret in team.yaml.",
)

ENV_TWICE = Rule(
    "env-twice",
    ERROR,
    "A variable is set in env and in secrets.env.",
    why=(
        "Kubernetes takes the last of two variables with the same name, so one of the two lines has no "
        "effect."
    ),
    fix="Keep one of them.",
)

ENV_RESERVED = Rule(
    "env-reserved",
    ERROR,
    "A variable belongs to Trainer or to the launch.",
    why=(
        "Trainer 2.3 refuses its own names in a run, older versions silently overwrite them (mpi.go, "
        "torch.go). Other reserved names are used to start the ranks, or tell the pods of a run of each "
        "other, such as NODE_RANK of plain; another value would win, and each worker would have the same. "
        "checkpoint sets CHECKPOINT_DIR, CHECKPOINT_INTERVAL and CHECKPOINT_RESUME; a spec without it may."
    ),
    fix="Remove it; whatever can be set has a field in the spec.",
)

ENV_LITERAL = Rule(
    "env-literal",
    WARNING,
    "A variable in a value of env is never expanded.",
    why=(
        "Kubernetes passes the values of env to the program as written, and gangplan keeps $(NAME) as it "
        "is, too. A PYTHONPATH of $PYTHONPATH:/app contains a folder called $PYTHONPATH."
    ),
    fix="Write the value itself, or set the variable in a shell script.",
    waivable=True,
)

EGRESS_UNKNOWN = Rule(
    "egress-unknown",
    ERROR,
    "The cluster offers no such endpoint.",
    why=(
        "Runs may only reach endpoints that the cluster file lists with their addresses. A name that is "
        "not listed allows nothing, and the run would time out."
    ),
    fix="Use one of the listed endpoints, or ask the cluster's owner to add it.",
)

EGRESS_INTERNET = Rule(
    "egress-internet",
    ERROR,
    "The posture does not allow the internet.",
    why=(
        "A restricted or isolated run promises to reach only what is listed. Access to the whole "
        "internet would make that promise empty."
    ),
    fix="Name the endpoints that are needed, or use another posture.",
)

CLUSTER_UNKNOWN = Rule(
    "cluster-unknown",
    ERROR,
    "The cluster is not declared.",
    why=(
        "A cluster is a folder below overlays/. A name without one is a typo or a cluster of "
        "another workspace."
    ),
    fix="Correct the name.",
)

CLUSTER_NOT_CHOSEN = Rule(
    "cluster-not-chosen",
    ERROR,
    "Nothing says on which cluster the job runs.",
    why=(
        "A team with several clusters has to say which one it means. A wrong guess would train "
        "on the wrong side of the world."
    ),
    fix="Add clusters: to the spec or to team.yaml.",
)

TEAM_NOT_ON_CLUSTER = Rule(
    "team-not-on-cluster",
    ERROR,
    "The team has no queue on this cluster.",
    why=(
        "Without a queue, none of the team's runs is ever admitted there; its namespace does not even exist."
    ),
    fix="Have the cluster's owner add the team under teams: in its file, or name another cluster in the spec.",
)

RUN_RENAMED = Rule(
    "run-renamed",
    WARNING,
    "The spec did not change, but its run did.",
    why=(
        "A run's name contains a hash of what it runs. When the cluster, the image or gangplan changes "
        "what a spec renders to, it is a different run, and it trains again at the next sync."
    ),
    fix="To keep a run as it was rendered, write keep: true in its spec; to keep all runs of a cluster, keepRuns: true in its file.",
)

RUN_KEPT = Rule(
    "run-kept",
    NOTE,
    "A run is kept as it was rendered.",
    why=(
        "With keep: true, keepRuns: true or --keep-runs, the committed run stays as it is, although today's platform "
        "would render a different one."
    ),
    fix="To run with today's platform, raise run: in the spec.",
    untested="render --keep-runs writes; tests/test_render.py has it.",
)

CONNECTION_NOT_ADDRESSED = Rule(
    "connection-not-addressed",
    ERROR,
    "The spec asks for variables with the address and keys of a bucket that has none.",
    why=(
        "Tools for S3 read an address and a pair of keys from the environment. Pods reach Google Cloud and Azure buckets "
        "by the identity of their team, and see them as folders."
    ),
    fix="Mount it as a folder, or state endpoint and secret of an S3-compatible store.",
)

BUCKET_WITHOUT_IDENTITY = Rule(
    "bucket-without-identity",
    ERROR,
    "A bucket is used as a folder, but the run's pods cannot open it.",
    why=(
        "Cloud Storage FUSE opens a bucket as the identity of the pod's service account. Without one, the pod stays in "
        "ContainerCreating until the run's deadline."
    ),
    fix="Give the team an identity in Google Cloud, on a cluster with workloadIdentity: {provider: gcp}.",
)

SERVICE_ACCOUNT_UNKNOWN = Rule(
    "service-account-unknown",
    ERROR,
    "The team may not use this service account.",
    why=(
        "Pods have the rights of their service account, so the platform says which ones runs of a team may use. No pod of "
        "a run is made for an account that does not exist."
    ),
    fix="Correct the name, remove it, or have the account listed in serviceAccounts of the team in the cluster's file.",
)

TOKEN_MOUNTED = Rule(
    "token-mounted",
    WARNING,
    "Pods of the run have a token for the Kubernetes API.",
    why=(
        "Training code is other people's code. Anyone who controls it has every right of the service account whose token "
        "its pod mounts, in the whole namespace or beyond."
    ),
    fix="Name the account only in runs that call the API, or have its token taken away.",
)
