"""Rules about cluster files: versions that work together, pools, topology, gang scheduling, MultiKueue."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

VERSION_UNSUPPORTED = Rule(
    "version-unsupported",
    ERROR,
    "gangplan does not know this version of a component.",
    why=(
        "Fields and behaviour change from one minor to the next. gangplan refuses versions that nobody "
        "has read and tried, rather than guess."
    ),
    fix="Use one of the listed versions.",
)

VERSION_PAIR = Rule(
    "version-pair",
    ERROR,
    "Kueue and Trainer have versions that do not work together.",
    why=(
        "Kueue starts a run by writing a field of the TrainJob. Since Kueue 0.17, this is runtimePatches; "
        "before, it was podTemplateOverrides. A Trainer that reads the other one leaves admitted runs "
        "suspended forever (kueue#11931)."
    ),
    fix="Use one of the listed pairs.",
)

VERSION_UNTRIED = Rule(
    "version-untried",
    WARNING,
    "A tool has a version that gangplan was not written for.",
    why=(
        "The rendered annotations and applications were written for the listed versions; others may "
        "interpret them differently."
    ),
    fix="Try it on a test cluster first, or use one of the listed versions.",
    waivable=True,
)

JOBSET_PAIR = Rule(
    "jobset-pair",
    WARNING,
    "JobSet has a different version from the one Trainer was built for.",
    why=(
        "Trainer's CRD copies the fields of one line of JobSet. With another line, one may accept a "
        "field that the other drops."
    ),
    fix="Remove versions.jobset unless another JobSet was installed on purpose.",
)

OPENSHIFT_KUBERNETES = Rule(
    "openshift-kubernetes",
    ERROR,
    "This OpenShift release contains a different Kubernetes version from the one stated.",
    why=(
        "Each OpenShift release ships one Kubernetes minor. Rules and schemas follow the Kubernetes "
        "version, so a wrong version applies the wrong rules."
    ),
    fix="State the Kubernetes version that this OpenShift release ships.",
)

CNI_REMOVED = Rule(
    "cni-removed",
    ERROR,
    "The network plugin does not exist on this OpenShift.",
    why=(
        "openshift-sdn was removed; a cluster file that states it is wrong, and gangplan would judge "
        "network policies by the wrong rules."
    ),
    fix="Write cni: ovn-kubernetes.",
)

CNI_DEPRECATED = Rule(
    "cni-deprecated",
    WARNING,
    "The network plugin is deprecated.",
    why=(
        "openshift-sdn works on this OpenShift release, but a later one removes it. The move to "
        "ovn-kubernetes changes how policies match DNS."
    ),
    fix="Move the cluster to ovn-kubernetes before upgrading.",
    waivable=True,
)

GANG_WITHOUT_KUEUE = Rule(
    "gang-without-kueue",
    ERROR,
    "Kueue is supposed to start the runs, but its version is missing.",
    why=(
        "Without Kueue, nothing admits the runs, and the pods of two runs can each hold half of what "
        "they need."
    ),
    fix="Add versions.kueue, or set gang: none on a dev cluster.",
)

GANG_NONE_IN_PROD = Rule(
    "gang-none-in-prod",
    ERROR,
    "Production runs start without gang scheduling.",
    why=(
        "Two runs that each get half of the GPUs wait forever for the other half. On a dev cluster "
        "someone notices; in production, no one does."
    ),
    fix="Use gang: kueue, or environment: dev.",
    waivable=True,
)

KUEUE_UNUSED = Rule(
    "kueue-unused",
    WARNING,
    "Kueue is installed, but runs bypass it.",
    why=(
        "With another gang scheduler, gangplan renders no queues or quotas, so nothing limits what a "
        "team uses."
    ),
    fix="Remove versions.kueue, or set gang: kueue.",
)

GPU_OPERATOR_UNSTATED = Rule(
    "gpu-operator-unstated",
    NOTE,
    "GPUs are offered, but the GPU operator is not stated.",
    why=(
        "Only NVIDIA's device plugin offers nvidia.com/gpu on a node. Without it, every pod with a GPU "
        "stays Pending."
    ),
    fix="Add versions.gpuOperator once the operator is installed.",
    waivable=True,
)

POOL_OVERLAP = Rule(
    "pool-overlap",
    ERROR,
    "Pods for one pool can land on the nodes of another.",
    why=(
        "Kueue charges one flavor's quota while the pods run on another's nodes. Quota and nodes then "
        "disagree, and the other team's runs wait for nodes that their quota promises."
    ),
    fix="Give the pools labels or taints that tell them apart.",
)

POOL_LABELS_MISSING = Rule(
    "pool-labels-missing",
    ERROR,
    "A pool with a topology has no labels.",
    why=("Kueue refuses a flavor with a topology and without node labels (CEL of ResourceFlavor)."),
    fix="Give the pool at least one label that its nodes have.",
)

POOL_TAINT_TWICE = Rule(
    "pool-taint-twice",
    ERROR,
    "A taint is listed twice.",
    why="A node has one taint per key and effect. The second entry can never be true.",
    fix="Remove one of them.",
)

POOL_RAIL_TWICE = Rule(
    "pool-rail-twice",
    ERROR,
    "Two entries of a pool's devices name the same resource.",
    why=(
        "A node has one amount of each extended resource. Written twice, its devices would count double "
        "in quotas and in the node fit, and pods would request half of what they need."
    ),
    fix=(
        "Write each resource once. Where one resource has several networks, list them in its network field."
    ),
)

POOL_RDMA_SHARED = Rule(
    "pool-rdma-shared",
    ERROR,
    "A pool has more RDMA devices than a node has ports.",
    why=(
        "A worker gets its share of a node's devices. A count in the hundreds comes from virtual "
        "functions, or from a device plugin whose devices all represent the same card "
        "(k8s-rdma-shared-dev-plugin): a worker can use only one, and dozens would attach it to as many "
        "networks."
    ),
    fix="Write shared: true, or the number of ports.",
)

POOL_DAEMONS = Rule(
    "pool-daemons",
    ERROR,
    "DaemonSets use up an entire node.",
    why=(
        "gangplan subtracts what agents need on every node from what runs may use. Here, nothing would "
        "be left."
    ),
    fix="Correct daemons, or the size of the node.",
)

POOL_AUTOSCALE = Rule(
    "pool-autoscale",
    ERROR,
    "A pool's maximum is below its current number of nodes.",
    why="autoscale.most is the largest number of nodes. A value below count contradicts count.",
    fix="Raise most, or lower count.",
)

POOLS_TOO_MANY = Rule(
    "pools-too-many",
    ERROR,
    "The cluster has more pools than a queue can hold flavors.",
    why=(
        "Every pool becomes a flavor with every resource in each team's queue, and Kueue allows 512 "
        "pairs of flavor and resource per group (ClusterQueue CRD, v0.19.2)."
    ),
    fix="Merge pools of the same shape.",
    untested="an example would have 200 pools; tests/rules/test_extra.py writes them.",
)

TOPOLOGY_LEVEL_TWICE = Rule(
    "topology-level-twice",
    ERROR,
    "Two topology levels share a name or a label.",
    why=(
        "Kueue refuses a Topology that repeats a label, and a request for a name that means two levels "
        "is ambiguous."
    ),
    fix="Give each level its own name and label.",
)

TOPOLOGY_HOST_NOT_LAST = Rule(
    "topology-host-not-last",
    ERROR,
    "The host level is not the last one.",
    why=(
        "Nothing is narrower than a host. Kueue accepts kubernetes.io/hostname only as the last "
        "level (CEL of Topology)."
    ),
    fix="Move it to the end.",
)

TOPOLOGY_LEVEL_SIZE = Rule(
    "topology-level-size",
    ERROR,
    "A topology level is not smaller than the one above it.",
    why=("Levels go from wide to narrow. Sizes that do not shrink mean that two levels were swapped."),
    fix="Put the levels in order, or correct nodes.",
)

LIMITS_CONTRADICT = Rule(
    "limits-contradict",
    ERROR,
    "The namespace allows fewer pods than the largest allowed run needs.",
    why=(
        "A run with limits.workers workers and a launcher would be admitted, but would never get all of "
        "its pods."
    ),
    fix="Raise objects.pods, or lower limits.workers.",
)

MULTIKUEUE_SELF = Rule(
    "multikueue-self",
    ERROR,
    "A cluster dispatches runs to itself.",
    why=(
        "MultiKueue copies a run to another cluster and waits for it there. A cluster that dispatches to "
        "itself would wait forever."
    ),
    fix="Remove the entry.",
)

MULTIKUEUE_AUTOSCALE = Rule(
    "multikueue-autoscale",
    ERROR,
    "A cluster both dispatches runs and requests nodes for them.",
    why=("Kueue deactivates a ClusterQueue that has both a MultiKueue check and a provisioning check."),
    fix="Request nodes on the worker clusters, or stop dispatching runs.",
)

MULTIKUEUE_QUEUE = Rule(
    "multikueue-queue",
    ERROR,
    "A worker cluster lacks a team's queue, or what runs are made of.",
    why=(
        "MultiKueue creates the run's copy in the namespace and queue of the same names, as an object of the same "
        "kind. Where one of them is missing, or Kueue or the operator of that kind, runs are never dispatched."
    ),
    fix=(
        "Add the team with the same queue and namespace to the worker cluster, or give it here those that it has there."
    ),
)


MULTIKUEUE_LEVEL = Rule(
    "multikueue-level",
    ERROR,
    "A worker cluster states a tighter Pod Security level for a team.",
    why=(
        "Runs are rendered and judged with the level of the cluster that hands them on, and their pods are created "
        "on the worker cluster. There the namespace refuses what a fabric gives them, and the run never starts."
    ),
    fix="State the same podSecurity on the worker cluster, or remove it here.",
)

POOL_NAME_LONG = Rule(
    "pool-name-long",
    ERROR,
    "The name of an autoscaled pool is too long.",
    why=(
        "Kueue's admission check for new nodes is called provision-<pool>, and the name it refers to may "
        "have at most 63 characters (AdmissionCheck of Kueue v0.19)."
    ),
    fix="Shorten the pool's name.",
)

KUEUE_FIELD_UNUSED = Rule(
    "kueue-field-unused",
    WARNING,
    "A field that only Kueue reads is set where Kueue starts no runs.",
    why=(
        "On a cluster with another gang scheduler, gangplan renders no queues or quotas. Readers of the "
        "file would believe in limits that do not exist."
    ),
    fix="Remove the field, or set gang: kueue.",
)

MULTIKUEUE_POOL = Rule(
    "multikueue-pool",
    WARNING,
    ("A worker cluster and the cluster that dispatches runs to it describe a pool differently."),
    why=(
        "The copy of a run carries the node labels and tolerations of the manager's pool. On nodes with "
        "other labels or taints, its pods never start, although both clusters admitted the run."
    ),
    fix="Describe the pool the same way in both files, or give teams no quota in it.",
)
