"""Image references, digests, and media types of manifests (OCI Image and Distribution Specification 1.1)."""

from __future__ import annotations

import hashlib
import re

from gangplan.errors import UserError
from gangplan.records import dataclass

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEX_TYPES = (OCI_INDEX, DOCKER_LIST)
MANIFEST_TYPES = (OCI_MANIFEST, DOCKER_MANIFEST)
# Docker's first format, signed inside; registries still keep it for images from before 2016.
SCHEMA_1_MANIFEST = "application/vnd.docker.distribution.manifest.v1"

_REFERENCE = re.compile(
    r"(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?)"
    r"/(?P<path>[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# Docker Hub answers under another name than its images have; its own images are in a folder that names leave
# out.
_HUB, _HUB_FOLDER = "docker.io", "library"
HUB_SERVERS = {_HUB: "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}


@dataclass(frozen=True, slots=True)
class Reference:
    """An image: the registry's host, the repository there, and a tag, a digest or both."""

    host: str
    path: str
    tag: str | None = None
    digest: str | None = None

    @property
    def repository(self) -> str:
        """Host and path, as the catalog writes them."""
        return f"{self.host}/{self.path}"

    @property
    def server(self) -> str:
        """The host that answers for the registry."""
        return HUB_SERVERS.get(self.host, self.host)

    @property
    def server_path(self) -> str:
        """The repository as the server has it."""
        return (
            f"{_HUB_FOLDER}/{self.path}" if self.host in HUB_SERVERS and "/" not in self.path else self.path
        )

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}{tag}{f'@{self.digest}' if self.digest else ''}"


def parse_registry_image_reference(text: str) -> Reference:
    """Parse an image reference. Raises UserError for one without a registry's host."""
    match = _REFERENCE.fullmatch(text)
    if match is None or not ("." in match["host"] or ":" in match["host"] or match["host"] == "localhost"):
        raise UserError(
            f"'{text[:200]}' is not an image with a registry",
            "Write registry.example.com/team/image:tag, an image of the catalog, or oci:FOLDER.",
        )
    return Reference(match["host"], match["path"], match["tag"], match["digest"])


def compute_blob_digest(data: bytes) -> str:
    """Return the digest of bytes, as manifests write it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def is_digest(text: object) -> bool:
    """Return whether a value is a SHA-256 digest; gangplan reads no other kind."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None
