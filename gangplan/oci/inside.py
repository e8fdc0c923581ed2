"""Read an image's configuration, and what its files reveal about MPI, users, GPUs and frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from gangplan.oci.layers import ImageFiles
from gangplan.records import dataclass

_MOST_TEXTS = 500
_FRAMEWORKS = ("torch", "horovod", "deepspeed", "jax", "tensorflow", "xgboost", "mpi4py")
# Paddle's packages, for CPUs and for GPUs, have other names than the framework.
_PACKAGES = {"paddlepaddle": "paddle", "paddlepaddle_gpu": "paddle", **{one: one for one in _FRAMEWORKS}}
# Debian's packages of an MPI; those of conda-forge and PyPI are found by the names of their records.
_DPKG = {"openmpi-bin": "OpenMPI", "libopenmpi3": "OpenMPI", "libopenmpi40": "OpenMPI", "mpich": "MPICH"}
_CONDA = re.compile(r"(?:.*/)?conda-meta/(openmpi|mpich|impi_rt)-([0-9][0-9.]*)-[^/]+\.json")
_FAMILIES = {
    "openmpi": "OpenMPI",
    "ompi": "OpenMPI",
    "mpich": "MPICH",
    "impi": "IntelMPI",
    "impi_rt": "IntelMPI",
}
_ONEAPI = re.compile(r"(?:.*/)?oneapi/mpi/([0-9]{4}\.[0-9]+(?:\.[0-9]+)?)/.+")
_DIST = re.compile(r"(?:.*/)?([A-Za-z0-9_.]+)-([0-9][^/-]*)\.dist-info/METADATA")
_CUDART = re.compile(r"(?:.*/)?libcudart\.so\.([0-9]+\.[0-9]+)\.[0-9.]+")


@dataclass(frozen=True, slots=True)
class InstalledMpi:
    """An MPI in an image: its family, its version if a file has it, and the path of that file."""

    family: str
    version: str
    by: str


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """An image's configuration (OCI Image Specification, config.md). Texts are as written, but truncated."""

    architecture: str
    os: str
    user: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    folder: str
    env: Mapping[str, str]
    ports: tuple[str, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ImageContents:
    """What the files of an image reveal; `users` are names by user id."""

    mpis: tuple[InstalledMpi, ...] = ()
    users: Mapping[int, str] = field(default_factory=dict)
    frameworks: Mapping[str, str] = field(default_factory=dict)
    cuda: str | None = None
    has_compat: bool = False
    rocm: str | None = None
    has_libmpi: bool = False


def parse_oci_image_config(body: Mapping[str, Any]) -> ImageConfig:
    """Parse a configuration; any part may be missing or of another type."""
    own = body.get("config") if isinstance(body.get("config"), dict) else {}
    assert isinstance(own, dict)
    pairs = [one.partition("=") for one in _read_image_config_texts(own.get("Env"))]
    ports = own.get("ExposedPorts")
    labels = own.get("Labels")
    return ImageConfig(
        str(body.get("architecture", ""))[:64],
        str(body.get("os", ""))[:64],
        str(own.get("User") or "")[:256],
        _read_image_config_texts(own.get("Entrypoint")),
        _read_image_config_texts(own.get("Cmd")),
        str(own.get("WorkingDir") or "")[:1024],
        {name: value for name, _, value in pairs if name},
        tuple(sorted(str(port)[:64] for port in ports)) if isinstance(ports, dict) else (),
        dict(sorted((str(key)[:256], str(value)[:4096]) for key, value in labels.items()))
        if isinstance(labels, dict)
        else {},
    )


def find_image_contents(files: ImageFiles, config: ImageConfig) -> ImageContents:
    """Return what the kept files reveal."""
    cuda, rocm = _find_cuda_version_in_image_layers(files, config), _find_rocm_version_in_image(files)
    return ImageContents(
        mpis=tuple(
            dict.fromkeys(
                sorted(
                    _find_mpis_in_image_layers(files),
                    key=lambda one: (one.family, not one.version, one.version, one.by),
                )
            )
        ),
        users=_read_passwd_users_in_image(files),
        frameworks=dict(sorted(_find_frameworks_in_image(files))),
        cuda=cuda,
        has_compat=any(re.match(r"usr/local/cuda[^/]*/compat/", path) for path in files.kept),
        rocm=rocm,
        has_libmpi=any(re.search(r"(^|/)libmpi\.so[.0-9]*$", path) for path in files.kept),
    )


def _find_mpis_in_image_layers(files: ImageFiles) -> Iterator[InstalledMpi]:
    for path, one in files.kept.items():
        if found := re.fullmatch(r"(?:.*/)?pkgconfig/(ompi|mpich|impi)\.pc", path):
            yield InstalledMpi(
                _FAMILIES[found[1]], _find_version_after_pattern(one.content, r"Version:\s*"), path
            )
        elif path.endswith("share/openmpi/mpicc-wrapper-data.txt"):
            yield InstalledMpi("OpenMPI", _find_version_after_pattern(one.content, r"version="), path)
        elif found := _CONDA.fullmatch(path):
            yield InstalledMpi(_FAMILIES[found[1]], found[2], path)
        elif found := _ONEAPI.fullmatch(path):
            yield InstalledMpi("IntelMPI", found[1], path[: found.end(1)])
        elif path.startswith("var/lib/dpkg/status"):
            yield from _find_debian_mpis_in_image(one.content, path)
        elif re.search(r"(^|/)ompi_info$", path):
            yield InstalledMpi("OpenMPI", "", path)
        elif re.search(r"(^|/)mpichversion$", path):
            yield InstalledMpi("MPICH", "", path)
        elif re.search(r"(^|/)impi_info$", path):
            yield InstalledMpi("IntelMPI", "", path)


def _find_debian_mpis_in_image(content: bytes, path: str) -> Iterator[InstalledMpi]:
    """Yield the MPIs among Debian's packages: `4.1.4-3+b1` is 4.1.4, and an epoch is not part of the
    version."""
    for block in content.decode("utf-8", "replace").split("\n\n"):
        name = re.search(r"^Package: (\S+)$", block, re.MULTILINE)
        version = re.search(r"^Version: (?:\d+:)?([0-9][0-9.]*[0-9])", block, re.MULTILINE)
        if (
            name
            and name[1] in _DPKG
            and not re.search(r"^Status: .*(deinstall|config-files)", block, re.MULTILINE)
        ):
            yield InstalledMpi(_DPKG[name[1]], version[1] if version else "", path)


def _read_passwd_users_in_image(files: ImageFiles) -> dict[int, str]:
    one = files.find("/etc/passwd")
    found: dict[int, str] = {}
    for line in one.content.decode("utf-8", "replace").splitlines() if one else ():
        parts = line.split(":")
        if len(parts) == 7 and parts[2].isdecimal() and len(parts[2]) < 11:
            found.setdefault(int(parts[2]), parts[0])
    return found


def _find_frameworks_in_image(files: ImageFiles) -> Iterator[tuple[str, str]]:
    for path in files.kept:
        found = _DIST.fullmatch(path)
        if found and found[1].lower() in _PACKAGES:
            yield _PACKAGES[found[1].lower()], found[2]


def _find_cuda_version_in_image_layers(files: ImageFiles, config: ImageConfig) -> str | None:
    """Return the CUDA version from NVIDIA's file, the variable of NVIDIA's images, or the library's name."""
    for path, one in sorted(files.kept.items()):
        if re.fullmatch(r"usr/local/cuda[^/]*/version\.json", path):
            written = re.search(rb'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"(\d+\.\d+)', one.content)
            if written:
                return written[1].decode()
    stated = re.match(r"\d+\.\d+", config.env.get("CUDA_VERSION", ""))
    if stated:
        return stated[0]
    return next((found[1] for path in sorted(files.kept) if (found := _CUDART.fullmatch(path))), None)


def _find_rocm_version_in_image(files: ImageFiles) -> str | None:
    for path, one in sorted(files.kept.items()):
        if path.endswith("/.info/version"):
            found = re.match(rb"\d+\.\d+", one.content)
            if found:
                return found[0].decode()
    return None


def _find_version_after_pattern(content: bytes, pattern: str) -> str:
    found = re.search(rf"^{pattern}([0-9]+(?:\.[0-9]+)*)", content.decode("utf-8", "replace"), re.MULTILINE)
    return found[1] if found else ""


def _read_image_config_texts(value: object) -> tuple[str, ...]:
    return tuple(str(one)[:4096] for one in value[:_MOST_TEXTS]) if isinstance(value, list) else ()
