"""ImageCatalog: image names that specs use, what is inside each image, and where each cluster gets it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gangplan.spec.base import ApiVersion, MountPath, Name, Strict
from gangplan.spec.job import Framework, MpiFamily, Regime

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
# A registry host is required: an unqualified name means another image on another cluster.
Repository = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)+$",
        max_length=400,
    ),
]


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
    config: MountPath = Field(
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
    keys: MountPath = Field(
        "/home/mpiuser/.ssh",
        description="Where the run's key pair is mounted.",
        examples=["/home/mpiuser/.ssh"],
    )


class ImageUser(Strict):
    """The user that every container of the image runs as; never root."""

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


class ImageOnCluster(Strict):
    """What differs for one cluster."""

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
    mpi: ImageMpi | None = Field(
        None,
        description="The MPI inside; needed for mpi, horovod and deepspeed.",
        examples=[{"implementation": "OpenMPI", "version": "4.1.8"}],
    )
    ssh: ImageSsh = Field(ImageSsh(), description="The SSH server inside.", examples=[{"port": 2222}])
    user: ImageUser = Field(ImageUser(), description="The user inside.", examples=[{"uid": 1000}])
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
    rocm: str | None = Field(
        None,
        max_length=32,
        description="ROCm version inside; a run with GPUs then uses no other vendor's GPUs.",
        examples=["6.4"],
    )
    clusters: dict[Name, ImageOnCluster] = Field(
        {},
        description="What differs per cluster.",
        examples=[{"eu-airgap": {"repository": "mirror.example.eu/ml/deepspeed"}}],
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
