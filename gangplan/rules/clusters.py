"""What a cluster file says: versions that work together, pools, topology, gang, other clusters."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Example, Rule

VERSION_UNSUPPORTED = Rule(
    "version-unsupported",
    ERROR,
    "A component has a version that gangplan does not know.",
    why=(
        "Fields and behaviour change from one minor to the next. What was not read and tried is "
        "refused rather than guessed."
    ),
    fix="Use a version that is named.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before='trainer: "1.9.0"',
        after='trainer: "2.2.0"',
        old='trainer: "2.3.0"',
    ),
)

VERSION_PAIR = Rule(
    "version-pair",
    ERROR,
    "Kueue and Trainer have versions that do not work together.",
    why=(
        "Kueue starts a run by writing a field of the TrainJob. From Kueue 0.17 that is "
        "runtimePatches, before it is podTemplateOverrides; a Trainer that reads the other one "
        "leaves admitted runs suspended for ever (kueue#11931)."
    ),
    fix="Use one of the pairs that are named.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before='kueue: "0.16.1"',
        after='kueue: "0.17.0"',
        old='kueue: "0.19.2"',
    ),
)

VERSION_UNTRIED = Rule(
    "version-untried",
    WARNING,
    "A tool has a version outside of what gangplan was made for.",
    why=(
        "The rendered annotations and applications were made for the versions that are named; "
        "others may read them in another way."
    ),
    fix="Try it on a test cluster first, or use a version that is named.",
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before='trainer: "2.3.0", argocd: "1.8.0"',
        after='trainer: "2.3.0", argocd: "3.5.1"',
        old='trainer: "2.3.0"',
    ),
)

JOBSET_PAIR = Rule(
    "jobset-pair",
    WARNING,
    "JobSet has another version than the one its Trainer is made for.",
    why=(
        "Trainer's CRD copies the fields of one line of JobSet. With another line a field can be "
        "accepted by one and dropped by the other."
    ),
    fix="Remove versions.jobset unless another JobSet was installed on purpose.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before='trainer: "2.3.0", jobset: "0.11.0"',
        after='trainer: "2.3.0", jobset: "0.12.0"',
        old='trainer: "2.3.0"',
    ),
)

OPENSHIFT_KUBERNETES = Rule(
    "openshift-kubernetes",
    ERROR,
    "This OpenShift has another Kubernetes than the one stated.",
    why=(
        "Each OpenShift ships one Kubernetes minor. Rules and schemas follow the Kubernetes "
        "version, so a wrong one judges by the wrong rules."
    ),
    fix="Write the Kubernetes that belongs to the OpenShift.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before='trainer: "2.3.0", openshift: "4.19"',
        after='trainer: "2.3.0", openshift: "4.21"',
        old='trainer: "2.3.0"',
    ),
)

CNI_REMOVED = Rule(
    "cni-removed",
    ERROR,
    "The network plugin does not exist on this OpenShift.",
    why=(
        "openshift-sdn was removed; a cluster that states it is described wrongly, and network "
        "policies would be judged by the wrong rules."
    ),
    fix="Write cni: ovn-kubernetes.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("region: eu-central\ncni: openshift-sdn\n"),
        after=("region: eu-central\ncni: ovn-kubernetes\n"),
        old="region: eu-central\n",
        changes=(("overlays/lab/cluster.yaml", 'trainer: "2.3.0"', 'openshift: "4.21", trainer: "2.3.0"'),),
    ),
)

CNI_DEPRECATED = Rule(
    "cni-deprecated",
    WARNING,
    "The network plugin is deprecated.",
    why=(
        "openshift-sdn works on this OpenShift and is gone from a later one. The move to "
        "ovn-kubernetes changes how policies match DNS."
    ),
    fix="Move the cluster to ovn-kubernetes before upgrading.",
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("region: eu-central\ncni: openshift-sdn\n"),
        after=("region: eu-central\ncni: ovn-kubernetes\n"),
        old="region: eu-central\n",
    ),
)

GANG_WITHOUT_KUEUE = Rule(
    "gang-without-kueue",
    ERROR,
    "Kueue is to start the runs, but its version is missing.",
    why=("Without Kueue nobody admits the runs, and pods of two runs can each hold half of what they need."),
    fix="Add versions.kueue, or set gang: none on a dev cluster.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="",
        after=', kueue: "0.18.0"',
        old=', kueue: "0.19.2"',
    ),
)

GANG_NONE_IN_PROD = Rule(
    "gang-none-in-prod",
    ERROR,
    "Runs of production start without a gang.",
    why=(
        "Two runs that each get half of the GPUs wait for the other half for ever. On a dev "
        "cluster somebody looks; in production nobody does."
    ),
    fix="Use gang: kueue, or environment: dev.",
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before="gang: none\n",
        after="gang: kueue\n",
        rest=("kueue-unused",),
    ),
)

KUEUE_UNUSED = Rule(
    "kueue-unused",
    WARNING,
    "Kueue is stated, but runs go past it.",
    why=("With another gang no queue and no quota is rendered, so nothing bounds what a team uses."),
    fix="Remove versions.kueue, or set gang: kueue.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("gang: none\nenvironment: dev\n"),
        after=("gang: kueue\nenvironment: dev\n"),
    ),
)

GPU_OPERATOR_UNSTATED = Rule(
    "gpu-operator-unstated",
    NOTE,
    "GPUs are offered, but the GPU operator is not stated.",
    why=(
        "Nothing offers nvidia.com/gpu on a node but NVIDIA's device plugin. Without it every pod "
        "with a GPU stays Pending."
    ),
    fix="Add versions.gpuOperator once the operator is installed.",
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before="",
        after=', gpuOperator: "25.3.0"',
        old=', gpuOperator: "25.10.0"',
    ),
)

POOL_OVERLAP = Rule(
    "pool-overlap",
    ERROR,
    "Pods for one pool can land on the nodes of another.",
    why=(
        "Kueue charges the quota of one flavor while the pods run on another's nodes. Quota and "
        "nodes then disagree, and runs of the other team wait for nodes that their quota promises."
    ),
    fix="Give the pools labels or taints that tell them apart.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="labels: {pool: a100}",
        after="labels: {pool: h100x}",
        old="labels: {pool: h100}",
        base="shared",
    ),
)

POOL_LABELS_MISSING = Rule(
    "pool-labels-missing",
    ERROR,
    "A pool with topology has no labels.",
    why=("Kueue refuses a flavor with a topology and without node labels (CEL of ResourceFlavor)."),
    fix="Give the pool at least one label that its nodes have.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="labels: {}, taints",
        after="labels: {pool: h}, taints",
        old="labels: {pool: h100}, taints",
        base="shared",
    ),
)

POOL_TAINT_TWICE = Rule(
    "pool-taint-twice",
    ERROR,
    "A taint is listed twice.",
    why="A node has one taint per key and effect. The second entry can never be true.",
    fix="Remove one of them.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=(
            "taints: [{key: gpu, effect: NoSchedule}, {key: gpu, value: a, effect: NoSchedule}], topology"
        ),
        after=("taints: [{key: gpu, effect: NoSchedule}, {key: fast, effect: NoSchedule}], topology"),
        old="taints: [{key: gpu, effect: NoSchedule}], topology",
        base="shared",
    ),
)

POOL_RAIL_TWICE = Rule(
    "pool-rail-twice",
    ERROR,
    "Two entries of a pool's devices have one resource.",
    why=(
        "An extended resource has one amount on a node. Written twice, its devices would count "
        "double in quotas and for the fit of nodes, and pods would ask for half of what they need."
    ),
    fix=("Write each resource once. Several networks of one resource are a list in its network."),
    example=Example(
        "overlays/lab/cluster.yaml",
        before=(
            "labels: {pool: a100}, rdma: [{resource: rdma/ib, count: 1, network: fabric/rail-0}, "
            "{resource: rdma/ib, count: 1, network: fabric/rail-1}]}"
        ),
        after=(
            "labels: {pool: a100}, rdma: {resource: rdma/ib, count: 2, network: [fabric/rail-0, "
            "fabric/rail-1]}}"
        ),
        old="labels: {pool: a100}}",
    ),
)

POOL_RDMA_SHARED = Rule(
    "pool-rdma-shared",
    ERROR,
    "A pool has more RDMA devices than a node has ports.",
    why=(
        "A worker takes its share of the devices of a node. A count in the hundreds is that of "
        "virtual functions, or of a device plugin whose devices all stand for the same card "
        "(k8s-rdma-shared-dev-plugin): one is all that a worker can use, and dozens would attach "
        "it to as many networks."
    ),
    fix="Write shared: true, or the number of ports.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="labels: {pool: a100}, rdma: {resource: rdma/hca, count: 1000}}",
        after="labels: {pool: a100}, rdma: {resource: rdma/hca, count: 1000, shared: true}}",
        old="labels: {pool: a100}}",
    ),
)

POOL_DAEMONS = Rule(
    "pool-daemons",
    ERROR,
    "DaemonSets take all of a node.",
    why=("What agents need on every node is subtracted from what runs may use. Nothing would be left."),
    fix="Correct daemons, or the size of the node.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="labels: {pool: cpu}, daemons: {cpu: 60, memory: 1Gi}",
        after="labels: {pool: cpu}, daemons: {cpu: 500m, memory: 1Gi}",
        old="labels: {pool: cpu}",
        base="shared",
        changes=(
            (
                "overlays/lab/cluster.yaml",
                "limits: {workers: 64}",
                ("overcommit: true\nlimits: {workers: 64}"),
            ),
        ),
    ),
)

POOL_AUTOSCALE = Rule(
    "pool-autoscale",
    ERROR,
    "A pool can grow to fewer nodes than it has.",
    why="autoscale.most is the largest number of nodes. Below count it contradicts it.",
    fix="Raise most, or lower count.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="labels: {pool: cpu}, autoscale: {most: 3, provisioningClass: check}",
        after="labels: {pool: cpu}, autoscale: {most: 8, provisioningClass: check}",
        old="labels: {pool: cpu}",
        base="shared",
    ),
)

POOLS_TOO_MANY = Rule(
    "pools-too-many",
    ERROR,
    "The cluster has more pools than a queue can hold flavors.",
    why=(
        "Every pool is a flavor with every resource in each team's queue, and Kueue allows 512 "
        "pairs of flavor and resource per group (ClusterQueue CRD, v0.19.2)."
    ),
    fix="Merge pools of one shape.",
    untested="an example would have 200 pools; tests/rules/test_extra.py writes them.",
)

TOPOLOGY_LEVEL_TWICE = Rule(
    "topology-level-twice",
    ERROR,
    "Two topology levels have one name or one label.",
    why=(
        "Kueue refuses a Topology with a label twice, and a request for a name that means two "
        "levels is ambiguous."
    ),
    fix="Give each level its own name and label.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="name: block, label: topology.example.com/rack",
        after="name: row, label: topology.example.com/row",
        old="name: rack, label: topology.example.com/rack",
        base="shared",
    ),
)

TOPOLOGY_HOST_NOT_LAST = Rule(
    "topology-host-not-last",
    ERROR,
    "The level of hosts is not the last one.",
    why=(
        "Nothing is narrower than a host. Kueue accepts kubernetes.io/hostname only as the last "
        "level (CEL of Topology)."
    ),
    fix="Move it to the end.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=(
            "{name: host, label: kubernetes.io/hostname, nodes: 4}\n"
            "  - {name: rack, label: topology.example.com/rack, nodes: 1}"
        ),
        after=(
            "{name: rack, label: topology.example.com/rack, nodes: 2}\n"
            "  - {name: host, label: kubernetes.io/hostname, nodes: 1}"
        ),
        old=(
            "{name: rack, label: topology.example.com/rack, nodes: 4}\n"
            "  - {name: host, label: kubernetes.io/hostname, nodes: 1}"
        ),
        base="shared",
    ),
)

TOPOLOGY_LEVEL_SIZE = Rule(
    "topology-level-size",
    ERROR,
    "A topology level is not smaller than the one above it.",
    why=("Levels go from wide to narrow. Sizes that do not shrink mean that two levels were swapped."),
    fix="Put the levels in order, or correct nodes.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="label: topology.example.com/rack, nodes: 9",
        after="label: topology.example.com/rack, nodes: 2",
        old="label: topology.example.com/rack, nodes: 4",
        base="shared",
    ),
)

LIMITS_CONTRADICT = Rule(
    "limits-contradict",
    ERROR,
    "The namespace may have fewer pods than the largest run has.",
    why=(
        "A run of limits.workers workers and its launcher would be admitted and then never get all "
        "of its pods."
    ),
    fix="Raise objects.pods, or lower limits.workers.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="limits: {workers: 64, objects: {pods: 64}}",
        after="limits: {workers: 64, objects: {pods: 65}}",
        old="limits: {workers: 64}",
        base="shared",
    ),
)

MULTIKUEUE_SELF = Rule(
    "multikueue-self",
    ERROR,
    "A cluster hands runs to itself.",
    why=(
        "MultiKueue copies a run to another cluster and waits for it there. To itself it would wait for ever."
    ),
    fix="Remove the entry.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("multiKueue: {clusters: {lab: {kubeconfigSecret: lab}}}\nlimits: {workers: 64}"),
        after=("multiKueue: {clusters: {far: {kubeconfigSecret: far}}}\nlimits: {workers: 64}"),
        old="limits: {workers: 64}",
        base="shared",
    ),
)

MULTIKUEUE_AUTOSCALE = Rule(
    "multikueue-autoscale",
    ERROR,
    "A cluster that hands runs on asks for nodes, too.",
    why=("Kueue makes a ClusterQueue inactive that has both a MultiKueue check and a provisioning check."),
    fix="Ask for nodes on the worker clusters, or hand no runs on.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="labels: {pool: cpu}, autoscale: {most: 9, provisioningClass: check}",
        after="labels: {pool: cpu}",
        old="labels: {pool: cpu}",
        base="shared",
        changes=(
            (
                "overlays/lab/cluster.yaml",
                "limits: {workers: 64}",
                ("multiKueue: {clusters: {far: {kubeconfigSecret: far}}}\nlimits: {workers: 64}"),
            ),
        ),
    ),
)

MULTIKUEUE_QUEUE = Rule(
    "multikueue-queue",
    ERROR,
    "A worker cluster lacks the queue of a team.",
    why=(
        "MultiKueue makes the run's copy in the queue of the same name. Where it is missing, runs "
        "are never handed over."
    ),
    fix="Add the team with the same queue to the worker cluster.",
    example=Example(
        "overlays/far/cluster.yaml",
        before=(
            "apiVersion: gangplan.dev/v1\n"
            "kind: Cluster\n"
            'versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}\n'
            "region: eu-central\n"
            "location: on-prem\n"
            "nodePools:\n"
            "  cpu: {count: 4, cpu: 60, memory: 240Gi}\n"
            "  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}}\n"
            "  a100-spot: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: spot}, capacity: spot}\n"
            "teams: {nlp: {queue: other}}\n"
        ),
        after=(
            "apiVersion: gangplan.dev/v1\n"
            "kind: Cluster\n"
            'versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}\n'
            "region: eu-central\n"
            "location: on-prem\n"
            "nodePools:\n"
            "  cpu: {count: 4, cpu: 60, memory: 240Gi}\n"
            "  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}}\n"
            "  a100-spot: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: spot}, capacity: spot}\n"
            "teams: {nlp: {queue: training}}\n"
        ),
        whole=True,
        changes=(
            (
                "overlays/lab/cluster.yaml",
                "teams:\n",
                ("multiKueue: {clusters: {far: {kubeconfigSecret: far}}}\nteams:\n"),
            ),
        ),
    ),
)

POOL_NAME_LONG = Rule(
    "pool-name-long",
    ERROR,
    "The name of a pool that grows is too long.",
    why=(
        "Kueue's admission check for new nodes is called provision-<pool>, and the name of what it "
        "refers to has at most 63 characters (kueue facts, AdmissionCheck)."
    ),
    fix="Shorten the pool's name.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=(
            "  cpu: {count: 4, cpu: 60, memory: 240Gi, labels: {pool: cpu}}\n"
            "  a-pool-with-a-name-that-says-everything-about-its-nodes-at-once: {count: 4, cpu: 60, memory: 240Gi, labels: {pool: own}, autoscale: {most: 8, provisioningClass: check}}"
        ),
        after="  cpu: {count: 4, cpu: 60, memory: 240Gi, labels: {pool: cpu}}",
        old="  cpu: {count: 4, cpu: 60, memory: 240Gi, labels: {pool: cpu}}",
        base="shared",
    ),
)

KUEUE_FIELD_UNUSED = Rule(
    "kueue-field-unused",
    WARNING,
    "A field that only Kueue reads is set where Kueue starts no runs.",
    why=(
        "On a cluster with another gang no queue and no quota is rendered. Who reads the file "
        "believes in bounds that are not there."
    ),
    fix="Remove the field, or set gang: kueue.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("gang: none\nenvironment: dev\ncohorts: {company: {}}\n"),
        after=("gang: none\nenvironment: dev\n"),
        changes=(("overlays/lab/cluster.yaml", ', kueue: "0.19.2"', ""),),
    ),
)

MULTIKUEUE_POOL = Rule(
    "multikueue-pool",
    WARNING,
    ("A worker cluster describes a pool otherwise than the cluster that hands runs to it."),
    why=(
        "The copy of a run carries the node labels and tolerations of the manager's pool. On nodes "
        "with other labels or taints its pods never start, although it was admitted on both."
    ),
    fix="Describe the pool alike in both files, or give teams no quota of it.",
    example=Example(
        "overlays/far/cluster.yaml",
        before=(
            "apiVersion: gangplan.dev/v1\n"
            "kind: Cluster\n"
            'versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}\n'
            "region: eu-central\n"
            "location: on-prem\n"
            "nodePools:\n"
            "  cpu: {count: 4, cpu: 60, memory: 240Gi}\n"
            "  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: other}}\n"
            "  a100-spot: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: spot}, capacity: spot}\n"
            "teams: {nlp: {queue: training}}\n"
        ),
        after=(
            "apiVersion: gangplan.dev/v1\n"
            "kind: Cluster\n"
            'versions: {kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}\n'
            "region: eu-central\n"
            "location: on-prem\n"
            "nodePools:\n"
            "  cpu: {count: 4, cpu: 60, memory: 240Gi}\n"
            "  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}}\n"
            "  a100-spot: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: spot}, capacity: spot}\n"
            "teams: {nlp: {queue: training}}\n"
        ),
        whole=True,
        changes=(
            (
                "overlays/lab/cluster.yaml",
                "teams:\n",
                ("multiKueue: {clusters: {far: {kubeconfigSecret: far}}}\nteams:\n"),
            ),
        ),
    ),
)
