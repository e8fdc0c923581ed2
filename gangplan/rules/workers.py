"""Rules about runs that cannot train well: memory, CPU, ranks, cores, network and launcher."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

RANKS_SHARE_GPUS = Rule(
    "ranks-share-gpus",
    ERROR,
    "A worker has more ranks than GPUs, and its ranks talk over NCCL.",
    why=(
        "NCCL ends a run in which two ranks have the same GPU: 'Duplicate GPU detected' (an error since NCCL "
        "2.5). PyTorch, DeepSpeed and Horovod use NCCL on GPUs unless told otherwise."
    ),
    fix=(
        "Omit slots to run one rank per GPU. Waive the rule where the program uses Gloo or MPI on its GPUs; "
        "newer NCCL allows it, as an experiment, with NCCL_MULTI_RANK_GPU_ENABLE in env."
    ),
    waivable=True,
)

MIG_SLICES = Rule(
    "mig-slices",
    ERROR,
    "A worker asks for several MIG slices, but a process sees only one.",
    why=(
        "CUDA enumerates one MIG device per process, whatever the container was given (NVIDIA, MIG User Guide, "
        "CUDA Device Enumeration). Ranks beyond the first end with 'invalid device ordinal', or all share the "
        "first slice."
    ),
    fix=(
        "Give each worker one slice and one rank, and raise workers. Waive the rule where the program sets "
        "CUDA_VISIBLE_DEVICES to a UUID of its own in each rank."
    ),
    waivable=True,
)

MEMORY_TINY = Rule(
    "memory-tiny",
    WARNING,
    "A worker has too little memory to load a model onto its GPUs.",
    why=(
        "A process of PyTorch or TensorFlow takes about 1 GiB before it trains (CUDA context, libraries); the "
        "kernel kills a worker that has less: OOMKilled. M is a million bytes, and m a thousandth of one."
    ),
    fix="Write a fair share of the node, as the help shows.",
    waivable=True,
)

CPU_TINY = Rule(
    "cpu-tiny",
    WARNING,
    "A worker has less than one CPU for each GPU.",
    why=(
        "Each rank needs a core to feed its GPU, and more to load data. With less, the kernel throttles the "
        "process and the GPU waits. 200m is a fifth of a core."
    ),
    fix="Write a fair share of the node, as the help shows.",
    waivable=True,
)
GPUS_FORGOTTEN = Rule(
    "gpus-forgotten",
    WARNING,
    ("Workers without GPUs take nodes with GPUs, because no other node is large enough."),
    why=(
        "A spec without gpus is a CPU job, and gangplan sends it to nodes without GPUs as long as a "
        "worker fits there. A job that needs more memory, cores, disk or devices than such a node has is usually a GPU "
        "job whose gpus field was left out; the run would occupy GPU nodes and compute on their CPUs."
    ),
    fix=(
        "Set gpus, or request no more than a node without GPUs has. Write gpus: 0 if you want none, and "
        "placement: {nodePool: ...} if you do want these nodes."
    ),
    waivable=True,
)

BINDING_SHARED = Rule(
    "binding-shared",
    WARNING,
    "Ranks are bound to cores that are not theirs alone.",
    why=(
        "kubelet gives a container cores of its own only for a whole number of CPUs (CPU manager with the policy "
        "static, stable since Kubernetes 1.26). With a fraction, a container sees all cores of its node, and the ranks of "
        "every such pod are bound to the same first ones. With fewer CPUs than ranks, ranks share what they are "
        "bound to. A CPU of Kubernetes may be half a core (hyper-threads), so ranks may need two each. OMP_PROC_BIND and "
        "the like bind the threads of a rank to the first cores that it sees; unless ranks are bound first, all ranks of a "
        "worker see the same."
    ),
    fix=(
        "Write a whole number of CPUs, at least one for each rank, or remove bindTo. Remove OMP_PROC_BIND, or bind "
        "ranks first."
    ),
    waivable=True,
)

NETWORK_SLOW = Rule(
    "network-slow",
    WARNING,
    "The network of the nodes is slow for so many of them.",
    why=(
        "In each step every node sends and receives about twice the size of the gradients (ring all-reduce), so "
        "a network that serves two nodes well keeps the GPUs of sixteen waiting. The least bandwidths are those "
        "of the founding requirements: 10 Gbit/s from 8 nodes or 32 GPUs, 25 Gbit/s from 16 nodes. Runs that use "
        "RDMA are not judged by it, nor are pools whose networkGbps is not stated."
    ),
    fix="Name a pool with a faster network or RDMA, or use fewer workers with more GPUs each.",
    waivable=True,
)

LAUNCHER_SMALL = Rule(
    "launcher-small",
    WARNING,
    "The launcher is very small for so many workers.",
    why=(
        "mpirun starts an SSH session for each worker and keeps a connection to the daemon there. With little "
        "CPU the sessions time out before all workers have started; with little memory the kernel kills the "
        "launcher, and the run with it. Reported from 17 workers on, below a quarter of what gangplan gives a "
        "launcher for so many."
    ),
    fix="Remove launcher.cpu and launcher.memory, so that gangplan chooses them by the number of workers.",
    waivable=True,
)
