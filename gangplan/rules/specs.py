"""What one spec asks for: counts, limits, images, data, environment, placement."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Example, Rule

IMAGE_MISSING = Rule(
    "image-missing",
    ERROR,
    "Neither the spec nor its team or cluster names an image.",
    why="There is no image that would be right for everybody, and none is invented.",
    fix="Add image: with a name of images/catalog.yaml, or a default in team.yaml.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="",
        after="image: openmpi4\n",
        old="image: openmpi\n",
    ),
)

IMAGE_UNKNOWN = Rule(
    "image-unknown",
    ERROR,
    "The image is not in the catalog.",
    why=(
        "Only images of the catalog are pinned by digest and known to hold an MPI and an SSH "
        "server as the launch needs them."
    ),
    fix="Correct the name, or add the image to images/catalog.yaml.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="image: openmp",
        after="image: openmpi4",
        old="image: openmpi",
    ),
)

IMAGE_WITHOUT_MPI = Rule(
    "image-without-mpi",
    ERROR,
    "The framework needs an MPI that the image does not have.",
    why=(
        "Horovod, DeepSpeed and MPI jobs are started by mpirun. An image without it fails in its "
        "first second, after having waited for its GPUs."
    ),
    fix="Choose an image with MPI, or set framework: torch.",
    example=Example(
        "specs/nlp/filings.yaml",
        before=("image: pytorch\nframework: horovod\n"),
        after="image: horovod\n",
        old="image: openmpi\n",
    ),
)

REGISTRY_UNTRUSTED = Rule(
    "registry-untrusted",
    ERROR,
    "The cluster would pull the image from a registry that it does not trust.",
    why=(
        "The cluster file lists the registries that its admission policy lets through. Another one "
        "is refused when the pods are made, after the run was admitted."
    ),
    fix="Mirror the image, add a mirror to the cluster file, or choose another image.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="registries: [mirror.example.com]\n",
        after=(
            "registries: [mirror.example.com]\n"
            "mirrors: [{source: registry.example.com, mirror: mirror.example.com/all}]\n"
        ),
    ),
)

LICENCE_NOT_ACKNOWLEDGED = Rule(
    "licence-not-acknowledged",
    ERROR,
    "Intel MPI is used without acknowledging its licence.",
    why=(
        "Intel MPI has licence terms of its own. Somebody has to have looked at them, and Git remembers who."
    ),
    fix="Add mpi: {licenseAcknowledged: true} once you may use it.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="image: intel\n",
        after=("image: intel\nmpi: {licenseAcknowledged: true}\n"),
        old="image: openmpi\n",
    ),
)

MPI_MISMATCH = Rule(
    "mpi-mismatch",
    ERROR,
    "The spec asks for another MPI than the image holds.",
    why=(
        "Each MPI is started in its own way. With the wrong one the ranks do not find each other, "
        "or each is alone."
    ),
    fix="Remove the line, or choose another image.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="mpi: {implementation: MPICH}\n",
        after="mpi: {implementation: OpenMPI}\n",
    ),
)

MPI_LAUNCH = Rule(
    "mpi-launch",
    ERROR,
    "The ranks cannot be started in this way.",
    why=(
        "Trainer prepares SSH keys and a hostfile for its runs; a start by PMIx would need a "
        "plugin that no supported version has."
    ),
    fix="Remove the line; ssh is used.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="mpi: {launch: pmix}\n",
        after="mpi: {launch: ssh}\n",
    ),
)

MPI_VERSION = Rule(
    "mpi-version",
    ERROR,
    "The image holds an MPI of a version that gangplan cannot start.",
    why=(
        "The variables and options of the launch differ from one major version to the next (Open "
        "MPI 5 reads none of what Open MPI 4 reads). Only versions that were tried are started."
    ),
    fix="Choose an image with a version that is named.",
    example=Example(
        "images/catalog.yaml",
        before='"1.10.7"',
        after='"4.1.8"',
        old='"5.0.8"',
    ),
)

COMMAND_NESTED = Rule(
    "command-nested",
    ERROR,
    "A launcher would start another launcher on every rank.",
    why=(
        "mpirun, torchrun and their like start a program once on every rank. Where that program is "
        "a launcher itself, each of N ranks starts N ranks again, N times N processes."
    ),
    fix="Keep one of the two launchers.",
    example=Example(
        "specs/nlp/filings.yaml",
        before='command: [mpirun, -np, "{ranks}", bash, -c, mpirun python train.py]',
        after='command: [mpirun, -np, "{ranks}", python, train.py]',
        old="command: [python, train.py]",
    ),
)

RANKS_MISMATCH = Rule(
    "ranks-mismatch",
    ERROR,
    "The command states another number of ranks than the run has.",
    why=(
        "Workers times slots is the number of ranks, and the hostfile says so. With another -np "
        "mpirun refuses, oversubscribes, or leaves GPUs idle."
    ),
    fix="Write the right number, or {ranks} to have it filled in.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="command: [mpirun, -np, 16, python, train.py]",
        after='command: [mpirun, -np, "{ranks}", python, train.py]',
        old="command: [python, train.py]",
    ),
)

LAUNCHER_ONE_WORKER = Rule(
    "launcher-one-worker",
    ERROR,
    "A launcher that runs ranks needs a second worker.",
    why=(
        "Trainer makes max(numNodes - 1, 1) workers beside such a launcher, so one worker would "
        "become two pods and twice the GPUs (Trainer 2.3, mpi.go)."
    ),
    fix="Raise workers, or remove runsRanks.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="workers: 1",
        after="workers: 2",
        old="workers: 4",
        changes=(("specs/nlp/filings.yaml", "", "launcher: {runsRanks: true}\n"),),
    ),
)

LAUNCHER_RESOURCES = Rule(
    "launcher-resources",
    ERROR,
    "A launcher that runs ranks cannot have a size of its own.",
    why=(
        "Such a launcher is a worker, and Trainer gives it the resources of a worker. Another size "
        "would be ignored without a word."
    ),
    fix="Remove launcher.cpu and launcher.memory, or runsRanks.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="launcher: {runsRanks: true, cpu: 2}\n",
        after="launcher: {cpu: 2}\n",
    ),
)

LAUNCHER_TORCH = Rule(
    "launcher-torch",
    ERROR,
    "A torch job has no launcher.",
    why=("torchrun starts on every worker by itself; there is no pod that a launcher block could describe."),
    fix="Remove the launcher block.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="launcher: {runsRanks: true}\n",
        after="slots: 2\n",
        changes=(("specs/nlp/filings.yaml", "image: openmpi", "image: pytorch"),),
    ),
)

WORKERS_OVER_LIMIT = Rule(
    "workers-over-limit",
    ERROR,
    "The run has more workers than the cluster allows.",
    why=(
        "limits.workers of the cluster file bounds one run, so that a typo does not ask for a "
        "whole data centre."
    ),
    fix="Use fewer workers with more GPUs each, or ask the cluster's owner.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="workers: 101",
        after="workers: 16",
        old="workers: 4",
    ),
)

WORKERS_MANY = Rule(
    "workers-many",
    WARNING,
    "The run has very many workers.",
    why=(
        "Start-up and network load grow with every worker, and one that fails stops all. Up to 64 "
        "were found to be harmless; more GPUs per worker are cheaper."
    ),
    fix="Prefer more GPUs per worker where nodes have them.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before=("workers: 65\ngpus: 0\ncpu: 1\nmemory: 4Gi"),
        after=("workers: 64\ngpus: 0\ncpu: 1\nmemory: 4Gi"),
        old=("workers: 4\ngpus: 2\ncpu: 8\nmemory: 32Gi"),
    ),
)

WORKERS_ONE = Rule(
    "workers-one",
    NOTE,
    "One worker is not distributed training.",
    why=(
        "A run with one worker pays for a launcher and a queue and gains nothing from MPI. It is "
        "fine for a first try."
    ),
    fix="Raise workers, or ignore this.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="workers: 1",
        after="workers: 2",
        old="workers: 4",
    ),
)

GPUS_UNUSUAL = Rule(
    "gpus-unusual",
    WARNING,
    "The number of GPUs per worker does not divide a node evenly.",
    why=("Nodes have 4 or 8 GPUs. Workers with 3 or 5 leave some on every node that nobody can use."),
    fix="Use 1, 2, 4 or 8 GPUs per worker.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="gpus: 3",
        after="gpus: 4",
        old="gpus: 2",
    ),
)

SLOTS_NOT_GPUS = Rule(
    "slots-not-gpus",
    WARNING,
    "The ranks of a worker are not as many as its GPUs.",
    why=(
        "Frameworks bind one rank to one GPU. More ranks share a GPU and slow each other down, "
        "fewer leave GPUs idle."
    ),
    fix="Leave slots out for one rank per GPU.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="slots: 1\n",
        after="slots: 2\n",
    ),
)

TIMEOUT_OVER_LIMIT = Rule(
    "timeout-over-limit",
    ERROR,
    "The timeout is longer than the cluster allows.",
    why=(
        "A run that hangs holds its GPUs until its deadline. The cluster's owner bounds how long that may be."
    ),
    fix="Write a shorter timeout and save checkpoints, so that a next run goes on.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before=("timeout: 8d\nextendedTimeout: true\n"),
        after=("timeout: 7d\nextendedTimeout: true\n"),
    ),
)

TIMEOUT_NOT_EXTENDED = Rule(
    "timeout-not-extended",
    ERROR,
    "A timeout of more than a day has not been confirmed.",
    why=(
        "Most runs longer than a day are a mistake in the unit. A run that is meant to be long "
        "says so in one more line, which a reviewer sees."
    ),
    fix="Add extendedTimeout: true.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="timeout: 48h\n",
        after=("timeout: 48h\nextendedTimeout: true\n"),
    ),
)

PRIORITY_UNKNOWN = Rule(
    "priority-unknown",
    ERROR,
    "The priority does not exist on the cluster.",
    why=(
        "A WorkloadPriorityClass that is not there makes Kueue refuse the run's Workload. The "
        "names in use are those of the cluster file."
    ),
    fix="Use one of the priorities that are named.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="priority: critical\n",
        after="priority: high\n",
    ),
)

PRIORITY_NOT_ALLOWED = Rule(
    "priority-not-allowed",
    ERROR,
    "The team may not use this priority.",
    why=(
        "priorities of the team in the cluster file bound what it may ask for, so that a high "
        "priority keeps its meaning."
    ),
    fix="Use one of the team's priorities, or ask the cluster's owner.",
    example=Example(
        "specs/nlp/train.yaml",
        before="priority: high\n",
        after="priority: low\n",
        base="shared",
    ),
)

SPOT_WITHOUT_RETRY = Rule(
    "spot-without-retry",
    ERROR,
    "A run on spot nodes cannot go on after losing one.",
    why=(
        "Spot nodes are taken away without much notice. Without a checkpoint and a retry, "
        "everything done until then is lost."
    ),
    fix="Add checkpoint: and retries: 1 or more, or run on on-demand nodes.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="placement: {capacity: spot}\n",
        after=("placement: {capacity: spot}\nretries: 1\ncheckpoint: {to: filings}\n"),
    ),
)

POOL_UNKNOWN = Rule(
    "pool-unknown",
    ERROR,
    "The node pool does not exist on the cluster.",
    why=(
        "Pools are declared in the cluster file with their sizes and labels. A pool that is not "
        "there has no node for the run."
    ),
    fix="Use a pool that is named, or leave nodePool out.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="placement: {nodePool: a100s}\n",
        after="placement: {nodePool: a100}\n",
    ),
)

POOL_NO_FIT = Rule(
    "pool-no-fit",
    ERROR,
    "No node of the cluster is large enough for one worker.",
    why=(
        "Kueue admits by quota and does not look at nodes. The run would be admitted, its pods "
        "would stay Pending, and the quota would be held."
    ),
    fix="Ask for less per worker, name another pool, or use another cluster.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="memory: 4Ti",
        after="memory: 1Ti",
        old="memory: 32Gi",
    ),
)

POOL_NOT_ALLOWED = Rule(
    "pool-not-allowed",
    ERROR,
    "The team has no quota in the pool that the spec names.",
    why=(
        "A queue without quota in a flavor never admits a run there; it waits for ever with NoMatchingFlavor."
    ),
    fix="Name a pool of the team, or leave nodePool out.",
    example=Example(
        "specs/research/train.yaml",
        before="placement: {nodePool: a100}\n",
        after="placement: {nodePool: h100}\n",
        base="shared",
    ),
)

GPU_MODEL_UNKNOWN = Rule(
    "gpu-model-unknown",
    ERROR,
    "No pool that the team may use has this GPU model.",
    why=("The model chooses the pool. A model that no pool has means that no worker can be placed."),
    fix=("Use a model that is named, or leave it out for the first pool that takes the whole run."),
    example=Example(
        "specs/nlp/filings.yaml",
        before="gpu: {model: a100-40gb}\n",
        after="gpu: {model: a100-80gb}\n",
    ),
)

RDMA_MISSING = Rule(
    "rdma-missing",
    ERROR,
    "RDMA is required where the pool has none.",
    why=(
        "A run that needs InfiniBand or RoCE is many times slower over TCP, so rdma required "
        "refuses rather than falls back."
    ),
    fix=(
        'Write rdma: "off" to use TCP, or name another pool or cluster. With rdma: auto a run '
        "takes what its pool has, and a warning says where that is TCP."
    ),
    example=Example(
        "specs/nlp/filings.yaml",
        before="network: {rdma: required}\n",
        after='network: {rdma: "off"}\n',
    ),
)

RDMA_FALLBACK = Rule(
    "rdma-fallback",
    WARNING,
    "RDMA was asked for, and the run falls back to TCP.",
    why=(
        "The pool has no RDMA devices. The run works, but gradients travel over TCP, which may "
        "take much longer."
    ),
    fix=(
        'Write rdma: "off" where TCP will do, or name a pool that has RDMA. With rdma: required '
        "the run is refused where there is none."
    ),
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="network: {rdma: auto}\n",
        after='network: {rdma: "off"}\n',
    ),
)

TOPOLOGY_LEVEL_UNKNOWN = Rule(
    "topology-level-unknown",
    ERROR,
    "The topology level does not exist on the cluster.",
    why=(
        "Levels are named in the cluster file. Kueue ignores or refuses a level whose node label "
        "is not in its Topology."
    ),
    fix="Use a level that is named.",
    example=Example(
        "specs/nlp/train.yaml",
        before="placement: {nodePool: h100, topology: {required: racks}}\n",
        after="placement: {nodePool: h100, topology: {required: rack}}\n",
        base="shared",
    ),
)

TOPOLOGY_MISSING = Rule(
    "topology-missing",
    ERROR,
    "The run asks for topology where nothing places by it.",
    why=(
        "A flavor without a topology never takes a pod set with a topology request; the run would "
        "wait for ever."
    ),
    fix="Remove the request, or name a pool with topology.",
    example=Example(
        "specs/nlp/train.yaml",
        before="placement: {nodePool: a100, topology: {preferred: rack}}\n",
        after="placement: {nodePool: h100, topology: {preferred: rack}}\n",
        base="shared",
    ),
)

CLAIM_UNKNOWN = Rule(
    "claim-unknown",
    ERROR,
    "The name is neither a claim nor a connection of the team.",
    why=(
        "A pod that mounts a claim which does not exist stays Pending for ever. Claims belong to "
        "one team; those of others are in other namespaces."
    ),
    fix="Correct the name, or declare the claim in team.yaml.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="data: {filing: /data}\n",
        after="data: {filings: /data}\n",
    ),
)

CLAIM_NOT_SHARED = Rule(
    "claim-not-shared",
    ERROR,
    "Several workers cannot mount this claim.",
    why=(
        "A ReadWriteOnce volume is attached to one node, and a ReadWriteOncePod claim is held by "
        "one pod of the whole cluster. The first worker gets it, the others stay in "
        "ContainerCreating or are never scheduled. A run with one worker works - there the worker "
        "alone mounts the claim, and the launcher does without."
    ),
    fix="Use a claim with ReadWriteMany, or workers: 1.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="data: {notes: /data}\n",
        after="data: {filings: /data}\n",
    ),
)

CLAIM_READ_ONLY = Rule(
    "claim-read-only",
    ERROR,
    "Checkpoints cannot be written to a read-only claim.",
    why=("The first checkpoint fails, usually after an hour of training, and the run with it."),
    fix="Name a claim that can be written.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="checkpoint: {to: archive}\n",
        after="checkpoint: {to: filings}\n",
    ),
)

CONNECTION_NOT_MOUNTABLE = Rule(
    "connection-not-mountable",
    ERROR,
    "A bucket without a claim cannot be mounted as a folder.",
    why="An S3 connection is an address and keys. Only a claim shows a bucket as files.",
    fix="Write env instead of a folder, or ask for a claim that shows the bucket.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="data: {lidar: /data}\n",
        after=("data: {lidar: env}\nnetwork: {egress: [s3]}\n"),
    ),
)

CONNECTION_CLASH = Rule(
    "connection-clash",
    ERROR,
    "Two connections need one environment for two addresses or keys.",
    why=(
        "AWS tools and SDKs read one endpoint and one pair of keys from the environment, so the "
        "second bucket would be asked with the keys of the first."
    ),
    fix="Use one of them in this spec, or a claim that shows the other bucket as files.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="data: {lidar: env, sonar: env}\n",
        after="data: {lidar: env}\n",
        changes=(
            (
                "specs/nlp/team.yaml",
                "connections:\n",
                (
                    "connections:\n"
                    '  sonar: {endpoint: "https://s3.example.org", bucket: sonar, secret: lidar-s3}\n'
                ),
            ),
        ),
    ),
)

MOUNT_COLLISION = Rule(
    "mount-collision",
    ERROR,
    "Two things are mounted at one path.",
    why=(
        "The second mount hides the first, or Kubernetes refuses the pod. Some paths belong to the "
        "run itself, such as the hostfile and the shared memory."
    ),
    fix="Choose another folder.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="data: {filings: /data, archive: /data}\n",
        after="data: {filings: /data, archive: /archive}\n",
    ),
)

MOUNT_HIDES = Rule(
    "mount-hides",
    ERROR,
    "A claim or secret is mounted over what the run needs from its image.",
    why=(
        "A mount hides all that the image has at that path. Without the folder of sshd's "
        "configuration no worker ever answers; without /usr or /etc not even the shell starts; "
        "below /root nobody but root may look, and a run never is root; a claim at /tmp is one "
        "scratch folder for all pods, where MPI expects one per host."
    ),
    fix=(
        "Choose a folder of its own, such as /data; a folder further down, such as "
        "/home/mpiuser/data or /etc/myapp, is fine."
    ),
    example=Example(
        "specs/nlp/filings.yaml",
        before="data: {filings: /home/mpiuser}\n",
        after="data: {filings: /home/mpiuser/filings}\n",
    ),
)

SECRET_UNKNOWN = Rule(
    "secret-unknown",
    ERROR,
    "The team declares no such secret.",
    why=(
        "A pod that refers to a secret which is not there stays in CreateContainerConfigError. "
        "Only declared secrets are fetched into the team's namespace."
    ),
    fix="Correct the name, or declare the secret in team.yaml.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="secrets: {env: {HF_TOKEN: hugingface/token}}\n",
        after="secrets: {env: {HF_TOKEN: huggingface/token}}\n",
    ),
)

ENV_TWICE = Rule(
    "env-twice",
    ERROR,
    "A variable is set in env and in secrets.env.",
    why=(
        "Kubernetes takes the last of two variables with one name, so one of the two lines is without effect."
    ),
    fix="Keep one of them.",
    example=Example(
        "specs/nlp/filings.yaml",
        before=("env: {HF_TOKEN: none}\nsecrets: {env: {HF_TOKEN: huggingface/token}}\n"),
        after="secrets: {env: {HF_TOKEN: huggingface/token}}\n",
    ),
)

ENV_RESERVED = Rule(
    "env-reserved",
    ERROR,
    "A variable belongs to Trainer or to the launch.",
    why=(
        "Trainer 2.3 refuses its own names in a run, older versions write over them without a word "
        "(mpi.go, torch.go). Others of these names start the ranks; another value would break that."
    ),
    fix="Remove it; the fields of the spec set what can be set.",
    example=Example(
        "specs/nlp/filings.yaml",
        before='env: {PET_NNODES: "4"}\n',
        after='env: {NNODES: "4"}\n',
    ),
)

ENV_LITERAL = Rule(
    "env-literal",
    WARNING,
    "A variable in a value of env is never expanded.",
    why=(
        "Kubernetes hands values of env to the program as they are written, and gangplan keeps "
        "$(NAME) as it is, too. A PYTHONPATH of $PYTHONPATH:/app has a folder called $PYTHONPATH."
    ),
    fix="Write the value itself, or set the variable in a shell's script.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before='env: {PYTHONPATH: "$PYTHONPATH:/app"}\n',
        after="env: {PYTHONPATH: /app}\n",
    ),
)

EGRESS_UNKNOWN = Rule(
    "egress-unknown",
    ERROR,
    "The cluster offers no such endpoint.",
    why=(
        "Runs may only reach endpoints that the cluster file lists with their addresses. A name "
        "that is not there opens nothing, and the run would time out."
    ),
    fix="Use an endpoint that is named, or ask the cluster's owner to add it.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="network: {egress: [s4]}\n",
        after="network: {egress: [s3]}\n",
    ),
)

EGRESS_INTERNET = Rule(
    "egress-internet",
    ERROR,
    "The posture does not allow the internet.",
    why=(
        "A restricted or isolated run promises that it reaches nothing but what is listed. The "
        "whole internet would make the promise empty."
    ),
    fix="Name the endpoints that are needed, or use another posture.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="network: {posture: isolated, egress: [internet]}\n",
        after="network: {posture: restricted, egress: [s3]}\n",
        changes=(
            (
                "overlays/lab/cluster.yaml",
                "egress:\n",
                ("egress:\n  internet: [{cidr: 0.0.0.0/0, ports: [443]}]\n"),
            ),
        ),
    ),
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
    example=Example(
        "specs/nlp/filings.yaml",
        before="clusters: [labs]\n",
        after="clusters: [lab]\n",
    ),
)

CLUSTER_NOT_CHOSEN = Rule(
    "cluster-not-chosen",
    ERROR,
    "It is not said on which cluster the job runs.",
    why=(
        "A team with several clusters (or none) has to say which one is meant. A wrong guess would "
        "train on the wrong side of the world."
    ),
    fix="Add clusters: to the spec or to team.yaml.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="description: the newest filings\n",
        after="clusters: [lab]\n",
        changes=(("specs/nlp/team.yaml", "clusters: [lab]\n", ""),),
        files={
            "overlays/other/cluster.yaml": (
                "apiVersion: gangplan.dev/v1\n"
                "kind: Cluster\n"
                'versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2"}\n'
                "region: eu-central\n"
                "location: on-prem\n"
                "nodePools: {cpu: {count: 4, cpu: 60, memory: 240Gi}}\n"
                "teams: {nlp: {queue: training}}\n"
            )
        },
    ),
)

TEAM_NOT_ON_CLUSTER = Rule(
    "team-not-on-cluster",
    ERROR,
    "The team has no queue on this cluster.",
    why=("Without a queue nothing of the team is ever admitted there; its namespace does not even exist."),
    fix="Choose another cluster, or ask its owner to add the team.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="clusters: [other]\n",
        after="clusters: [lab]\n",
        files={
            "overlays/other/cluster.yaml": (
                "apiVersion: gangplan.dev/v1\n"
                "kind: Cluster\n"
                'versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2"}\n'
                "region: eu-central\n"
                "location: on-prem\n"
                "nodePools: {cpu: {count: 4, cpu: 60, memory: 240Gi}}\n"
            )
        },
    ),
)

RUN_RENAMED = Rule(
    "run-renamed",
    WARNING,
    "The spec did not change, but its run did.",
    why=(
        "A run's name is the hash of what it is. When the cluster, the image or gangplan change "
        "what a spec renders to, it is another run, and it trains again at the next sync."
    ),
    fix="To keep runs as they were rendered: --keep-runs, for render and for the checks.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("  nlp: {queue: training}\nenv: {NCCL_DEBUG: WARN}"),
        after="  nlp: {queue: training}",
        old="  nlp: {queue: training}",
        run="again",
    ),
)

RUN_KEPT = Rule(
    "run-kept",
    NOTE,
    "A run is kept as it was rendered.",
    why=(
        "With --keep-runs the committed run stays as it is, although the platform of today would "
        "render another one."
    ),
    fix="Raise run: in the spec to run with today's platform.",
    untested="render --keep-runs writes; tests/test_render.py has it.",
)
