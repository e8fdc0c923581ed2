"""Checks of the catalog, alone and with clusters and specs: `images check` without a registry."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.findings import Finding
from gangplan.model.gpu_drivers import CUDA_DRIVERS, ROCM_OF_DRIVER, parse_major_minor
from gangplan.resolve.image import (
    KNOWN_MPI_MAJORS,
    UNTESTED_MPI_MAJORS,
    is_image_registry_trusted,
    resolve_image_reference,
)
from gangplan.resolve.job import resolve_job, resolve_target_clusters
from gangplan.rules.frameworks import FRAMEWORK_VERSION
from gangplan.rules.images import (
    ARCHITECTURE_MISMATCH,
    CUDA_FORWARD,
    CUDA_MINOR_VERSION,
    IMAGE_CLUSTER_UNKNOWN,
    IMAGE_DRIVER,
    IMAGE_NOWHERE,
    IMAGE_TAG_CONTRADICTS,
    IMAGE_TIER,
    IMAGE_TWICE,
    IMAGE_UNUSED,
    IMAGE_VERSION_UNKNOWN,
    MPI_UNTESTED,
)
from gangplan.rules.platform import IMAGE_NOT_FIPS
from gangplan.rules.specs import (
    IMAGE_DIGEST_OPEN,
    IMAGE_MISSING,
    IMAGE_UNKNOWN,
    IMAGE_WITHOUT_MPI,
    LICENCE_NOT_ACKNOWLEDGED,
    MPI_MISMATCH,
    MPI_VERSION,
    REGISTRY_UNTRUSTED,
)
from gangplan.source import Document
from gangplan.spec.catalog import Image, ImageCatalog
from gangplan.workspace import Spec, Workspace, load_spec, suggest_nearest

# The findings about images, among all that resolving a spec finds.
IMAGE_RULES = frozenset(
    (
        ARCHITECTURE_MISMATCH,
        CUDA_FORWARD,
        CUDA_MINOR_VERSION,
        FRAMEWORK_VERSION,
        IMAGE_DIGEST_OPEN,
        IMAGE_DRIVER,
        IMAGE_MISSING,
        IMAGE_NOT_FIPS,
        IMAGE_TIER,
        IMAGE_UNKNOWN,
        IMAGE_WITHOUT_MPI,
        LICENCE_NOT_ACKNOWLEDGED,
        MPI_MISMATCH,
        MPI_UNTESTED,
        MPI_VERSION,
        REGISTRY_UNTRUSTED,
    )
)
# Versions as tags usually have them: 5.0.8-cuda12.8; 2.9-cu128 has no dot and is ignored.
_IN_TAG = re.compile(r"(?<![a-z])(cuda|rocm)-?([0-9]+\.[0-9]+)")


def check_catalog_entries_on_clusters(
    workspace: Workspace, catalog: ImageCatalog, document: Document
) -> Iterator[Finding]:
    """Check the catalog for contradictions, unknown clusters and images that no cluster may pull."""
    builds: dict[tuple[str, str], str] = {}
    for name, image in catalog.images.items():
        where = document.where(("images", name), key=True)
        first = builds.setdefault((image.repository, image.digest), name)
        if first != name:
            message = f"images '{first}' and '{name}' are the same build of {image.repository}"
            yield Finding(
                IMAGE_TWICE, where, message, f"Remove one of them, or correct the digest of '{name}'."
            )
        for cluster in image.clusters:
            if cluster not in workspace.clusters and cluster not in workspace.unread:
                place = document.where(("images", name, "clusters", cluster), key=True)
                message = (
                    f"image '{name}' has a line for cluster '{cluster}', which is not declared in overlays/"
                )
                yield Finding(
                    IMAGE_CLUSTER_UNKNOWN, place, message, suggest_nearest(cluster, workspace.clusters)
                )
        if workspace.clusters and not any(
            is_image_registry_trusted(
                resolve_image_reference(image, file.spec, cluster), file.spec.registries
            )
            for cluster, file in workspace.clusters.items()
        ):
            message = f"no cluster may pull image '{name}': {image.repository} is in none of their registries"
            help = "Mirror it, list its registry where it may be pulled, or remove it."
            yield Finding(IMAGE_NOWHERE, where, message, help)
        yield from _check_catalog_image_versions(name, image, document)


def _check_catalog_image_versions(name: str, image: Image, document: Document) -> Iterator[Finding]:
    for field, known in (("cuda", tuple(CUDA_DRIVERS)), ("rocm", _list_rocm_lines())):
        stated = getattr(image, field)
        if stated and parse_major_minor(stated) not in known:
            where = document.where(("images", name, field))
            message = f"image '{name}' has {field.upper()} {stated}, which is in no table: it is compared with no driver"
            help = f"Known: {', '.join(known)}. A version is written as 12.8."
            yield Finding(IMAGE_VERSION_UNKNOWN, where, message, help)
    for kind, version in _IN_TAG.findall(image.tag or ""):
        stated = getattr(image, kind)
        if stated is None or parse_major_minor(stated) != version:
            says = f"{kind}: {stated}" if stated else f"no {kind}"
            message = f"the tag of image '{name}' is {image.tag}, and the catalog states {says}"
            help = f'Write {kind}: "{version}", or correct the tag.'
            yield Finding(IMAGE_TAG_CONTRADICTS, document.where(("images", name, "tag")), message, help)
    if image.mpi is not None:
        family, major = image.mpi.implementation, int(image.mpi.version.split(".")[0])
        where = document.where(("images", name, "mpi", "version"))
        contains = f"image '{name}' contains {family} {image.mpi.version}"
        if major not in KNOWN_MPI_MAJORS[family]:
            known_majors = ", ".join(map(str, sorted(KNOWN_MPI_MAJORS[family])))
            message = f"{contains}, which gangplan cannot start"
            yield Finding(MPI_VERSION, where, message, f"Known: {known_majors}.")
        elif major in UNTESTED_MPI_MAJORS[family]:
            message = f"{contains}, which gangplan starts but has not tested"
            yield Finding(MPI_UNTESTED, where, message, MPI_UNTESTED.fix)


def _list_rocm_lines() -> tuple[str, ...]:
    lines = {line for runs in ROCM_OF_DRIVER.values() for line in runs}
    return tuple(sorted(lines, key=lambda line: [int(part) for part in line.split(".")]))


def check_catalog_images_used_by_specs(
    workspace: Workspace, catalog: ImageCatalog, document: Document
) -> Iterator[Finding]:
    """Yield findings about the images of specs on each cluster, and about unused images."""
    used = {team.spec.defaults.image for team in workspace.teams.values()}
    used |= {cluster.spec.defaults.image for cluster in workspace.clusters.values()}
    is_whole = True
    for source in workspace.spec_files:
        spec, _ = load_spec(workspace.root, source, workspace.templates)
        if spec is None:
            is_whole = False
            continue
        used |= set(_list_spec_images(spec))
        for cluster in resolve_target_clusters(workspace, spec)[0]:
            found = resolve_job(workspace, spec, cluster)[1]
            yield from (one for one in found if one.rule in IMAGE_RULES)
    for name in catalog.images if is_whole else ():
        if name not in used:
            where = document.where(("images", name), key=True)
            message = f"no spec, team or cluster names image '{name}'"
            yield Finding(IMAGE_UNUSED, where, message, "Remove it if it is no longer needed.")


def _list_spec_images(spec: Spec) -> Iterator[str]:
    asked = spec.spec
    named = [asked.image, *(one.image for one in asked.setup), *(one.image for one in asked.sidecars)]
    named += [one.image for one in asked.roles.values()]
    yield from (one for one in named if one)
