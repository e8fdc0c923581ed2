"""Causes in the program, its GPUs, its libraries and its network."""

from __future__ import annotations

from gangplan.diagnose.cause import ASIDE, ENDING, SYMPTOM, KnownCause

CAUSES = (
    KnownCause(
        "gpu-memory",
        "its GPU is out of memory",
        "The model, its gradients and the batch do not fit into the memory of the GPU.",
        (
            "Use a smaller batch per GPU, with more accumulation; or activation checkpointing.",
            "Shard the model (FSDP, ZeRO), or take GPUs with more memory.",
            "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in env, where much is reserved and not allocated.",
        ),
        unforeseen="The program decides how much memory of the GPU it takes.",
    ),
    KnownCause(
        "gpu-driver",
        "the driver of the node is too old for the CUDA of the image",
        "The image's CUDA needs a newer driver than the nodes have.",
        ("Use an image with an older CUDA, or a pool with a newer driver.",),
        rules=(
            "image-driver",
            "cuda-minor-version",
            "cuda-forward",
        ),
    ),
    KnownCause(
        "gpu-missing",
        "its program sees no GPU",
        "The program asks for CUDA, and its container has no GPU or no driver.",
        (
            "Ask for them: gpus in the spec.",
            "Do not set CUDA_VISIBLE_DEVICES or NVIDIA_VISIBLE_DEVICES in env or in the image.",
        ),
        ("gpus-forgotten",),
    ),
    KnownCause(
        "gpu-kernels",
        "its libraries have no code for this GPU",
        "The framework was built for other GPU generations.",
        ("Use a build of the framework for the GPU of the pool.",),
        unforeseen="The catalog does not say for which GPUs a framework was built.",
    ),
    KnownCause(
        "gpu-broken",
        "a GPU failed",
        "The driver reports an error of the hardware: an Xid, memory that cannot be corrected, a GPU that fell off the bus.",
        (
            "Have the node cordoned and its GPU looked at: it fails again.",
            "Start the run again; retries in the spec does so by itself.",
        ),
        unforeseen="Hardware fails.",
    ),
    KnownCause(
        "gpu-assert",
        "a check on the GPU failed",
        "Mostly an index that is out of range: a label or token beyond the size of its table.",
        ("Run once with CUDA_LAUNCH_BLOCKING=1 in env, which names the line.",),
        unforeseen="It depends on the program and its data.",
    ),
    KnownCause(
        "nccl-timeout",
        "ranks waited for each other until NCCL gave up",
        "One rank did not take part in a collective operation: it failed, hangs, is far slower, or took another branch.",
        (
            "Find the rank that stopped first: its log ends before the others', or with an error.",
            "See whether ranks do the same number of steps (uneven data, a branch on rank 0 alone).",
            "For slow steps such as saving or evaluating, raise the timeout of init_process_group.",
        ),
        (),
        SYMPTOM,
    ),
    KnownCause(
        "gloo-timeout",
        "ranks waited for each other until gloo gave up",
        "One rank did not take part in a collective operation: it failed, hangs, is far slower, or took another branch.",
        (
            "Find the rank that stopped first: its log ends before the others', or with an error.",
            "See whether ranks do the same number of steps (uneven data, a branch on rank 0 alone).",
            "For slow steps such as saving or evaluating, raise the timeout of init_process_group.",
        ),
        (),
        SYMPTOM,
    ),
    KnownCause(
        "horovod-stalled",
        "ranks waited for others in Horovod",
        "Some ranks have submitted a tensor that the ranks named have not: these failed, hang, are slower, or took another branch.",
        (
            "Look at the ranks that are named: their logs end before the others', or with an error.",
            "See whether ranks do the same number of steps (uneven data, a branch on rank 0 alone); hvd.join() evens out the last ones.",
            "For slow steps such as saving or evaluating, raise HOROVOD_STALL_CHECK_TIME_SECONDS in env.",
        ),
        (),
        SYMPTOM,
    ),
    KnownCause(
        "peer-lost",
        "a rank lost another one",
        "The other rank ended while this one waited for its data: what ended it is in its log, not here.",
        ("Look at the rank that ended first; if no other rank shows an error, at the pods and their nodes.",),
        (),
        SYMPTOM,
    ),
    KnownCause(
        "nccl-network",
        "NCCL cannot connect its ranks",
        "Connections between workers failed: interface, ports, or a peer that has ended.",
        (
            "Set NCCL_SOCKET_IFNAME=eth0 in env, and NCCL_DEBUG=INFO for one run.",
            "See whether a network policy or a mesh is in the way, and which rank failed first.",
        ),
        ("network-unreachable",),
        SYMPTOM,
    ),
    KnownCause(
        "nccl-system",
        "NCCL met an error of the system or of CUDA",
        "NCCL says only that a call failed; NCCL_DEBUG=INFO says which.",
        ("Set NCCL_DEBUG=INFO (NCCL_DEBUG=WARN is less) in env, and run it again.",),
        ("ranks-share-gpus",),
        SYMPTOM,
    ),
    KnownCause(
        "slow-network",
        "it does not use the fast network",
        "InfiniBand, RoCE or EFA was not found, and the run goes on by TCP, ten times slower.",
        (
            "Write network: {rdma: required} into the spec: then it fails instead, and gangplan proves that the pool has devices.",
            "Check whether the pool has InfiniBand, RoCE or EFA at all; if not, say network: {transport: tcp}.",
            "Install the provider's libraries in the image (rdma-core, UCX, aws-ofi-nccl).",
        ),
        ("rdma-fallback", "rdma-missing", "rdma-devices"),
        ASIDE,
    ),
    KnownCause(
        "locked-memory",
        "it may not lock enough memory for RDMA",
        "RDMA registers memory, and the limit on locked memory (ulimit -l) is too small.",
        ("Have the limit raised on the nodes (container runtime), or use a fabric that says memlock.",),
        ("capability-idle",),
    ),
    KnownCause(
        "shared-memory",
        "its shared memory (/dev/shm) is full",
        "NCCL and data loaders exchange data through /dev/shm.",
        (
            "Raise memory in the spec: /dev/shm is a part of it, and grows with it.",
            "Use fewer data-loader workers.",
        ),
        rules=("memory-tiny",),
    ),
    KnownCause(
        "rendezvous-timeout",
        "the workers did not all meet in time",
        "torchrun waits for all workers at one address, and some did not come.",
        (
            "Look at the workers that are not running, or ended at once.",
            "See whether they reach the first worker's port: network policies.",
        ),
        ("command-rendezvous", "network-unreachable"),
        SYMPTOM,
    ),
    KnownCause(
        "address-in-use",
        "its port is in use already",
        "Two programs on a worker want the same port: mostly two launchers where one is enough.",
        (
            "Start the program, and not another torchrun or mpirun inside it.",
            "Leave MASTER_PORT as the run sets it.",
        ),
        ("command-nested", "env-reserved"),
    ),
    KnownCause(
        "worker-process-failed",
        "torchrun ended because one of its processes failed",
        "The first process that failed is the one to look at.",
        ("Look at the output of that rank, just before.",),
        (),
        ENDING,
    ),
    KnownCause(
        "module-missing",
        "a Python module is not in the image",
        "The program imports a package that the image does not have.",
        ("Install it in the image. Installing at start needs the network and repeats on every worker.",),
        unforeseen="The catalog does not list the packages of an image; gangplan run tries the program on a laptop.",
    ),
    KnownCause(
        "library-missing",
        "a shared library is not in the image, or not the one it was built with",
        "The dynamic linker did not find a library or a symbol.",
        ("Install the library, or build the package against the versions of the image.",),
        rules=(
            "mpi-mismatch",
            "mpi-version",
        ),
    ),
    KnownCause(
        "path-missing",
        "a file or folder is not there",
        "The program opens a path that does not exist in its container.",
        (
            "Compare it with the mounts of the container: data, volumes, files and checkpoint in the spec name their folders.",
            "See whether the data is in the volume at all, under that name.",
        ),
        rules=(
            "mount-hides",
            "workdir-unusable",
            "file-missing",
        ),
    ),
    KnownCause(
        "not-permitted",
        "it may not read or write a file",
        "The user of the container has no right to the file or folder.",
        (
            "Write to a volume, to scratch or to /tmp: images are read by an arbitrary user.",
            "Set the owner or group of the data on the volume to the run's (fsGroup).",
        ),
        rules=(
            "workdir-unusable",
            "claim-read-only",
        ),
    ),
    KnownCause(
        "read-only",
        "it writes to where nothing can be written",
        "The file system is read-only: the image's own, or a dataset.",
        (
            "Write to a volume, to scratch or to /tmp; mount the claim with write access if it must be that one.",
        ),
        ("claim-read-only",),
    ),
    KnownCause(
        "disk-full",
        "a disk is full",
        "No space is left on the device, or the quota of the storage is used up.",
        (
            "Keep fewer checkpoints, or have the volume enlarged.",
            "Use scratch with a size for temporary files.",
        ),
        unforeseen="How much a program writes is known only while it runs.",
    ),
    KnownCause(
        "no-internet",
        "it cannot reach a host outside",
        "A name was not found, or a connection timed out: runs reach only what their spec and platform allow.",
        (
            "Bring data and models beforehand: a dataset, a volume; set HF_HUB_OFFLINE=1 in env.",
            "Say what it must reach: network.egress in the spec, if the cluster allows it; behind a proxy, see the cluster's proxy.",
        ),
        ("egress-internet", "egress-unknown", "proxy-closed"),
    ),
    KnownCause(
        "certificate",
        "it does not trust a certificate",
        "A TLS certificate is not signed by an authority that the image knows: often a proxy of the company.",
        (
            "Put the authority into the image, or mount it and set SSL_CERT_FILE and REQUESTS_CA_BUNDLE in env.",
        ),
        unforeseen="Only the files in the image show which authorities it trusts.",
    ),
    KnownCause(
        "access-denied",
        "a service refuses its credentials",
        "A bucket, registry of models or tracking server answered 401 or 403.",
        (
            "Renew the secret of the team; check that the identity may read that bucket or model.",
            "Gated models need an accepted licence and a token of that account.",
        ),
        ("secret-unknown",),
    ),
    KnownCause(
        "checkpoint-mismatch",
        "its checkpoint does not fit",
        "The checkpoint was written by another model, another number of ranks, or is cut off.",
        (
            "Start from an empty folder, or name the checkpoint that fits.",
            "Write checkpoints to a new name, and rename them when they are whole.",
        ),
        unforeseen="It depends on the program and on what was saved before.",
    ),
    KnownCause(
        "arguments",
        "its program does not know an argument",
        "The program's own parser refused its command line.",
        ("Correct command in the spec.",),
        ("command-unreadable",),
    ),
    KnownCause(
        "not-a-number",
        "the loss is not a number",
        "Training diverged: NaN or infinite values.",
        (
            "Lower the learning rate, clip gradients, or look at the data of that step; go on from an earlier checkpoint.",
        ),
        unforeseen="It depends on the program and its data.",
    ),
    KnownCause(
        "segmentation-fault",
        "a process broke by a memory fault",
        "SIGSEGV: mostly libraries that do not fit each other (CUDA, NCCL, MPI, numpy).",
        (
            "Run it once with PYTHONFAULTHANDLER=1 in env, which prints where.",
            "Build the extensions against the versions of the image.",
        ),
        unforeseen="It depends on the program and its libraries.",
    ),
    KnownCause(
        "aborted",
        "a process aborted itself",
        "SIGABRT (134): a C++ exception that was not caught, memory that glibc found damaged, or an assertion that does not hold.",
        (
            "Read the line above: the exception's what(), glibc's message (free(): invalid pointer), the assertion.",
            "Damaged memory mostly comes from libraries that do not fit each other: build the extensions against the versions of the image.",
            "Run it once with PYTHONFAULTHANDLER=1 in env, which prints where.",
        ),
        (),
        SYMPTOM,
    ),
    KnownCause(
        "illegal-instruction",
        "its program needs newer processors",
        "SIGILL: it was built for instructions (AVX-512) that the node's processors do not have.",
        ("Build for the oldest processors of the pool, or choose another pool.",),
        unforeseen="The catalog names the architecture of an image, not the processor it was built for.",
    ),
    KnownCause(
        "exception",
        "its program raised an exception",
        "A Python exception ended the program.",
        (
            "Read the traceback: its last line is above, the place in the log.",
            "If the run then hung, start it as python -m mpi4py PROGRAM: an exception of one rank then ends all of them.",
        ),
        (),
        SYMPTOM,
    ),
)
