"""Who may talk to whom: what the built NetworkPolicies of a run allow and close, patches of the overlay
included.
"""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Echo, Example, Rule

NETWORK_UNREACHABLE = Rule(
    "network-unreachable",
    ERROR,
    "A connection that the run needs is denied.",
    why=(
        "Pods that a NetworkPolicy selects may only talk where some policy allows it, at the source and "
        "at the target. Without SSH from the launcher, the ports 1024-65535 among the ranks, DNS or a "
        "declared endpoint, the pods start, wait and run into a timeout that names no policy. Ports are "
        "compared as ranges, so gangplan also finds a range that lacks one port."
    ),
    fix=(
        "Allow the connection in the finding, or correct the patch that denies it; gangplan plan "
        "--network shows the whole table."
    ),
    is_verdict=True,
    echo=Echo.RUN,
    example=Example(
        "patch",
        before=(
            "- target: {kind: NetworkPolicy, name: filings-.*}\n"
            "  patch: |-\n"
            "    - {op: replace, path: /spec/ingress/0/from/0/podSelector/matchLabels, value: {gangplan.dev/role: launcher}}\n"
        ),
        after=(
            "- target: {kind: NetworkPolicy, name: filings-.*}\n"
            "  patch: |-\n"
            "    - {op: add, path: /spec/ingress/0/from/0/podSelector/matchLabels/gangplan.dev~1team, value: nlp}\n"
        ),
        rest=("network-open",),
    ),
)

NETWORK_OPEN = Rule(
    "network-open",
    ERROR,
    ("The run accepts connections from outsiders, or reaches more than it declares."),
    why=(
        "MPI ranks trust whoever connects to them. Pods of other runs and teams must not, and data must "
        "not leave to addresses that the spec does not name. gangplan considers every label that an "
        "outsider could carry, and counts only the run's own side, because other policies may change. In "
        "the restricted and isolated postures this includes ports inside the run."
    ),
    fix=("Narrow the rule in the finding to pods of the run, the cluster's DNS, or declared egress."),
    is_verdict=True,
    echo=Echo.RUN,
    waivable=True,
    example=Example(
        "patch",
        before=(
            "- target: {kind: NetworkPolicy, name: filings-.*}\n"
            "  patch: |-\n"
            "    - {op: add, path: /spec/ingress/-, value: {from: [{namespaceSelector: {}}], ports: [{protocol: TCP, port: 8888}]}}\n"
        ),
        after=(
            "- target: {kind: NetworkPolicy, name: filings-.*}\n"
            "  patch: |-\n"
            "    - {op: add, path: /spec/ingress/-, value: {from: [{podSelector: {matchLabels: {gangplan.dev/role: worker}, matchExpressions: [{key: gangplan.dev/role, operator: DoesNotExist}]}}], ports: [{protocol: TCP, port: 8888}]}}\n"
        ),
    ),
)

HOST_NETWORK = Rule(
    "host-network",
    WARNING,
    "Workers use their node's network, where no NetworkPolicy applies.",
    why=(
        "The fabric of the pool puts workers into the network of their node. NetworkPolicies select pods of the "
        "pod network: nothing keeps others from these workers, nor them from anything that the node reaches. "
        "Their SSH server listens on the node's addresses; only its keys protect it."
    ),
    fix=(
        "Close the SSH port and ports from 1024 up to everything but the pool's nodes in the network around them, "
        "or use a fabric with devices, such as virtual functions."
    ),
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="network: {rdma: required}\n",
        after='network: {rdma: "off"}\n',
        run="validate --today 2026-11-01",
        changes=(
            ("overlays/lab/cluster.yaml", "labels: {pool: a100}}", "labels: {pool: a100}, fabric: roce}"),
            (
                "overlays/lab/cluster.yaml",
                "teams:\n",
                "fabrics: {roce: {hostNetwork: true, nodeAddresses: [10.0.16.0/20]}}\nteams:\n",
            ),
            (
                "overlays/lab/cluster.yaml",
                "nlp: {queue: training}",
                "nlp: {queue: training, podSecurity: {level: privileged, reason: RoCE in the nodes' network, until: '2027-01-31'}}",
            ),
            ("specs/nlp/filings.yaml", "gpus: 2\n", "gpus: 8\n"),
        ),
        rest=("pod-security-raised", "host-access"),
    ),
)

RDMA_BYPASSES_POLICY = Rule(
    "rdma-bypasses-policy",
    WARNING,
    "NetworkPolicy does not see the RDMA traffic of the run.",
    why=(
        "InfiniBand, RoCE and SR-IOV devices and secondary networks (Multus) bypass the network plugin "
        "that enforces NetworkPolicy. Only the fabric itself can keep runs apart there. The message "
        "names every network and device of the run."
    ),
    fix='Keep teams apart on the fabric (partition keys, VLANs), or write rdma: "off".',
    waivable=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="network: {rdma: required}\n",
        after='network: {rdma: "off"}\n',
        changes=(
            (
                "overlays/lab/cluster.yaml",
                "labels: {pool: a100}}",
                "labels: {pool: a100}, rdma: {resource: rdma/ib, count: 8}}",
            ),
        ),
    ),
)
