"""The tier of a combination of framework, MPI and GPU: from the image, the catalog, or gangplan's tests."""

from __future__ import annotations

from functools import cache

from gangplan.model.image import ImageSupport
from gangplan.records import dataclass
from gangplan.spec.catalog import Image, ImageCatalog, TierRow

# From the best to the worst.
ORDER = ("certified", "tested", "community", "untested")

# What gangplan's tests start with real programs (docs/reality.md), without GPUs. A platform that has tested
# more lists it in the catalog's tiers, in rows of the same form.
_REALITY = "started by gangplan's tests without GPUs (docs/reality.md)"
_TRIED: tuple[dict[str, str], ...] = (
    {"framework": "mpi", "mpi": "OpenMPI", "mpiVersion": "4.1"},
    {"framework": "mpi", "mpi": "OpenMPI", "mpiVersion": "5.0"},
    {"framework": "mpi", "mpi": "MPICH", "mpiVersion": "5.0"},
    {"framework": "mpi", "mpi": "IntelMPI", "mpiVersion": "2021"},
    {"framework": "torch", "frameworkVersion": "2.6"},
    {"framework": "jax", "frameworkVersion": "0.10"},
    {"framework": "tensorflow", "frameworkVersion": "2.21"},
    {"framework": "paddle", "frameworkVersion": "3.3"},
    {"framework": "xgboost", "frameworkVersion": "3.2"},
)


@cache
def list_built_in_tiers() -> tuple[TierRow, ...]:
    """Return gangplan's own rows. Few runs are compared with them, so only those pay for making them."""
    return tuple(TierRow.model_validate({"tier": "tested", "source": _REALITY, **row}) for row in _TRIED)


@dataclass(frozen=True, slots=True)
class Standing:
    """A tier and its source."""

    tier: str
    source: str

    def is_below(self, least: str) -> bool:
        """Return whether it is worse than another tier."""
        return ORDER.index(self.tier) > ORDER.index(least)


def catalog_image_tier_of(catalog: ImageCatalog, image: Image, framework: str, gpu: str | None) -> Standing:
    """Return the tier of an image with a framework on GPUs of a model; None is a run without GPUs."""
    if image.tier is not None:
        return Standing(image.tier, "stated for the image")
    for row in catalog.tiers:
        if (not row.gpus or gpu in row.gpus) and _matches_image_tier_row(row, image, framework):
            return Standing(row.tier, row.source or "the catalog's tiers")
    for row in list_built_in_tiers() if gpu is None else ():
        if _matches_image_tier_row(row, image, framework):
            return Standing(row.tier, row.source or "")
    return Standing("untested", "no row of the catalog's tiers has it")


def describe_catalog_image_support(
    catalog: ImageCatalog, name: str, framework: str, gpu: str | None
) -> ImageSupport | None:
    """Return how well an image of the catalog is supported on GPUs of a model (None: without GPUs); None where
    the catalog neither asks for tiers, states any, nor names the image's owner."""
    image = catalog.images[name]
    asks = catalog.requirements is not None and catalog.requirements.tier is not None
    if not (asks or catalog.tiers or image.tier or image.owner):
        return None
    standing = catalog_image_tier_of(catalog, image, framework, gpu)
    return ImageSupport(standing.tier, standing.source, image.owner or "")


def _matches_image_tier_row(row: TierRow, image: Image, framework: str) -> bool:
    if row.framework is not None and row.framework != framework:
        return False
    mpi = image.mpi
    if row.mpi is not None and (mpi is None or mpi.implementation != row.mpi):
        return False
    pairs = (
        (row.framework_version, image.framework_version),
        (row.mpi_version, mpi.version if mpi else None),
        (row.cuda, image.cuda),
        (row.rocm, image.rocm),
    )
    return all(wanted is None or _has_version_prefix(has, wanted) for wanted, has in pairs)


def _has_version_prefix(version: str | None, wanted: str) -> bool:
    """Return whether a version begins with these numbers: 4.1.8 begins with 4.1, but 4.10 does not."""
    return version is not None and f"{version}.".startswith(f"{wanted}.")
