"""Rules about fabrics: what workers get from their nodes, and what has to allow it."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

HOST_ACCESS_REFUSED = Rule(
    "host-access-refused",
    ERROR,
    "The namespace refuses what the fabric gives to workers.",
    why=(
        "A fabric can need folders or the network of the node, or capabilities. Pod Security refuses them in a "
        "namespace at the level restricted, or baseline: the run would be admitted, hold its quota and never get "
        "its pods. Only the platform raises the level of a team's namespace, with a reason and a last day."
    ),
    fix=(
        "State podSecurity at the team's entry in the cluster's file, write memlock: unlimited at the fabric where "
        'IPC_LOCK is all that it needs, or write rdma: "off".'
    ),
    is_verdict=True,
)

CAPABILITY_IDLE = Rule(
    "capability-idle",
    WARNING,
    "A capability of the fabric does not reach the program.",
    why=(
        "Kubernetes gives added capabilities only to programs that run as root: it has no ambient ones (KEP-2763), and "
        "without privilege escalation, files cannot carry them either. Runs are never root. IPC_LOCK is not "
        "needed where the nodes give pods unlimited memlock, and does not help where they do not."
    ),
    fix="Raise the memlock limit on the nodes, and write memlock: unlimited at the fabric.",
    waivable=True,
)

FABRIC_NODE_SHARED = Rule(
    "fabric-node-shared",
    ERROR,
    "A worker does not take the whole node that its fabric needs.",
    why=(
        "Workers in their node's network share its ports: the second SSH server or torchrun on a node cannot "
        "open its own. Daemons of GPUDirect serve one worker with all GPUs and cards of the node. So each worker "
        "takes all GPUs of its node; on a pool without GPUs, more than half of its CPU."
    ),
    fix='Ask for all GPUs of a node per worker, or write rdma: "off".',
    is_verdict=True,
)

FABRIC_SCC = Rule(
    "fabric-scc",
    ERROR,
    "The fabric names no SecurityContextConstraints for OpenShift.",
    why=(
        "OpenShift admits pods by SecurityContextConstraints in addition to Pod Security. Runs ask for nonroot-v2, which "
        "gives no access to the node, so pods of this fabric would be refused."
    ),
    fix="Write scc at the fabric, and let the service account training of the team's namespace use it.",
    is_verdict=True,
)

FABRIC_UNKNOWN = Rule(
    "fabric-unknown",
    ERROR,
    "A node pool names a fabric that the cluster does not have.",
    why="Runs with RDMA on this pool would get its devices, and nothing else that its network needs.",
    fix="Write the fabric under fabrics, or correct its name.",
)

FABRIC_MISFIT = Rule(
    "fabric-misfit",
    ERROR,
    "Parts of a fabric do not belong together.",
    why=(
        "A preset whose cards are devices needs a pool that offers them, and any other fabric some way to its cards: a "
        "run with rdma: required would use TCP. Multus attaches networks only to pods "
        "with a network of their own, so hostNetwork and the pool's networks exclude each other. Launchers stay "
        "in the pod network: without the addresses of the nodes, their policies would keep them from workers on "
        "the nodes' network."
    ),
    fix="Follow the message.",
)

FABRIC_CONTAINER = Rule(
    "fabric-container",
    ERROR,
    "A container of a fabric would not start.",
    why=(
        "A container needs a name of its own, folders that the fabric has, and an image. Presets leave the image to "
        "the cluster's file, so that it has a digest and comes through the cluster's mirrors."
    ),
    fix="Write the image, correct the folder's name, or rename the container.",
)

FABRIC_ROOT = Rule(
    "fabric-root",
    WARNING,
    "A container of a fabric adds capabilities and does not run as root.",
    why=(
        "Kubernetes gives added capabilities to programs of root alone (KEP-2763): the container runs without "
        "them."
    ),
    fix="Write root: true, or remove the capabilities.",
)

FABRIC_UNUSED = Rule(
    "fabric-unused",
    NOTE,
    "No node pool names the fabric.",
    why="gangplan never renders any of it. Often the pool lacks its fabric: line, and runs get only the devices.",
    fix="Write fabric: at the pools that have it, or remove the fabric.",
)
