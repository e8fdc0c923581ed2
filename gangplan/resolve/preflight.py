"""The preflight of a run: whether its image has the program, and mpirun to start it."""

from __future__ import annotations

from gangplan.model.frameworks import MPI_FRAMEWORKS, Framework
from gangplan.resolve.context import JobResolution
from gangplan.rules.preflight import PREFLIGHT_LAUNCHER, PREFLIGHT_MISSING
from gangplan.spec.catalog import Image


def resolve_preflight(context: JobResolution, name: str, image: Image, framework: Framework) -> str:
    """Return the image's preflight program; empty, with a finding, without a program or without mpirun."""
    where = context.where("preflight")
    if framework not in MPI_FRAMEWORKS:
        context.report(
            PREFLIGHT_LAUNCHER,
            where,
            f"preflight needs mpirun, and image '{name}' (framework {framework}) starts its ranks without it",
            "Remove preflight, or use an image with MPI.",
        )
        return ""
    if image.preflight is None:
        having = sorted(
            other
            for other, one in context.catalog.images.items()
            if one.preflight and one.framework == framework
        )
        instead = f"Use {' or '.join(having)}, or add" if having else "Add"
        context.report(
            PREFLIGHT_MISSING,
            where,
            f"image '{name}' has no preflight program",
            f"{instead} images/preflight of gangplan's repository to the image, and preflight: PATH to its entry in images/catalog.yaml.",
        )
        return ""
    return image.preflight
