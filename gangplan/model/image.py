"""An image as a cluster pulls it: its MPI, SSH server and user."""

from __future__ import annotations

from typing import Literal

from gangplan.model.frameworks import Framework
from gangplan.records import dataclass

MpiFamily = Literal["OpenMPI", "IntelMPI", "MPICH"]


@dataclass(frozen=True, slots=True)
class SshServer:
    """The SSH server of an image."""

    server: str
    config: str
    port: int
    keys: str


@dataclass(frozen=True, slots=True)
class MpiBuild:
    """The MPI of an image. `major` decides the names of environment variables (Open MPI 4 and 5 differ)."""

    family: MpiFamily
    major: int
    version: str
    setup: str | None


@dataclass(frozen=True, slots=True)
class ImageSupport:
    """How well the combination of an image, its framework and the GPUs of a run is tried, and who answers for
    the image. `source` says where the tier comes from; `owner` is empty where the catalog names none."""

    tier: str
    source: str
    owner: str


@dataclass(frozen=True, slots=True)
class PulledImage:
    """An image as this cluster pulls it. `preflight` is its preflight program, for runs that use one."""

    name: str
    reference: str
    framework: Framework
    mpi: MpiBuild | None
    ssh: SshServer
    uid: int
    gid: int
    preflight: str = ""
