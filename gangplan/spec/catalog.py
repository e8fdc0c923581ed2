"""ImageCatalog: the image names that specs use, what each image contains, and where each cluster pulls it
from."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gangplan.model.folders import ROOT_HOME, is_in_folder
from gangplan.model.frameworks import Framework
from gangplan.model.image import MpiFamily
from gangplan.spec.base import ApiVersion, MountPath, Name, Strict, build_helpful_error
from gangplan.spec.job import Regime
from gangplan.spec.team import Day

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
# A registry host is required: an unqualified name can mean different images on different clusters.
Repository = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)+$",
        max_length=400,
    ),
]


Licence = Annotated[str, Field(pattern=r"^[A-Za-z0-9(][A-Za-z0-9 .()+:-]*$", max_length=253)]
Line = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+){0,2}$", max_length=32)]
Tier = Literal["certified", "tested", "community", "untested"]


def _refuse_root_home_in_catalog_entry(path: str) -> str:
    """Return the path itself. Raises an error of `build_helpful_error` if it is in the home of root."""
    if is_in_folder(path, ROOT_HOME):
        message = f"only root may enter {ROOT_HOME}, and containers of runs have another user"
        help = f"Write a folder of that user, such as {path.replace(ROOT_HOME, '/home/mpiuser', 1)}, and build the image so."
        raise build_helpful_error("root-home", message, help)
    return path


UserPath = Annotated[MountPath, AfterValidator(_refuse_root_home_in_catalog_entry)]


class ImageMpi(Strict):
    """The MPI inside an image."""

    implementation: MpiFamily = Field(description="MPI family.", examples=["OpenMPI"])
    version: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+){0,2}$")] = Field(
        description="Version; the first number decides how it is started.", examples=["5.0.8"]
    )
    setup: MountPath | None = Field(
        None,
        description="Shell file that puts the MPI on the path; read before the launch.",
        examples=["/opt/intel/oneapi/setvars.sh"],
    )


class ImageSsh(Strict):
    """The SSH server inside an image."""

    server: MountPath = Field("/usr/sbin/sshd", description="Path of sshd.", examples=["/usr/sbin/sshd"])
    config: UserPath = Field(
        "/home/mpiuser/.sshd_config",
        description="sshd configuration that a non-root user can load.",
        examples=["/home/mpiuser/.sshd_config"],
    )
    port: int = Field(
        2222,
        ge=1024,
        le=65535,
        description="Port of sshd and of the ssh client; above 1023, because it runs without root.",
        examples=[2222],
    )
    keys: UserPath = Field(
        "/home/mpiuser/.ssh",
        description="Where the run's key pair is mounted.",
        examples=["/home/mpiuser/.ssh"],
    )


class ImageUser(Strict):
    """The user of every container of the image; never root."""

    uid: int = Field(
        1000,
        ge=1,
        le=2_147_483_647,
        description="User id; it needs a passwd entry in the image.",
        examples=[1000],
    )
    gid: int = Field(
        1000,
        ge=1,
        le=2_147_483_647,
        description="Group id, also the fsGroup that makes the SSH key readable.",
        examples=[1000],
    )


class ImageScan(Strict):
    """The latest scan of a build for known vulnerabilities."""

    date: Day = Field(description="Day of the scan.", examples=["2026-11-02"])
    tool: Annotated[str, Field(min_length=1, max_length=128)] | None = Field(
        None, description="Scanner and its version.", examples=["trivy 0.67"]
    )
    report: Annotated[str, Field(min_length=1, max_length=1024)] | None = Field(
        None,
        description="Where its report is: an address or a path.",
        examples=["https://scans.example.com/deepspeed/5f40b1a8"],
    )


class ImageOnCluster(Strict):
    """What is different on one cluster."""

    repository: Repository | None = Field(
        None,
        description="Where this cluster pulls it from; takes precedence over registry mirrors.",
        examples=["mirror.example.eu/ml/deepspeed"],
    )
    digest: Digest | None = Field(
        None, description="Digest on this cluster, when it is another build.", examples=["sha256:" + "0" * 64]
    )


class Image(Strict):
    """One image."""

    repository: Repository = Field(
        description="Fully qualified repository, without tag.", examples=["registry.example.com/ml/deepspeed"]
    )
    tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")] | None = Field(
        None, description="Tag, for people; the digest decides.", examples=["0.17-cuda12.8"]
    )
    digest: Digest = Field(description="Digest that is pulled.", examples=["sha256:" + "0" * 64])
    earlier: tuple[Digest, ...] = Field(
        (),
        max_length=64,
        description="Digests of earlier builds that running runs may still have (render --keep-runs), approved like this one.",
        examples=[["sha256:" + "1" * 64]],
    )
    description: str | None = Field(
        None, max_length=2048, description="Free text for people.", examples=["DeepSpeed on Open MPI 4.1"]
    )
    framework: Framework = Field("mpi", description="How a plain command is started.", examples=["deepspeed"])
    framework_version: Line | None = Field(
        None, description="Version of the framework inside.", examples=["0.17.2"]
    )
    architectures: Annotated[tuple[Literal["amd64", "arm64"], ...], Field(min_length=1, max_length=2)] = (
        Field(
            ("amd64",),
            description="Processor architectures that it was built for; a run then uses no other nodes.",
            examples=[["amd64", "arm64"]],
        )
    )
    mpi: ImageMpi | None = Field(
        None,
        description="The MPI inside; needed for mpi, horovod and deepspeed.",
        examples=[{"implementation": "OpenMPI", "version": "4.1.8"}],
    )
    ssh: ImageSsh = Field(ImageSsh(), description="The SSH server inside.", examples=[{"port": 2222}])
    preflight: MountPath | None = Field(
        None,
        description="The preflight program inside (images/preflight), for specs with preflight: true.",
        examples=["/usr/local/bin/gangplan-preflight"],
    )
    user: ImageUser = Field(ImageUser(), description="The user inside.", examples=[{"uid": 1000}])
    fetches: tuple[Literal["hf", "s3"], ...] = Field(
        (),
        max_length=2,
        description="Where its Python can fetch from in steps: hf needs huggingface_hub in the image, s3 needs boto3.",
        examples=[["hf"]],
    )
    fips: bool = Field(
        False, description="Whether it is built for FIPS mode: validated cryptography only.", examples=[True]
    )
    approved: tuple[Regime, ...] = Field(
        (), max_length=16, description="Regimes that this build is approved for.", examples=[["hipaa"]]
    )
    cuda: str | None = Field(
        None,
        max_length=32,
        description="CUDA version inside; a run with GPUs then uses no other vendor's GPUs.",
        examples=["12.8"],
    )
    cuda_compat: bool = Field(
        False,
        description="Whether NVIDIA's forward compatibility package (cuda-compat) is inside, so that older drivers of data centre GPUs suffice.",
        examples=[True],
    )
    rocm: str | None = Field(
        None,
        max_length=32,
        description="ROCm version inside; a run with GPUs then uses no other vendor's GPUs.",
        examples=["6.4"],
    )
    tier: Tier | None = Field(
        None,
        description="Certification tier of this build as it is; omitted: that of its combination in tiers.",
        examples=["certified"],
    )
    licence: Licence | None = Field(
        None,
        description="Licences of what is inside, as an SPDX expression.",
        examples=["Apache-2.0 AND BSD-3-Clause"],
    )
    owner: Annotated[str, Field(min_length=1, max_length=253)] | None = Field(
        None, description="Who builds it and answers for it.", examples=["ml-platform@example.com"]
    )
    scan: ImageScan | None = Field(
        None, description="Its last scan for known vulnerabilities.", examples=[{"date": "2026-11-02"}]
    )
    clusters: dict[Name, ImageOnCluster] = Field(
        {},
        description="What differs per cluster.",
        examples=[{"eu-airgap": {"repository": "mirror.example.eu/ml/deepspeed"}}],
    )


class Requirements(Strict):
    """What every image of the catalog must state, and what runs may use."""

    owner: bool = Field(False, description="Whether each image must name its owner.", examples=[True])
    licences: tuple[Licence, ...] = Field(
        (),
        max_length=128,
        description="Licences that images may have, by SPDX identifier; omitted: any, stated or not.",
        examples=[["Apache-2.0", "BSD-3-Clause"]],
    )
    scan_days: int | None = Field(
        None,
        ge=1,
        le=3650,
        description="Days after which a scan is too old; omitted: images need none.",
        examples=[90],
    )
    tier: Literal["certified", "tested", "community"] | None = Field(
        None,
        description="Lowest tier that runs may use without a warning; omitted: any.",
        examples=["tested"],
    )


class TierRow(Strict):
    """Combinations with the same tier. An omitted field matches anything; the first matching row applies."""

    tier: Tier = Field(description="Their tier.", examples=["certified"])
    framework: Framework | None = Field(None, description="Framework.", examples=["deepspeed"])
    framework_version: Line | None = Field(
        None, description="Its version; 0.17 covers every 0.17.x.", examples=["0.17"]
    )
    mpi: MpiFamily | None = Field(None, description="MPI family.", examples=["OpenMPI"])
    mpi_version: Line | None = Field(
        None, description="Its version; 4.1 covers every 4.1.x.", examples=["4.1"]
    )
    gpus: tuple[Name, ...] = Field(
        (), max_length=64, description="GPU models; omitted: any or none.", examples=[["h100-80gb"]]
    )
    cuda: Line | None = Field(None, description="CUDA version; 12 covers every 12.x.", examples=["12"])
    rocm: Line | None = Field(None, description="ROCm version; 6.4 covers every 6.4.x.", examples=["6.4"])
    source: Annotated[str, Field(max_length=1024)] | None = Field(
        None, description="Source of this tier.", examples=["acceptance test of 2026-10-12"]
    )


class ImageCatalog(Strict):
    """All images that specs may name."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["ImageCatalog"] = Field(description="Kind of this file.", examples=["ImageCatalog"])
    images: dict[Name, Image] = Field(
        min_length=1,
        description="Images by name.",
        examples=[
            {"deepspeed": {"repository": "registry.example.com/ml/deepspeed", "digest": "sha256:" + "0" * 64}}
        ],
    )
    requirements: Requirements | None = Field(
        None, description="What images must state; omitted: nothing.", examples=[{"scanDays": 90}]
    )
    tiers: tuple[TierRow, ...] = Field(
        (),
        max_length=1024,
        description="Tiers of combinations of framework, MPI and GPU, your own before those that come with gangplan.",
        examples=[[{"tier": "certified", "framework": "deepspeed", "gpus": ["h100-80gb"]}]],
    )
