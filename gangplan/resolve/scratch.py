"""Scratch: what it needs of a worker and its node, and where the program finds it."""

from __future__ import annotations

from gangplan.model.amounts import format_for_spec, format_with_unit
from gangplan.model.job import EnvVar, Mount, Origin, ScratchSpace, ValueOrigin
from gangplan.model.pods import SCRATCH_VARIABLE
from gangplan.model.quantity import Quantity, parse_memory_quantity
from gangplan.resolve.context import JobResolution
from gangplan.resolve.facts import ENCRYPTING_REGIMES
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.placement import ChosenPlacement
from gangplan.resolve.secrets import list_env_blocks
from gangplan.resolve.tenant import count_team_claims_on_cluster
from gangplan.rules.pods import SCRATCH_CLAIMS, SCRATCH_MEMORY, SCRATCH_NOT_COUNTED, SCRATCH_NOT_ENCRYPTED
from gangplan.rules.specs import ENV_RESERVED
from gangplan.spec.pods import Scratch as Asked

VOLUME = "scratch"
# The memory of a program without its scratch: a Python with its libraries, and the buffers of MPI.
_LEAST = parse_memory_quantity("1Gi")


def resolve_scratch(context: JobResolution) -> ScratchSpace | None:
    """Return the scratch that the spec asks for, in one form; its storage class depends on the pool."""
    asked = context.spec.spec.scratch
    if asked is None:
        return None
    context.origins["scratch"] = Origin("spec", context.where("scratch"))
    if isinstance(asked, Asked):
        return ScratchSpace(asked.size, asked.medium, asked.path)
    return ScratchSpace(asked, "disk", "/scratch")


def add_scratch_storage_class(
    scratch: ScratchSpace | None, placement: ChosenPlacement | None
) -> ScratchSpace | None:
    """Return the scratch with the storage class of the pool's local disks, if it uses them."""
    disk = placement.node_pool.local_disk if placement else None
    if scratch is None or disk is None or scratch.medium != "local":
        return scratch
    return ScratchSpace(scratch.size, scratch.medium, scratch.path, disk.storage_class)


def resolve_scratch_mount(context: JobResolution, scratch: ScratchSpace | None) -> list[Mount]:
    """Return the mount of the scratch volume, which only pods that run ranks have."""
    if scratch is None:
        return []
    whole, medium, path = (ValueOrigin("spec", ("scratch", *field)) for field in ((), ("medium",), ("path",)))
    # If only a size is written, it is the whole field.
    size = ValueOrigin("spec", ("scratch", "size")) if isinstance(context.spec.spec.scratch, Asked) else whole
    why = ValueOrigin("", because="scratch is a volume of this kind")
    origins = {
        "mountPath": (path, whole.aside()),
        "sizeLimit": (size,),
        "storage": (size,),
        "storageClassName": (ValueOrigin("worker_pool", ("localDisk", "storageClass")), medium.aside()),
        "medium": (medium,),
        "": (why, medium.aside(), whole.aside()),
    }
    return [Mount(VOLUME, scratch.path, scratch=scratch, single=True, origins=origins)]


def resolve_scratch_env(context: JobResolution, scratch: ScratchSpace | None) -> dict[str, EnvVar]:
    """Return SCRATCH_DIR, and report a spec that sets it in a container that has the run's scratch."""
    if scratch is None:
        return {}
    for at, names in list_env_blocks(context):
        if SCRATCH_VARIABLE in names and at[0] not in ("steps", "roles"):
            message = f"'{SCRATCH_VARIABLE}' tells the program where its scratch is"
            context.report(
                ENV_RESERVED, context.where(*at, SCRATCH_VARIABLE, key=True), message, "Remove it."
            )
    origins = (ValueOrigin("spec", ("scratch", "path")), ValueOrigin("spec", ("scratch",), is_direct=False))
    return {SCRATCH_VARIABLE: EnvVar(SCRATCH_VARIABLE, scratch.path, origins=origins)}


def check_requested_scratch(
    context: JobResolution,
    shape: WorkerShape,
    workers: int,
    placement: ChosenPlacement,
    regimes: tuple[str, ...],
) -> None:
    """Check that memory, the namespace and the pool have room for scratch, and that all of it is counted."""
    scratch, name, pool = shape.scratch, placement.name, placement.node_pool
    if scratch is None:
        return
    where = context.where("scratch")
    if scratch.medium == "memory":
        _check_requested_scratch_memory(context, scratch, shape.memory)
    elif scratch.medium == "disk" and pool.disk is None:
        context.report(
            SCRATCH_NOT_COUNTED,
            where,
            f"pool '{name}' of cluster {context.cluster.name} does not state its nodes' disk, so nothing is set aside for"
            f" {format_with_unit('storage', scratch.size)}: a worker is evicted when its node runs out of disk",
            f"Ask the cluster's owner to write disk: for pool {name} in {context.cluster.document.file}.",
        )
    elif scratch.medium == "local":
        _check_scratch_claims_of_spec(context, workers)
        if pool.local_disk is not None:
            _check_requested_scratch_is_encrypted(context, pool.local_disk.storage_class, regimes)


def _check_requested_scratch_memory(context: JobResolution, scratch: ScratchSpace, memory: Quantity) -> None:
    """Check that scratch in memory leaves enough: it counts as the container's memory.

    Source: Kubernetes docs, Volumes: emptyDir.
    """
    least = min(_LEAST, Quantity(memory.nano // 4, memory.format))
    left = memory.nano - scratch.size.nano
    if left >= least.nano:
        return
    what = f"only {format_with_unit('memory', Quantity(left, memory.format))}" if left > 0 else "nothing"
    needed = Quantity(scratch.size.nano + _LEAST.nano, _LEAST.format)
    context.report(
        SCRATCH_MEMORY,
        context.where("scratch"),
        f"scratch in memory takes {format_with_unit('memory', scratch.size)} of the worker's {format_with_unit('memory', memory)} and leaves {what}"
        " for the program",
        f"Write memory: {format_for_spec('memory', needed)} or more, reduce scratch, or write medium: disk.",
    )


def _check_scratch_claims_of_spec(context: JobResolution, workers: int) -> None:
    """Check the limit of claims: each worker's volume is a claim of the namespace while its pod exists."""
    most = context.cluster.spec.limits.objects.claims
    made = count_team_claims_on_cluster(context.cluster, context.team)
    if workers + made > most:
        context.report(
            SCRATCH_CLAIMS,
            context.where("scratch"),
            f"{workers} workers need a claim each for their local scratch, and the namespace may hold {most}"
            f" ({made} are the team's)",
            f"Use medium: disk, or ask the owner of {context.cluster.name} for more (limits.objects.claims).",
        )


def _check_requested_scratch_is_encrypted(
    context: JobResolution, storage_class: str, regimes: tuple[str, ...]
) -> None:
    """Check that data which must be encrypted at rest is also encrypted on local disks."""
    asking = sorted(ENCRYPTING_REGIMES & {*regimes})
    known = context.cluster.spec.storage_classes.get(storage_class)
    if not asking or (known and known.encrypted):
        return
    context.report(
        SCRATCH_NOT_ENCRYPTED,
        context.where("scratch"),
        f"the data falls under {asking[0]}, and storage class '{storage_class}' of local disks is not known to encrypt",
        f"Use medium: memory, or have the owner of {context.cluster.name} state it in storageClasses once it does.",
    )
