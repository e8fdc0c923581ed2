"""Rules about the network: what the built NetworkPolicies of a run, patches included, allow and deny."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Deduplication, Rule

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
    echo=Deduplication.RUN,
)

NETWORK_OPEN = Rule(
    "network-open",
    ERROR,
    ("The run accepts connections from outsiders, or reaches more than it declares."),
    why=(
        "MPI ranks trust any connection. Pods of other runs and teams must not connect, and data must "
        "not go to addresses that the spec does not name. gangplan considers every label that an "
        "outsider could carry, and counts only the run's own side, because other policies may change. In "
        "the restricted and isolated postures this includes ports inside the run."
    ),
    fix=("Narrow the rule in the finding to pods of the run, the cluster's DNS, or declared egress."),
    is_verdict=True,
    echo=Deduplication.RUN,
    waivable=True,
)
EGRESS_METADATA = Rule(
    "egress-metadata",
    WARNING,
    "An endpoint leads to the metadata service of the cloud.",
    why=(
        "On AWS, Azure, Google Cloud and OpenStack, 169.254.169.254 answers any pod on port 80, often with a token of "
        "its node: who reads it may do what the node may. Runs that need an identity get one of their own "
        "(workloadIdentity), for which gangplan opens what is needed."
    ),
    fix="Exclude the address (excluding: [169.254.169.254/32]), or remove the range.",
    waivable=True,
)

HOST_NETWORK = Rule(
    "host-network",
    WARNING,
    "Workers use their node's network, where no NetworkPolicy applies.",
    why=(
        "The fabric of the pool puts workers into the network of their node. NetworkPolicies select pods of the "
        "pod network: nothing shields these workers from others, or keeps them from anything that the node reaches. "
        "Their SSH server listens on the node's addresses; only its keys protect it."
    ),
    fix=(
        "In the surrounding network, close the SSH port and ports 1024-65535 to everything but the pool's nodes, "
        "or use a fabric with devices, such as virtual functions."
    ),
    waivable=True,
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
)
