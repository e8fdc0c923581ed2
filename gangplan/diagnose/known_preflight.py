"""Causes that the preflight finds before training starts (images/preflight; docs/preflight.md)."""

from __future__ import annotations

from gangplan.diagnose.cause import KnownCause

CAUSES = (
    KnownCause(
        "preflight-ranks",
        "the preflight found other ranks than the plan",
        "mpirun started another number of ranks, or put them on workers otherwise than planned.",
        ("Leave numbers of ranks to gangplan: remove -np, --map-by and hosts from command and mpi.flags.",),
        ("ranks-mismatch",),
    ),
    KnownCause(
        "preflight-hosts",
        "the preflight found fewer hosts than workers",
        "Several workers have one host name, so ranks share a pod that should be apart.",
        ("Render the run again, and look at /etc/mpi/hostfile in the launcher: it names each worker once.",),
        unforeseen="It is the state of the cluster, which the preflight is there to find.",
    ),
    KnownCause(
        "preflight-versions",
        "workers have different MPI libraries",
        "One of the pods has another build of the image, or a mounted folder hides its MPI.",
        (
            "Use one digest for all, and remove other MPIs from LD_LIBRARY_PATH and from mounted folders.",
            "Compare the versions in the launcher's log: the line gangplan-preflight has that of each rank.",
        ),
        ("mpi-mismatch",),
    ),
    KnownCause(
        "preflight-allreduce",
        "sums over all ranks come out wrong",
        "Hardware or MPI returns wrong numbers: no training on these nodes can be trusted.",
        (
            "Run again without that worker's node, and tell the platform team which node it was.",
            "Try network: {transport: tcp}: where that is right, the fabric or its driver is at fault.",
        ),
        unforeseen="It is the state of the network and the GPUs, which the preflight is there to find.",
    ),
    KnownCause(
        "preflight-gpus",
        "a worker sees fewer GPUs than it asked for",
        "The pod was placed, but device files are missing: the device plugin or the driver of that node is broken.",
        ("Ask the platform team to drain that node; nvidia-smi in the pod says what is left of its GPUs.",),
        rules=(
            "gpus-hidden",
            "gpus-forgotten",
        ),
    ),
    KnownCause(
        "preflight-memlock",
        "the limit for locked memory is too low for RDMA",
        "ulimit -l in the pods is not unlimited, so RDMA fails or falls back to TCP.",
        ("Have the container runtime of the nodes start containers with LimitMEMLOCK=infinity.",),
        rules=("capability-idle",),
    ),
    KnownCause(
        "preflight-storage",
        "a worker cannot use shared storage",
        "It cannot write to a shared folder, or does not see there what the others have written.",
        (
            "Check that the claim is not full, and writable for the image's user and group.",
            "Make it ReadWriteMany; a claim of one node is not shared.",
        ),
        unforeseen="It is the state of the storage, which the preflight is there to find.",
    ),
    KnownCause(
        "preflight-clock",
        "the clock of a node is wrong",
        "Certificates, checkpoints by time and logs of the workers do not agree.",
        ("Ask the platform team to set up time synchronisation (chrony) on that node.",),
        unforeseen="It is the state of a node, which the preflight is there to find.",
    ),
    KnownCause(
        "preflight-unstarted",
        "the preflight did not run",
        "mpirun ended before the preflight said anything: its program or mpi4py is missing in the image, or MPI failed.",
        (
            "Look at the lines above: a missing program, a missing module or an error of MPI.",
            "Build the image with images/preflight of gangplan's repository, and correct preflight in images/catalog.yaml.",
        ),
        ("preflight-missing",),
    ),
    KnownCause(
        "preflight-unfinished",
        "the preflight did not end",
        "Ranks started and never met: different MPIs, a closed network or a fabric that hangs.",
        (
            "Try network: {transport: tcp}; where that helps, the fabric is at fault.",
            "Use one digest of the image for all workers.",
        ),
        unforeseen="It is the state of the cluster, which the preflight is there to find.",
    ),
)
