"""Why a worker does not fit on an empty node of a pool."""

from __future__ import annotations

from gangplan.model.amounts import format_amount, format_with_unit
from gangplan.model.job import ScratchSpace, SideContainer
from gangplan.model.pods import compute_pod_resource_need
from gangplan.model.quantity import ZERO, Quantity
from gangplan.records import dataclass
from gangplan.spec.nodes import NodePool, find_spec_field_of_resource

# The platform that each vendor's devices need; a resource of another domain may be anyone's.
VENDORS = {"nvidia.com": "CUDA", "amd.com": "ROCm", "gpu.intel.com": "oneAPI", "habana.ai": "SynapseAI"}


DISK = "ephemeral-storage"


@dataclass(frozen=True, slots=True)
class WorkerShape:
    """What one worker needs of a node."""

    gpus: int
    model: str | None
    mig: str | None
    cpu: Quantity
    memory: Quantity
    capacity: str | None
    others: tuple[tuple[str, Quantity], ...] = ()  # disk, huge pages and further devices, by resource
    scratch: ScratchSpace | None = None
    containers: tuple[SideContainer, ...] = ()
    architectures: tuple[str, ...] = ("amd64",)  # that the image was built for
    cuda: str | None = None
    rocm: str | None = None
    has_compat: bool = False  # NVIDIA's cuda-compat is in the image

    @property
    def built_for(self) -> tuple[str, ...]:
        """Which of CUDA and ROCm the image has."""
        return tuple(name for name, version in (("CUDA", self.cuda), ("ROCm", self.rocm)) if version)

    def whole(self, field: str) -> Quantity:
        """Return the whole pod's request of `cpu` or `memory`, including setup and sidecar containers."""
        program: Quantity = getattr(self, field)
        if not self.containers:
            return program
        return compute_pod_resource_need(
            program, ((getattr(one, field), one.is_sidecar) for one in self.containers)
        )

    def others_on(self, pool: NodePool) -> tuple[tuple[str, Quantity], ...]:
        """Return its other requests in a pool: scratch on disk counts if the pool states its disk."""
        scratch = self.scratch
        if scratch is None or scratch.medium != "disk" or pool.disk is None:
            return self.others
        amounts = {DISK: ZERO} | dict(self.others)
        return tuple((amounts | {DISK: amounts[DISK] + scratch.size}).items())


# The fields of a spec that can keep a worker off a pool, in the order of the checks.
MISFIT_FIELDS = (
    "gpus",
    "mig",
    "cpu",
    "memory",
    "setup",
    "sidecars",
    "disk",
    "scratch",
    "hugePages",
    "devices",
    "architecture",
    "driver",
    "placement",
)


# Names of resources in cluster files.
_NOUNS = {"ephemeral-storage": "disk"}


def explain_worker_misfit_on_pool(pool: NodePool, shape: WorkerShape) -> tuple[str, str]:
    """Return the field and the reason why a worker does not fit on an empty node; empty if it does."""
    if shape.gpus:
        if pool.gpu is None:
            return "gpus", "it has no GPUs"
        if shape.model and pool.gpu.model != shape.model:
            return "gpus", f"its GPUs are {pool.gpu.model}, not {shape.model}"
        if pool.gpu.mig != shape.mig:
            return (
                "mig",
                f"it offers {'MIG slices ' + pool.gpu.mig if pool.gpu.mig else 'whole GPUs'}, not {'MIG slices ' + shape.mig if shape.mig else 'whole GPUs'}",
            )
        needs = VENDORS.get(pool.gpu.resource.partition("/")[0])
        if needs is not None and shape.built_for and needs not in shape.built_for:
            return (
                "gpus",
                f"its GPUs are {pool.gpu.resource}, and the image is built for {shape.built_for[0]}",
            )
        if shape.gpus > pool.gpu.count:
            return "gpus", f"a node has {pool.gpu.count} GPUs, a worker needs {shape.gpus}"
    for field, has in (("cpu", pool.cpu), ("memory", pool.memory)):
        if getattr(shape, field) > has:
            return (
                field,
                f"a node has {format_with_unit(field, has)}, a worker needs {format_amount(field, getattr(shape, field))}",
            )
        if shape.whole(field) > has:
            return _explain_side_container_misfit_on_pool(shape, field, has)
    for resource, amount in shape.others_on(pool):
        has = pool.others.get(resource, ZERO)
        if amount > has:
            field = find_spec_field_of_resource(resource)[0] if resource in dict(shape.others) else "scratch"
            return field, (
                f"a node has {format_with_unit(resource, has)}, a worker needs {format_amount(resource, amount)}"
                if has
                else f"its nodes state no {_NOUNS.get(resource, resource)}"
            )
    for judge in (
        _explain_numa_misfit_on_pool,
        _explain_scratch_misfit_on_pool,
        _explain_image_misfit_on_pool,
    ):
        field, reason = judge(pool, shape)
        if reason:
            return field, reason
    if shape.capacity and shape.capacity != pool.capacity:
        return "placement", f"its nodes are {pool.capacity}, not {shape.capacity}"
    return "", ""


def compute_worker_room_on_pool(pool: NodePool, cpu: Quantity) -> dict[str, Quantity]:
    """Return the GPUs, CPU and memory that a worker with so many cores can have on a node of the pool.

    They are those of one NUMA node if the kubelet takes them from one. The CPU manager pins only whole cores
    (Kubernetes v1.34, pkg/kubelet/cm/cpumanager/policy_static.go).
    """
    count = pool.gpu.count if pool.gpu else 0
    room = {"gpus": Quantity.of(count), "cpu": pool.cpu, "memory": pool.memory}
    if pool.numa is None or pool.numa.policy != "single-numa-node":
        return room
    nodes, is_pinned = pool.numa.nodes, cpu.nano % 10**9 == 0
    parts = {
        "gpus": Quantity.of(-(-count // nodes)),
        "cpu": Quantity(pool.cpu.nano // nodes, pool.cpu.format),
        "memory": Quantity(pool.memory.nano // nodes, pool.memory.format),
    }
    return room | {field: parts[field] for field in pool.numa.aligns if field == "gpus" or is_pinned}


def _explain_numa_misfit_on_pool(pool: NodePool, shape: WorkerShape) -> tuple[str, str]:
    """Return why no NUMA node has what a worker needs; empty if one has."""
    asked = {"gpus": Quantity.of(shape.gpus), "cpu": shape.cpu, "memory": shape.memory}
    for field, has in compute_worker_room_on_pool(pool, shape.cpu).items():
        if asked[field] > has and (field != "gpus" or pool.gpu):
            what = format_with_unit("nvidia.com/gpu" if field == "gpus" else field, has)
            wants = format_amount(field, asked[field])
            begin = "single-numa-node gives a worker what one NUMA node has, which is"
            return field, f"{begin} {what}, and a worker needs {wants}"
    return "", ""


def _explain_scratch_misfit_on_pool(pool: NodePool, shape: WorkerShape) -> tuple[str, str]:
    """Return why the nodes of the pool have no local disk for the scratch folder; empty if they do."""
    if shape.scratch is not None and shape.scratch.medium == "local":
        if pool.local_disk is None:
            return "scratch", "its nodes state no local disk"
        if shape.scratch.size > pool.local_disk.size:
            most = format_with_unit("storage", pool.local_disk.size)
            return (
                "scratch",
                f"a node has {most} on local disks, a worker needs {format_amount('storage', shape.scratch.size)}",
            )
    return "", ""


def _explain_image_misfit_on_pool(pool: NodePool, shape: WorkerShape) -> tuple[str, str]:
    """Return why the image does not run on the nodes of the pool; empty if it does."""
    has = pool.processor
    if has not in shape.architectures:
        return "architecture", f"its nodes are {has}, and the image is built for {shape.architectures[0]}"
    if shape.gpus and pool.gpu is not None and pool.gpu.driver is not None:
        from gangplan.resolve.image_fit import explain_pool_driver_misfit  # few clusters state their drivers

        return "driver", explain_pool_driver_misfit(pool, shape.cuda, shape.rocm, shape.has_compat)
    return "", ""


def _explain_side_container_misfit_on_pool(shape: WorkerShape, field: str, has: Quantity) -> tuple[str, str]:
    """Return the cause: a setup container that is too large by itself, else the sidecars."""
    largest = max((getattr(one, field) for one in shape.containers if not one.is_sidecar), default=ZERO)
    blamed, what = ("setup", "setup") if largest > has else ("sidecars", "its sidecars")
    needs = f"a worker with {what} needs {format_amount(field, shape.whole(field))}"
    return blamed, f"a node has {format_with_unit(field, has)}, {needs}"
