"""Checks of an image, as the catalog describes it, on the pool of a run: architecture, driver, tier."""

from __future__ import annotations

from gangplan.model.gpu_drivers import DriverVerdict, judge_cuda_driver, judge_rocm_driver
from gangplan.model.job import PulledImage
from gangplan.resolve.context import JobResolution
from gangplan.resolve.tiers import catalog_image_tier_of
from gangplan.rules.images import (
    ARCHITECTURE_MISMATCH,
    CUDA_FORWARD,
    CUDA_MINOR_VERSION,
    IMAGE_DRIVER,
    IMAGE_TIER,
)
from gangplan.rules.model import Rule
from gangplan.spec.catalog import Image
from gangplan.spec.nodes import NodePool

# The rule for each field that keeps a worker off a pool (misfit).
IMAGE_FIT_RULES: dict[str, Rule] = {"architecture": ARCHITECTURE_MISMATCH, "driver": IMAGE_DRIVER}
IMAGE_FIT_HELPS = {
    "architecture": "If it was built for them too, list them in its architectures (images/catalog.yaml); else choose another image, or run it on another cluster.",
    "driver": "Use an image with an older CUDA or ROCm, have the driver updated, or run it on another cluster.",
}


def judge_pool_driver_for_image(
    pool: NodePool, cuda: str | None, rocm: str | None, has_compat: bool
) -> DriverVerdict:
    """Return what the driver of a pool means for an image; unknown if either is not stated."""
    if pool.gpu is None or pool.gpu.driver is None:
        return DriverVerdict("unknown")
    if pool.gpu.resource.startswith("amd.com/"):
        return judge_rocm_driver(rocm, pool.gpu.driver) if rocm else DriverVerdict("unknown")
    return judge_cuda_driver(cuda, pool.gpu.driver, has_compat) if cuda else DriverVerdict("unknown")


def explain_pool_driver_misfit(pool: NodePool, cuda: str | None, rocm: str | None, has_compat: bool) -> str:
    """Return why the driver of a pool cannot run an image; empty if it can, or if that is unknown."""
    verdict = judge_pool_driver_for_image(pool, cuda, rocm, has_compat)
    if verdict.outcome != "refused" or pool.gpu is None:
        return ""
    version = f"CUDA {cuda}" if cuda and not pool.gpu.resource.startswith("amd.com/") else f"ROCm {rocm}"
    return f"its GPU driver is {pool.gpu.driver}, and the image has {version}: {verdict.needs}"


def check_image_limitations_on_pool(
    context: JobResolution, image: PulledImage, name: str, pool: NodePool, gpus: int
) -> None:
    """Report on an image that runs on the chosen pool, but with limitations."""
    entry = context.catalog.images.get(image.name)
    if entry is None:
        return
    where = context.origin_of("image", ("image",))
    if gpus and pool.gpu is not None:
        verdict = judge_pool_driver_for_image(pool, entry.cuda, entry.rocm, entry.cuda_compat)
        driver = f"pool '{name}' of cluster {context.cluster.name} has driver {pool.gpu.driver}"
        if verdict.outcome == "minor":
            message = (
                f"image '{image.name}': {verdict.needs}, and {driver}: it runs by minor version compatibility"
            )
            help = "Nothing needs to be done unless the program compiles kernels while it runs (PTX)."
            context.report(CUDA_MINOR_VERSION, where, message, help)
        elif verdict.outcome == "forward":
            message = f"image '{image.name}': {verdict.needs}, and {driver}: it runs by cuda-compat, on data center GPUs alone"
            context.report(CUDA_FORWARD, where, message, "Look the pair up in NVIDIA's list of base drivers.")
    _check_image_tier_on_pool(context, image, entry, pool if gpus else None)
    _check_side_container_images_on_pool(context, name, pool)


def _check_image_tier_on_pool(
    context: JobResolution, image: PulledImage, entry: Image, pool: NodePool | None
) -> None:
    wanted = context.catalog.requirements
    if wanted is None or wanted.tier is None:
        return
    model = pool.gpu.model if pool and pool.gpu else None
    standing = catalog_image_tier_of(context.catalog, entry, image.framework, model)
    if not standing.is_below(wanted.tier):
        return
    on = f"on {model}" if model else "without GPUs"
    inside = [image.framework, entry.framework_version]
    inside += [entry.mpi.implementation, entry.mpi.version] if entry.mpi else []
    context.report(
        IMAGE_TIER,
        context.origin_of("image", ("image",)),
        f"image '{image.name}' ({' '.join(filter(None, inside))}) {on} is {standing.tier}"
        f" ({standing.source}), and the catalog asks for {wanted.tier}",
        "Choose another image or GPU model, or have the combination tried and listed in the catalog's tiers.",
    )


def _check_side_container_images_on_pool(context: JobResolution, name: str, pool: NodePool) -> None:
    """Check the architectures of setup and sidecar images, which run on the node of the worker."""
    has = pool.processor
    spec = context.spec.spec
    for kind, asked in (("setup", spec.setup), ("sidecars", spec.sidecars)):
        for index, one in enumerate(asked):
            entry = context.catalog.images.get(one.image) if one.image else None
            if entry is not None and has not in entry.architectures:
                context.report(
                    ARCHITECTURE_MISMATCH,
                    context.where(kind, index, "image"),
                    f"image '{one.image}' is built for {' and '.join(entry.architectures)}, and the nodes of pool"
                    f" '{name}' of cluster {context.cluster.name} are {has}",
                    IMAGE_FIT_HELPS["architecture"],
                )
