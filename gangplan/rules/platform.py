"""What the platform would refuse, waste or answer with a surprise, though every object is valid."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Example, Rule

SPOT_IN_PROD = Rule(
    "spot-in-prod",
    WARNING,
    "A run on a production cluster uses spot nodes.",
    why=(
        "Spot nodes cost less because the provider can take them back at any time. Work that others wait "
        "for then takes as long as the market wants. A run with priority low says that it can wait, and "
        "is not reported."
    ),
    fix="Leave out capacity: spot, or write priority: low.",
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before=("checkpoint: {to: filings}\nretries: 1\nplacement: {capacity: spot}\n"),
        after=("checkpoint: {to: filings}\nretries: 1\npriority: low\nplacement: {capacity: spot}\n"),
    ),
)

CHECKPOINT_MISSING = Rule(
    "checkpoint-missing",
    WARNING,
    "A run that may take longer than 24 hours saves no checkpoints.",
    why=(
        "Over several days, a node fails, a more urgent run preempts this one, or its timeout ends it, "
        "and all of its GPU-hours are lost. The limit is that of a plain run (24 hours; longer runs need "
        "extendedTimeout or the profile large). If the run mounts a claim that it can write, or has a "
        "bucket, its program may save there on its own, so the finding is only a note."
    ),
    fix=(
        "Add checkpoint: {to: CLAIM}, and make the program save to CHECKPOINT_DIR every "
        "CHECKPOINT_INTERVAL steps."
    ),
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before=("timeout: 48h\nextendedTimeout: true\n"),
        after=("timeout: 48h\nextendedTimeout: true\ncheckpoint: {to: filings}\n"),
    ),
)

WEIGHT_OMITTED = Rule(
    "weight-omitted",
    WARNING,
    "A team states no weight, and the teams beside it use much larger ones.",
    why=(
        "An omitted weight is 1 (as in Kueue). Beside 32, 32 and 16, that is 1/81 of what is shared, and "
        "nobody chose it. gangplan reports it when 1 is less than half of the smallest stated weight "
        "that it competes with."
    ),
    fix="Give the team a weight; write 1 if that is what you mean.",
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("  nlp: {queue: training}\n  vision: {queue: training, weight: 3}\n"),
        after=("  nlp: {queue: training, weight: 3}\n  vision: {queue: training, weight: 3}\n"),
        old="  nlp: {queue: training}\n",
        files={"specs/vision/team.yaml": ("apiVersion: gangplan.dev/v1\nkind: Team\nclusters: [lab]\n")},
    ),
)

IMAGE_NOT_FIPS = Rule(
    "image-not-fips",
    WARNING,
    "The cluster runs in FIPS mode, and the image is not built for it.",
    why=(
        "In FIPS mode only validated cryptography may be used. The libraries of another image are not "
        "validated, and some of their ciphers and hashes fail at run time. On clusters with the pack "
        "images, the policy image-fips refuses it instead."
    ),
    fix="Use an image that the catalog marks with fips: true.",
    waivable=True,
    example=Example(
        "images/catalog.yaml",
        before='    mpi: {implementation: OpenMPI, version: "5.0.8"}\n',
        after=('    mpi: {implementation: OpenMPI, version: "5.0.8"}\n    fips: true\n'),
        old='    mpi: {implementation: OpenMPI, version: "5.0.8"}\n',
        changes=(("overlays/lab/cluster.yaml", "location: on-prem\n", ("location: on-prem\nfips: true\n")),),
    ),
)

PROXY_ADDRESS_UNKNOWN = Rule(
    "proxy-address-unknown",
    WARNING,
    "Network policies cannot open the proxy, because only its name is known.",
    why=(
        "A NetworkPolicy can only allow addresses and pods. Runs that ask for the internet get the "
        "proxy's name (HTTP_PROXY, HTTPS_PROXY). If gangplan does not know its address, their own policy "
        "denies it, and every request hangs until it times out."
    ),
    fix="Add the proxy's own addresses: proxy: {addresses: [10.1.2.3/32], ...}.",
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before=(
            'proxy: {http: "http://proxy.example.com:3128", https: "http://proxy.example.com:3128"}\n'
            "egress:\n"
        ),
        after=(
            'proxy: {http: "http://proxy.example.com:3128", https: "http://proxy.example.com:3128", addresses: [10.1.2.3/32]}\n'
            "egress:\n"
        ),
        old="egress:\n",
    ),
)

DNS_OPENSHIFT = Rule(
    "dns-openshift",
    ERROR,
    "The pods that dns names answer nobody on OpenShift.",
    why=(
        "OpenShift's DNS operator runs DNS in openshift-dns, in pods that listen on 5353; the Service in front "
        "of them listens on 53 (openshift/cluster-dns-operator, assets/dns). A NetworkPolicy is compared with "
        "the pods' own port, so one that allows 53 matches nothing, and no pod of a run can look up a name: the "
        "launcher waits for its workers until it gives up."
    ),
    fix="Remove dns: gangplan knows where DNS is on OpenShift. Addresses of a cache on the nodes may stay.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before="region: eu-central\ndns: {namespace: openshift-dns, labels: {dns.operator.openshift.io/daemonset-dns: default}, ports: [53]}\n",
        after="region: eu-central\ndns: {namespace: openshift-dns, labels: {dns.operator.openshift.io/daemonset-dns: default}, ports: [5353]}\n",
        old="region: eu-central\n",
        changes=(
            (
                "overlays/lab/cluster.yaml",
                'kubernetes: "1.34.4"',
                'kubernetes: "1.34.4", openshift: "4.21.0"',
            ),
        ),
    ),
)

PROXY_CLOSED = Rule(
    "proxy-closed",
    WARNING,
    "The program is set to use a proxy that its network policies deny.",
    why=(
        "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY send every request of curl, Python and Go to the proxy. "
        "The run's network policies allow only what network.egress names; every other request hangs "
        "until it times out, even those to stores that are allowed."
    ),
    fix=("In network.egress, name an endpoint whose addresses include the proxy, or remove the variable."),
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before='env: {HTTPS_PROXY: "http://10.1.2.3:3128"}\n',
        after=('env: {HTTPS_PROXY: "http://10.40.8.9:443"}\nnetwork: {egress: [s3]}\n'),
    ),
)

CLAIM_ZONE = Rule(
    "claim-zone",
    ERROR,
    "A claim is made in one zone, and the run's pods are in another.",
    why=(
        "A zonal disk carries a node affinity, and the scheduler places its pods nowhere else. With a "
        "node selector for another zone, no node is left, so the run is admitted, holds its quota and "
        "stays Pending."
    ),
    fix="Use a pool in the zone of the storage class, or a class without a zone.",
    example=Example(
        "overlays/lab/cluster.yaml",
        before=(
            "region: eu-central\n"
            "storageClasses: {disk: {accessModes: [ReadWriteMany], zone: eu-1a, default: true}}\n"
        ),
        after=(
            "region: eu-central\n"
            "storageClasses: {disk: {accessModes: [ReadWriteMany], zone: eu-1b, default: true}}\n"
        ),
        old="region: eu-central\n",
        changes=(
            (
                "overlays/lab/cluster.yaml",
                "labels: {pool: a100}",
                "labels: {pool: a100, topology.kubernetes.io/zone: eu-1b}",
            ),
            (
                "specs/nlp/team.yaml",
                "filings: {accessModes: [ReadWriteMany]}",
                "filings: {accessModes: [ReadWriteMany], size: 1Gi}",
            ),
            ("specs/nlp/filings.yaml", "memory: 32Gi\n", ("memory: 32Gi\ndata: {filings: /data}\n")),
        ),
    ),
)

MONITORING_LABEL_ENFORCED = Rule(
    "monitoring-label-enforced",
    WARNING,
    "OpenShift narrows the alert rules to a namespace that contains no runs.",
    why=(
        "User-workload monitoring adds the label namespace, with the namespace of the rule itself, to "
        "everything that a PrometheusRule reads, unless its configuration lists that namespace in "
        "namespacesWithoutLabelEnforcement. Runs live in the namespaces of their teams, so none of "
        "gangplan's rules match anything, without an error anywhere."
    ),
    fix=(
        "List the namespace in user-workload-monitoring-config, then write monitoring: {allNamespaces: true}."
    ),
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before=("region: eu-central\nmonitoring: {namespace: watch}\n"),
        after=("region: eu-central\nmonitoring: {namespace: watch, allNamespaces: true}\n"),
        old="region: eu-central\n",
        changes=(("overlays/lab/cluster.yaml", 'trainer: "2.3.0"', 'openshift: "4.21", trainer: "2.3.0"'),),
    ),
)

MONITORING_MOVED = Rule(
    "monitoring-moved",
    WARNING,
    "A label moves a team's namespace to the platform's own Prometheus.",
    why=(
        "On OpenShift the label openshift.io/cluster-monitoring is for platform components. With it, "
        "user-workload monitoring ignores the namespace, so the team loses the metrics of its own runs, "
        "and the platform's Prometheus carries the load."
    ),
    fix="Remove the label from the overlay's patch.",
    waivable=True,
    example=Example(
        "patch",
        before=(
            "- target: {kind: Namespace}\n"
            "  patch: |-\n"
            '    - {op: add, path: /metadata/labels/openshift.io~1cluster-monitoring, value: "true"}\n'
        ),
        after=(
            "- target: {kind: Namespace}\n"
            "  patch: |-\n"
            '    - {op: add, path: /metadata/labels/openshift.io~1cluster-monitoring, value: "false"}\n'
        ),
    ),
)

ADMITTED_ELSEWHERE = Rule(
    "admitted-elsewhere",
    WARNING,
    "Kueue would admit the run to a pool other than the planned one.",
    why=(
        "Kueue takes the queue's first flavor that has room and whose node labels the pods do not "
        "contradict. Pods for a pool without labels contradict none, so a CPU run whose pool has too "
        "little quota silently goes to GPU nodes and spends their quota."
    ),
    fix="Give each pool a label of its own.",
    waivable=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before="cpu: {count: 4, cpu: 60, memory: 240Gi}\n",
        after="cpu: {count: 40, cpu: 60, memory: 240Gi}\n",
        old="cpu: {count: 4, cpu: 60, memory: 240Gi}\n",
        changes=(("specs/nlp/filings.yaml", ("workers: 4\ngpus: 2\n"), "workers: 40\n"),),
    ),
)
