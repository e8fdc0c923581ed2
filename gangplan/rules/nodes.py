"""Rules about node fit: whether the pods of an admitted run find nodes (docs/node-fit.md)."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Deduplication, Rule

NO_NODE_FITS = Rule(
    "no-node-fits",
    ERROR,
    "No node can run a pod of the run.",
    why=(
        "Kueue admits by quota and never looks at a single node. A pod that is larger than what "
        "DaemonSets leave on a node, or that requires labels, taints or domains that no node has, stays "
        "Pending forever while the run holds its quota."
    ),
    fix=("Request no more than one node has for runs, or change what the pods require of nodes."),
    is_verdict=True,
    echo=Deduplication.RUN,
)

NODES_TOO_FEW = Rule(
    "nodes-too-few",
    ERROR,
    "Some pods of the run find no node, though the quota is enough.",
    why=(
        "Quota is a sum over all nodes; a pod needs a single node with room for everything that it "
        "requests. Four nodes with 124 CPUs each add up to 496, but hold only twelve workers with 36. "
        "The other workers stay Pending, and those that run wait for them until the run times out."
    ),
    fix="Use the number of workers or the amount per worker from the message.",
    is_verdict=True,
    echo=Deduplication.RUN,
)

NODES_TIGHT = Rule(
    "nodes-tight",
    WARNING,
    "The pods of the run find nodes only if kube-scheduler places them well.",
    why=(
        "kube-scheduler places pods one after another and never moves one. By default it prefers empty "
        "nodes, so spread-out workers can leave no node with room for a large launcher, although packed "
        "ones would."
    ),
    fix="Use fewer workers, or request less per pod.",
    echo=Deduplication.RUN,
)

NODES_UNJUDGED = Rule(
    "nodes-unjudged",
    NOTE,
    "gangplan could not judge whether the pods fit the nodes.",
    why=(
        "The pods require something that the cluster file does not describe, such as a node by its name, "
        "a label that no pool states, or domains of a topology level whose size is not stated; or there "
        "are more ways to place them than gangplan tries."
    ),
    fix=(
        "State the pool's labels or the level's nodes in cluster.yaml, or leave the choice of single nodes to the scheduler."
    ),
)
