"""Setup containers, which run before a job's program, and sidecars, which run next to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gangplan.model.fabric import FabricAccess
from gangplan.model.job import Origin, PulledImage, SideContainer
from gangplan.model.quantity import parse_cpu, parse_memory_quantity
from gangplan.resolve.context import JobResolution
from gangplan.resolve.image import resolve_catalog_image
from gangplan.resolve.misfit import WorkerShape
from gangplan.resolve.variables import resolve_env_block
from gangplan.rules.pods import CONTAINER_NAME_TAKEN
from gangplan.rules.specs import IMAGE_UNKNOWN
from gangplan.spec.declare import suggest_known_or_new
from gangplan.spec.pods import PodContainer as Asked

# The requests of a sidecar, unless the spec states them. A setup container has the program's requests: it
# ends before the program starts, so the pod requests no more.
CPU, MEMORY = parse_cpu("500m"), parse_memory_quantity("512Mi")
# The container that the program runs in, which Trainer finds by this name.
PROGRAM = "node"


def resolve_containers(context: JobResolution, image: PulledImage | None, shape: WorkerShape) -> WorkerShape:
    """Return the shape of a worker with its setup and sidecar containers, in the order of their start."""
    spec = context.spec.spec
    if not (spec.setup or spec.sidecars):
        return shape
    found = tuple(_resolve_side_containers(context, image, shape))
    for kind, written in (("setup", spec.setup), ("sidecars", spec.sidecars)):
        if written:
            context.origins[kind] = Origin("spec", context.where(kind))
    return replace(shape, containers=found)


def _resolve_side_containers(
    context: JobResolution, image: PulledImage | None, shape: WorkerShape
) -> Iterator[SideContainer]:
    spec = context.spec.spec
    for is_sidecar, kind, asked in ((False, "setup", spec.setup), (True, "sidecars", spec.sidecars)):
        for index, one in enumerate(asked):
            reference = _resolve_side_container_image(context, image, kind, index, one)
            if reference is None:
                continue
            yield SideContainer(
                name=one.name or f"{kind.removesuffix('s')}-{index + 1}",
                image=reference,
                argv=one.command or (),
                env=tuple(resolve_env_block(context, one.env, (kind, index, "env")).values()),
                cpu=one.cpu or (CPU if is_sidecar else shape.cpu),
                memory=one.memory or (MEMORY if is_sidecar else shape.memory),
                is_sidecar=is_sidecar,
                index=index,
                is_own=bool(one.command) and image is not None and reference == image.reference,
            )


def _resolve_side_container_image(
    context: JobResolution, image: PulledImage | None, kind: str, index: int, one: Asked
) -> str | None:
    """Return the image to pull, or None if it is unknown or not allowed."""
    if one.image is None:
        return image.reference if image else None
    where = context.where(kind, index, "image")
    entry = context.catalog.images.get(one.image)
    if entry is not None:
        return resolve_catalog_image(context, one.image, entry, where)
    message = f"image '{one.image}' is not in images/catalog.yaml"
    context.report(
        IMAGE_UNKNOWN, where, message, suggest_known_or_new("image", one.image, context.catalog.images)
    )
    return None


def check_side_container_names(
    context: JobResolution, containers: tuple[SideContainer, ...], access: FabricAccess
) -> tuple[SideContainer, ...]:
    """Return the containers; report equal names in a pod (Kubernetes v1.34, validateInitContainers)."""
    taken = {PROGRAM: "the program's container"}
    taken |= {one.name: f"a container of fabric '{access.name}'" for one in access.containers}
    for one in containers:
        if one.name in taken:
            written = context.spec.document.value[one.place[0]][one.place[1]]
            where = context.where(*one.place, *(("name",) if "name" in written else ()))
            message = f"'{one.name}' is {taken[one.name]}"
            context.report(CONTAINER_NAME_TAKEN, where, message, "Choose another name.")
        taken[one.name] = f"the name of {one.place[0]}[{one.index}] as well"
    return containers
