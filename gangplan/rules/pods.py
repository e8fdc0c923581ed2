"""Rules about the pods of a run: folders, variables, scratch, exit codes, containers and meshes."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Deduplication, Rule

WORKDIR_UNUSABLE = Rule(
    "workdir-unusable",
    ERROR,
    "The program cannot work in the folder it would start in.",
    why=(
        "Only root may enter /root, and a run is never root: none of its containers would start. The "
        "kernel's folders hold no program files. A missing folder is created (runc, prepareRootfs), but not "
        "inside a ConfigMap or a secret, which are mounted for reading, and not where a file is mounted."
    ),
    fix="Set workdir to a folder of the image or of data.",
)

ROOT_HOME_NAMED = Rule(
    "root-home-named",
    WARNING,
    "A command or a variable names a path in root's home.",
    why=(
        "Images usually let only root enter /root, and a run is never root: a program there does not start, and "
        "caches and settings there can be neither read nor written. Files that work in Docker, where root runs "
        "them, end with Permission denied."
    ),
    fix="Put the files into a folder that every user may enter, or keep them on a volume.",
)

CONFIG_MAP_UNKNOWN = Rule(
    "config-map-unknown",
    ERROR,
    "The team does not declare this ConfigMap.",
    why=(
        "A pod that refers to a ConfigMap that does not exist stays in CreateContainerConfigError, or waits "
        "for its volume. Only what the team declares is known to be in its namespace."
    ),
    fix="Correct the name, or declare the ConfigMap in configMaps of team.yaml.",
)

ENV_OWN_VALUE = Rule(
    "env-own-value",
    ERROR,
    "A field of the pod would have the launcher's value in every rank.",
    why=(
        "Each rank has the fields and amounts of its own pod: gangplan gives them to the SSH sessions that "
        "start ranks. MPICH, Intel MPI and horovodrun hand the launcher's environment to all ranks, so a "
        "launcher that runs ranks itself would overwrite the values of all others; so does an option that "
        "names the variable."
    ),
    fix="Remove runsRanks, or the option that hands the variable on.",
)

SCRATCH_MEMORY = Rule(
    "scratch-memory",
    ERROR,
    "Scratch in memory leaves the program too little.",
    why=(
        "Files on a memory volume count as memory of the container that wrote them. A worker whose scratch "
        "is full would be killed for lack of memory. At least a quarter of its memory, or 1 GiB, "
        "must be left."
    ),
    fix="Write more memory, less scratch, or medium: disk.",
)

SCRATCH_NOT_COUNTED = Rule(
    "scratch-not-counted",
    WARNING,
    "No disk is set aside for scratch: the pool does not state any.",
    why=(
        "Where the cluster file says how much disk a node has, scratch is requested, and quotas and the "
        "scheduler keep room for it. Otherwise the kubelet evicts workers once a node runs low."
    ),
    fix="Let the cluster's owner write disk: for the pool in cluster.yaml.",
)

SCRATCH_CLAIMS = Rule(
    "scratch-claims",
    ERROR,
    "The workers need more claims for local scratch than the namespace may hold.",
    why=(
        "A local volume is a PersistentVolumeClaim that lives as long as its pod. The ResourceQuota of a "
        "namespace counts claims: beyond it, no volume is made, and pods wait for it until the deadline."
    ),
    fix="Use medium: disk, fewer workers, or have limits.objects.claims raised.",
)

SCRATCH_NOT_ENCRYPTED = Rule(
    "scratch-not-encrypted",
    ERROR,
    "Local scratch is not known to be encrypted, as its data must be.",
    why=(
        "Regimes such as HIPAA ask for encryption of data at rest, copies included. Those who run the nodes "
        "decide what happens to a local disk once the pod is gone."
    ),
    fix="State encrypted: true for its class in storageClasses once it is, or use medium: memory.",
    untested="it takes a cluster that is certified for a regime; tests/resolve/test_scratch.py writes one.",
)

EXIT_CODES_CLASH = Rule(
    "exit-codes-clash",
    ERROR,
    "An exit code cannot mean what exitCodes says.",
    why=(
        "A code is either retried or not. Codes 193 and 196 to 199 mean that a launch did not get "
        "as far as the program; gangplan knows which of these a retry can fix."
    ),
    fix="Remove the code from one of the lists.",
)

EXIT_CODES_UNUSED = Rule(
    "exit-codes-unused",
    WARNING,
    "Exit codes are named, but nothing is tried again.",
    why="Without retries, every failure of the program ends the run, whatever its exit code is.",
    fix="Write retries, or remove exitCodes.",
)

EXIT_CODES_LOST = Rule(
    "exit-codes-lost",
    ERROR,
    "No pod ends with the exit code of the program.",
    why=(
        "torchrun ends with 1 when one of its ranks fails, whatever that rank ended with (torch 2.6, "
        "distributed/run.py raises ChildFailedError). Rules about other codes would never hold, and with "
        "retry alone, nothing would be tried again. Intel MPI's mpirun sometimes ends with 255, when it had "
        "to kill other ranks: there, this is a warning."
    ),
    fix="Remove exitCodes.",
)

CONTAINER_NAME_TAKEN = Rule(
    "container-name-taken",
    ERROR,
    "Two containers of a pod have the same name.",
    why=(
        "Kubernetes refuses such a pod. The program's own container is called node, which Trainer finds it by; "
        "a fabric of the cluster may add containers of its own."
    ),
    fix="Choose another name, or none: gangplan then numbers them.",
)

ENV_FIELD_EMPTY = Rule(
    "env-field-empty",
    WARNING,
    "A variable reads a label that pods of the run do not have.",
    why=(
        "For a missing label, the kubelet gives an empty text and no error: a script that compares its number "
        "with 0 takes no pod for the first one. Labels of the training operator v1, for example, are on no pod "
        "of a run."
    ),
    fix="Read a label that the pods have, or JOB_COMPLETION_INDEX; a patch of the cluster's overlay can add one.",
)

ENV_AMOUNT_UNSTATED = Rule(
    "env-amount-unstated",
    NOTE,
    "A variable reads an amount that its container does not state.",
    why=(
        "For a limit of ephemeral storage that a container does not have, the kubelet gives what the node has for "
        "all its pods, and for a request or huge pages 0 (Kubernetes v1.34, MergeContainerResourceLimits). A "
        "program that fills so much of the disk is evicted, with the other pods of its node."
    ),
    fix="State the amount, such as disk: 200Gi, or read another one; roles, steps and other containers have none.",
    waivable=True,
)

MESH_JOINED = Rule(
    "mesh-joined",
    ERROR,
    "A service mesh or another injector acts on the pods of a run.",
    why=(
        "An injector adds a container that does not end with the program, so the pod never completes and the run "
        "keeps its GPUs; or one that needs capabilities that the namespace refuses, so no pod is made. Istio's "
        "ambient mode needs no container, but sends the kubelet's probes from an address that the NetworkPolicy "
        "of the run does not let in. MPI and NCCL gain nothing from a mesh: their traffic stays inside the run."
    ),
    fix="Take the namespace out of the mesh, or opt the pods out with their own label or annotation.",
    waivable=True,
    is_verdict=True,
    echo=Deduplication.RUN,
)
