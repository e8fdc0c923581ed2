"""Rules about variables and options that contradict the plan: interfaces, GPUs, rank numbers, addresses."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

INTERFACE_UNKNOWN = Rule(
    "interface-unknown",
    ERROR,
    "A setting names a network interface that no pod of the run has.",
    why=(
        "A pod has lo and eth0, and the interfaces of the networks that its pool attaches; eno1, ens5 or ib0 "
        "are names on the node. NCCL, Gloo and MPI end a run whose interface does not exist (NCCL: "
        "'Bootstrap : no socket interface found')."
    ),
    fix=(
        "Remove the setting: gangplan names the interfaces of a fabric by itself. Waive the rule where a patch "
        "gives pods another interface."
    ),
    waivable=True,
)

TRANSPORT_UNAVAILABLE = Rule(
    "transport-unavailable",
    WARNING,
    "A setting leaves ranks of different workers no way to reach each other.",
    why=(
        "Shared memory ends at the host, and verbs, PSM or EFA need devices that workers have only with network.rdma. "
        "MPI then ends when it starts ('At least one pair of MPI processes are unable to reach each other'), and "
        "so does NCCL with a network that it cannot initialise."
    ),
    fix=(
        "Remove the setting; where the pool has RDMA, ask for it with network.rdma. Waive the rule where a patch "
        "gives pods the devices."
    ),
    waivable=True,
)

RDMA_UNUSED = Rule(
    "rdma-unused",
    WARNING,
    "Settings keep all traffic off the RDMA devices that workers hold.",
    why=(
        "network.rdma takes devices that no other run can use meanwhile. With NCCL_IB_DISABLE, with Open MPI's ob1 "
        "over tcp, or with libfabric's tcp, all traffic takes the pod's own network."
    ),
    fix="Remove the setting, or write network: {transport: tcp} without rdma.",
    waivable=True,
)

GPUS_UNASKED = Rule(
    "gpus-unasked",
    ERROR,
    "A variable would expose other runs' GPUs to the container.",
    why=(
        "NVIDIA's container runtime gives a container the GPUs that NVIDIA_VISIBLE_DEVICES names, whatever it "
        "asked for (nvidia-container-toolkit, accept-nvidia-visible-devices-envvar-when-unprivileged). Neither "
        "Kueue nor a quota counts them."
    ),
    fix="Remove it; a worker sees the GPUs that gpus asks for.",
)

GPUS_HIDDEN = Rule(
    "gpus-hidden",
    WARNING,
    "A variable hides GPUs that the worker has asked for.",
    why=(
        "All ranks of a worker see the same value, so ranks left without a GPU end with 'invalid device "
        "ordinal', or share one. A worker's GPUs are numbered from 0, whichever GPUs of the node they are; "
        "launchers and frameworks give each rank its own."
    ),
    fix="Remove it; to use fewer GPUs, ask for fewer.",
    waivable=True,
)

RANK_CONSTANT = Rule(
    "rank-constant",
    ERROR,
    "A setting gives every rank the same number, or tells each that it is alone.",
    why=(
        "A variable that the spec or a script sets has the same value in every rank. With RANK or "
        "WORLD_SIZE set this way, PyTorch and DeepSpeed look no further (torch.distributed env://, DeepSpeed "
        "mpi_discovery): each rank trains alone, or waits for others that never come. Launchers give each rank "
        "its own numbers."
    ),
    fix="Remove it; launchers give each rank its own. Waive the rule where the program means something else by it.",
    waivable=True,
)

ENV_UNREACHABLE = Rule(
    "env-unreachable",
    WARNING,
    "A variable leads to an address that the run cannot reach.",
    why=(
        "A run reaches what network.egress names, and nothing else: NetworkPolicy drops all other packets, also "
        "those to services of other namespaces. Clients of MLflow, W&B or a database wait for their timeouts, "
        "try again, and many then end the run, after its wait in the queue."
    ),
    fix=(
        "In network.egress, name the cluster's endpoint for that address. Where the program works without "
        "it, remove the variable or set the client's own switch, such as WANDB_MODE: offline. Waive the rule "
        "where a policy outside this repository opens the way."
    ),
    waivable=True,
)
