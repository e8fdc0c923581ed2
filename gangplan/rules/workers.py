"""Rules about workers that cannot train: memory, CPU and ranks for their GPUs."""

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
        "worker fits there. A job that needs more memory or cores than such a node has is usually a GPU "
        "job whose gpus field was left out; the run would occupy GPU nodes and compute on their CPUs."
    ),
    fix=(
        "Set gpus, or request no more than a node without GPUs has. Write gpus: 0 if you want none, and "
        "placement: {nodePool: ...} if you do want these nodes."
    ),
    waivable=True,
)
