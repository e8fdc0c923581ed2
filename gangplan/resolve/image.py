"""The catalog entry of an image, as one cluster pulls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gangplan.findings import Location
from gangplan.model.frameworks import FRAMEWORK_SINCE_TRAINER, MPI_FRAMEWORKS, Framework
from gangplan.model.job import MpiBuild, Origin, Origins, PulledImage, SshServer, ValueOrigin
from gangplan.model.version import parse_version
from gangplan.resolve.context import JobResolution
from gangplan.resolve.misfit import WorkerShape
from gangplan.rules.frameworks import FRAMEWORK_VERSION
from gangplan.rules.images import MPI_UNTESTED
from gangplan.rules.platform import IMAGE_NOT_FIPS
from gangplan.rules.specs import (
    IMAGE_DIGEST_OPEN,
    IMAGE_MISSING,
    IMAGE_UNKNOWN,
    IMAGE_WITHOUT_MPI,
    LICENCE_NOT_ACKNOWLEDGED,
    MPI_LAUNCH,
    MPI_MISMATCH,
    MPI_VERSION,
    REGISTRY_UNTRUSTED,
)
from gangplan.spec.catalog import Image as ImageSpec
from gangplan.spec.cluster import Cluster, Mirror
from gangplan.spec.declare import suggest_known_or_new

# Families and major versions that gangplan can launch.
KNOWN_MPI_MAJORS = {"OpenMPI": {3, 4, 5}, "IntelMPI": {2019, 2021}, "MPICH": {3, 4, 5}}
# Of these, what gangplan starts as the next version, without having tried it.
UNTESTED_MPI_MAJORS = {"OpenMPI": {3}, "IntelMPI": {2019}, "MPICH": frozenset[int]()}

# The pack whose policy image-fips applies to every run; fedramp applies it only to runs of that regime.
FIPS_PACK = "images"


def resolve_image(context: JobResolution) -> PulledImage | None:
    """Return the image of the job, or None and report why."""
    name = context.choose("image", None)
    if name is None:
        context.report(
            IMAGE_MISSING,
            context.where(),
            "the spec names no image, and neither the team nor the cluster has a default",
            "Add image: with a name from images/catalog.yaml.",
        )
        return None
    entry = context.catalog.images.get(name)
    if entry is None:
        context.report(
            IMAGE_UNKNOWN,
            context.origin_of("image", ("image",)),
            f"image '{name}' is not in images/catalog.yaml",
            suggest_known_or_new("image", name, context.catalog.images),
        )
        return None
    framework = context.spec.spec.framework or entry.framework
    context.origins["framework"] = _find_framework_origin(context)
    mpi = _resolve_mpi_build(context, name, entry, framework)
    if mpi is None and framework in MPI_FRAMEWORKS:
        return None
    _check_image_framework_known_to_trainer(context, framework)
    pulled = resolve_catalog_image(context, name, entry, context.origin_of("image", ("image",)))
    if pulled is None:
        return None
    return PulledImage(
        name=name,
        reference=pulled,
        framework=framework,
        mpi=mpi if framework in MPI_FRAMEWORKS else None,
        ssh=SshServer(entry.ssh.server, entry.ssh.config, entry.ssh.port, entry.ssh.keys),
        uid=entry.user.uid,
        gid=entry.user.gid,
        preflight=_resolve_preflight_program(context, name, entry, framework),
    )


def _resolve_preflight_program(
    context: JobResolution, name: str, entry: ImageSpec, framework: Framework
) -> str:
    """Return the program that checks the workers before the run, if the spec asks for it."""
    if not context.spec.spec.preflight:
        return ""
    from gangplan.resolve.preflight import resolve_preflight  # few runs have one

    return resolve_preflight(context, name, entry, framework)


def resolve_image_needs_of_worker(
    context: JobResolution, shape: WorkerShape, name: str | None
) -> WorkerShape:
    """Return the worker with what its image requires of a node: architectures, CUDA, ROCm."""
    entry = context.catalog.images.get(name) if name else None
    if entry is None:
        return shape
    return replace(
        shape,
        architectures=entry.architectures,
        cuda=entry.cuda,
        rocm=entry.rocm,
        has_compat=entry.cuda_compat,
    )


def resolve_catalog_image(context: JobResolution, name: str, entry: ImageSpec, where: Location) -> str | None:
    """Return how the cluster pulls a catalog image that `where` asks for, or None if it must not."""
    _check_image_on_fips_nodes(context, name, entry, where)
    _check_placeholder_image_digest(context, name, entry)
    context.pulled[name] = _list_image_origins(name, entry, context.cluster.spec, context.cluster.name)
    pulled = resolve_image_reference(entry, context.cluster.spec, context.cluster.name)
    if is_image_registry_trusted(pulled, context.cluster.spec.registries):
        return pulled
    context.report(
        REGISTRY_UNTRUSTED,
        where,
        f"cluster {context.cluster.name} pulls image '{name}' from {pulled.partition('@')[0]}, which is not one of its registries",
        f"Mirror it to {' or '.join(context.cluster.spec.registries)}, or choose another image.",
    )
    return None


def _check_image_framework_known_to_trainer(context: JobResolution, framework: str) -> None:
    """Check that Trainer knows the framework: older versions drop its policy, and workers never connect."""
    needs = FRAMEWORK_SINCE_TRAINER.get(framework)
    version = context.cluster.spec.versions.trainer
    if needs and version and not parse_version(version).at_least(*needs):
        context.report(
            FRAMEWORK_VERSION,
            context.origin_of("framework", ("framework",)),
            f"framework {framework} needs Trainer {needs[0]}.{needs[1]}, and cluster {context.cluster.name} has {version}",
            "Run it on another cluster; or write framework: plain, and let the program find its workers by"
            " MASTER_ADDR, NNODES and NODE_RANK.",
        )


def _check_image_on_fips_nodes(context: JobResolution, name: str, entry: ImageSpec, where: Location) -> None:
    """Check that images on FIPS nodes use validated cryptography, unless a policy pack checks that."""
    cluster = context.cluster.spec
    if not cluster.fips or entry.fips or FIPS_PACK in cluster.policies.packs:
        return
    fitting = sorted(
        other
        for other, image in context.catalog.images.items()
        if image.fips and image.framework == entry.framework
    )
    instead = f"Use {' or '.join(fitting)}" if fitting else "Build it on a FIPS base"
    context.report(
        IMAGE_NOT_FIPS,
        where,
        f"cluster {context.cluster.name} runs in FIPS mode, and image '{name}' is not built for it:"
        " the ciphers and hashes in its libraries are not validated, and some fail at run time",
        f"{instead}; an image that is built for it says fips: true in images/catalog.yaml.",
    )


def _check_placeholder_image_digest(context: JobResolution, name: str, entry: ImageSpec) -> None:
    """Report a digest of zeros, the placeholder for one to be looked up (gangplan import writes it)."""
    own = entry.clusters.get(context.cluster.name)
    if set((own.digest if own and own.digest else entry.digest).removeprefix("sha256:")) != {"0"}:
        return
    document = context.catalog_document
    place = document.where(("images", name, "digest")) if document else context.where("image")
    what = f"{entry.repository}:{entry.tag}" if entry.tag else entry.repository
    context.report(
        IMAGE_DIGEST_OPEN,
        place,
        f"the digest of image '{name}' is only a placeholder: no image has a digest of zeros",
        f"Write the digest of {what}: `gangplan images pin {name}` looks it up."
        if entry.tag
        else f"Write the digest of {what}: skopeo inspect --format '{{{{.Digest}}}}' docker://{what}",
    )


def resolve_image_reference(entry: ImageSpec, cluster: Cluster, cluster_name: str) -> str:
    """Return repository@digest on this cluster: its own entry, else the mirror with the longest source."""
    own = entry.clusters.get(cluster_name)
    digest = own.digest if own and own.digest else entry.digest
    if own and own.repository:
        return f"{own.repository}@{digest}"
    return f"{apply_mirrors(entry.repository, cluster)}@{digest}"


def apply_mirrors(repository: str, cluster: Cluster) -> str:
    """Return the repository as the cluster's mirrors have it."""
    best = _find_image_mirror(repository, cluster)
    return repository if best is None else best.mirror + repository[len(best.source) :]


def _find_image_mirror(repository: str, cluster: Cluster) -> Mirror | None:
    """Return the mirror with the longest matching source."""
    fitting = (m for m in cluster.mirrors if repository == m.source or repository.startswith(f"{m.source}/"))
    return max(fitting, key=lambda mirror: len(mirror.source), default=None)


def _list_image_origins(name: str, entry: ImageSpec, cluster: Cluster, cluster_name: str) -> Origins:
    """Return the origins of the reference of an image: the cluster's own entry, the image's, a mirror."""
    at, own = ("images", name), entry.clusters.get(cluster_name)
    fields = ("repository", "digest")
    here = [ValueOrigin("catalog", (*at, "clusters", cluster_name, field)) for field in fields]
    is_own = [bool(own and getattr(own, field)) for field in fields]
    used = None if is_own[0] else _find_image_mirror(entry.repository, cluster)
    mirrors = [
        ValueOrigin("cluster", ("mirrors", number, field), is_direct=field == "mirror" and one is used)
        for number, one in enumerate(cluster.mirrors)
        for field in ("mirror", "source")
    ]
    return (
        *(one for one, is_used in zip(here, is_own, strict=True) if is_used),
        *(
            ValueOrigin("catalog", (*at, field), is_direct=not is_over)
            for field, is_over in zip(fields, is_own, strict=True)
        ),
        *mirrors,
        *(one.aside() for one in here),
    )


def is_image_registry_trusted(reference: str, registries: Sequence[str]) -> bool:
    """Return whether an image is from one of the registries, with or without a path, or none are stated."""
    repository = reference.partition("@")[0]
    return not registries or any(
        repository == registry or repository.startswith(f"{registry}/") for registry in registries
    )


def _report_image_without_mpi(context: JobResolution, name: str, framework: str) -> None:
    """Report an image without MPI where a framework with MPI was asked for.

    That is the spec, or the catalog entry, whose default framework is mpi.
    """
    message = f"framework {framework} needs an MPI, but the catalog lists none for image '{name}'"
    if context.spec.spec.framework or context.catalog_document is None:
        place = context.origin_of("image", ("image",))
        context.report(
            IMAGE_WITHOUT_MPI, place, message, "Choose an image with MPI, or set framework: torch."
        )
        return
    entry = context.catalog.images[name]
    if "framework" not in entry.model_fields_set:
        message = f"image '{name}' has no mpi, which its framework needs (mpi, because it names none)"
    path = ("images", name, "framework") if "framework" in entry.model_fields_set else ("images", name)
    place = context.catalog_document.where(path, key=True)
    help = "Write framework: torch, or the MPI of the image: mpi: {implementation: OpenMPI, version: 5.0.8}."
    context.report(IMAGE_WITHOUT_MPI, place, message, help)


def _find_framework_origin(context: JobResolution) -> Origin:
    if context.spec.spec.framework:
        return Origin("spec", context.where("framework"))
    return Origin("image catalog", None)


def _resolve_mpi_build(
    context: JobResolution, name: str, entry: ImageSpec, framework: str
) -> MpiBuild | None:
    asked = context.spec.spec.mpi
    if entry.mpi is None:
        if framework in MPI_FRAMEWORKS:
            _report_image_without_mpi(context, name, framework)
        elif asked and asked.implementation:
            context.report(
                MPI_MISMATCH,
                context.where("mpi", "implementation"),
                f"mpi.implementation is {asked.implementation}, but the catalog lists no MPI for image '{name}',"
                f" whose ranks are started for {framework}",
                "Remove the line, or choose an image with MPI.",
            )
        return None
    if asked and asked.implementation and asked.implementation != entry.mpi.implementation:
        context.report(
            MPI_MISMATCH,
            context.where("mpi", "implementation"),
            f"mpi.implementation is {asked.implementation}, but image '{name}' contains {entry.mpi.implementation} {entry.mpi.version}",
            "Remove the line, or choose another image.",
        )
    if asked and asked.launch == "pmix":
        context.report(
            MPI_LAUNCH,
            context.where("mpi", "launch"),
            "gangplan cannot start ranks with PMIx yet",
            "Remove the line; gangplan uses ssh.",
        )
    if entry.mpi.implementation == "IntelMPI" and not (asked and asked.license_acknowledged):
        where = context.where("mpi") if asked else context.origin_of("image", ("image",))
        context.report(
            LICENCE_NOT_ACKNOWLEDGED,
            where,
            f"image '{name}' contains Intel MPI, which has its own licence terms",
            "Add mpi: {licenseAcknowledged: true} once you may use it.",
        )
    major = int(entry.mpi.version.split(".")[0])
    if major not in KNOWN_MPI_MAJORS[entry.mpi.implementation]:
        context.report(
            MPI_VERSION,
            context.origin_of("image", ("image",)),
            f"image '{name}' contains {entry.mpi.implementation} {entry.mpi.version}, which gangplan cannot start",
            f"Known: {', '.join(map(str, sorted(KNOWN_MPI_MAJORS[entry.mpi.implementation])))}.",
        )
    if major in UNTESTED_MPI_MAJORS[entry.mpi.implementation]:
        context.report(
            MPI_UNTESTED,
            context.origin_of("image", ("image",)),
            f"image '{name}' contains {entry.mpi.implementation} {entry.mpi.version}, which gangplan starts but has not tested",
            MPI_UNTESTED.fix,
        )
    return MpiBuild(entry.mpi.implementation, major, entry.mpi.version, entry.mpi.setup)
