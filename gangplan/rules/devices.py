"""Rules about disk, huge pages and devices that are neither GPUs nor RDMA devices."""

from gangplan.rules.model import ERROR, Rule

DEVICE_HAS_FIELD = Rule(
    "device-has-field",
    ERROR,
    "`devices` asks for GPUs or RDMA devices, which have fields of their own.",
    why=(
        "gpus decides pool, ranks and price; network.rdma decides networks and the environment of NCCL and MPI. "
        "Requested under another name, the devices would come without anything that belongs to them."
    ),
    fix="Write gpus, or rdma under network.",
)

HUGE_PAGES_UNEVEN = Rule(
    "huge-pages-uneven",
    ERROR,
    "An amount of huge pages is not a whole number of pages.",
    why=(
        "The API server refuses pods that request part of a page, and a node has only whole pages: what a quota "
        "promises beyond those does not exist."
    ),
    fix="Write a multiple of the page size.",
)

POOL_DEVICE_TWICE = Rule(
    "pool-device-twice",
    ERROR,
    "The resource of a pool's GPUs or RDMA devices is listed among its other devices, too.",
    why=(
        "A node has one amount of each extended resource. Listed twice, its devices would count double in "
        "quotas and in the node fit, and runs would be admitted that find no node."
    ),
    fix="Under devices, list only what is neither a GPU nor an RDMA device.",
)
