"""Rules about how a run is started and ended."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

GRACE_PERIOD = Rule(
    "grace-period",
    ERROR,
    "The grace period is too short or too long.",
    why=(
        "After SIGTERM, every rank has this long to save its work. Less than 30 seconds is not enough to "
        "write a checkpoint of a large model; more than an hour keeps the GPUs from those who were promised "
        "them."
    ),
    fix="Write gracePeriod: 2m, or any time from 30s to 1h.",
)

LOG_RETENTION = Rule(
    "log-retention",
    ERROR,
    "The log retention is less than a day, or longer than the cluster keeps logs.",
    why=(
        "People often look for the cause of a failed run only the next morning. A log store drops what is older than "
        "its own limit (retention.logs of the cluster), whatever an annotation asks for."
    ),
    fix="Write logRetention: 7d, or any time from 24h to the limit of the cluster.",
)

LAUNCHER_DEEPSPEED = Rule(
    "launcher-deepspeed",
    ERROR,
    "DeepSpeed's own launcher does not work from a pod that runs ranks.",
    why=(
        "The deepspeed command reaches every host by SSH, including its own. A launcher that is one of "
        "the workers runs no SSH server, so the run would wait for itself."
    ),
    fix="Remove runsRanks, or write the program without deepspeed in front of it.",
)

RDMA_WITH_TCP = Rule(
    "rdma-with-tcp",
    ERROR,
    "RDMA devices are requested but stay unused.",
    why=(
        "With transport tcp, MPI and NCCL do not use a fast fabric. The devices would be reserved for "
        "nothing."
    ),
    fix="Remove one of the two.",
)

RDMA_DEVICES = Rule(
    "rdma-devices",
    ERROR,
    "A worker asks for more RDMA devices than a node has, or than a claim gets.",
    why=(
        "No node of the pool could ever take such a worker. The cluster file states how many devices the "
        "plugin offers on each node for each rail (count of rdma). A worker can use only one device of a "
        "shared resource. A claim (deviceClass) gets at most 32 devices."
    ),
    fix="Write rdma: all, or a smaller number.",
)
