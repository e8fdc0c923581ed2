"""Read registries by their API (OCI Distribution Specification 1.1): tags, manifests and blobs.

Everything received is checked against its digest before it is used.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from typing import IO

from gangplan.errors import ToolError
from gangplan.oci.auth import answer_registry_challenge
from gangplan.oci.credentials import Credentials, find_registry_credentials
from gangplan.oci.http import HttpAnswer, Sleep, scheme_of, send_registry_request
from gangplan.oci.names import INDEX_TYPES, MANIFEST_TYPES, SCHEMA_1_MANIFEST, Reference, is_digest
from gangplan.records import dataclass

#: Largest manifest in bytes: registries accept no larger ones (4 MiB, Distribution's limit).
MAX_MANIFEST_BYTES = 4 << 20
_ACCEPT = ", ".join((*INDEX_TYPES, *MANIFEST_TYPES))


class ImageMissingError(ToolError):
    """The registry has no such image: its repository, tag or digest is unknown there."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest or an index: its bytes as received, their digest, and its media type from the header."""

    data: bytes
    digest: str
    media_type: str


@dataclass(slots=True)
class RegistryClient:
    """All registries that a command asks. Tokens are kept per repository while the command runs."""

    environment: Mapping[str, str]
    sleep: Sleep = time.sleep
    _tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    _known: dict[str, Credentials | None] = field(default_factory=dict)
    _pinged: set[str] = field(default_factory=set)

    def manifest(self, reference: Reference) -> Manifest:
        """Return the manifest of a reference: by its digest, else by its tag, else by the tag latest.

        Raises MissingError if the registry does not have it, and ToolError for every other failure.
        """
        self._ping(reference)
        wanted = reference.digest or reference.tag or "latest"
        answer = self._get(reference, f"manifests/{wanted}", MAX_MANIFEST_BYTES, {"Accept": _ACCEPT})
        if answer.status == 404:
            raise ImageMissingError(
                f"{reference.host} has no {reference}", "Check the name, and whether it was pushed."
            )
        _check_registry_answer(reference, answer)
        media_type = answer.headers.get("content-type", "").partition(";")[0].strip()
        if media_type.startswith(SCHEMA_1_MANIFEST):
            raise ToolError(
                f"{reference} has a manifest of Docker's first format", "Build and push it again."
            )
        said = answer.headers.get("docker-content-digest", "")
        if reference.digest and answer.digest != reference.digest:
            raise ToolError(f"{reference.host} gives other bytes for {reference}: they have {answer.digest}")
        if is_digest(said) and said != answer.digest:
            raise ToolError(
                f"{reference.host} says that {reference} is {said}, but its bytes have {answer.digest}"
            )
        return Manifest(answer.body, answer.digest, media_type)

    def blob(self, reference: Reference, digest: str, size: int, into: IO[bytes] | None = None) -> bytes:
        """Return a blob of an image with this digest and at most this size in bytes, or write it to a file.

        Raises MissingError if the registry does not have it, and ToolError for every other failure.
        """
        answer = self._get(reference, f"blobs/{digest}", size, {}, into)
        if answer.status == 404:
            raise ImageMissingError(f"{reference.repository} has no blob {digest}", "Push the image again.")
        _check_registry_answer(reference, answer)
        if answer.digest != digest:
            raise ToolError(
                f"{reference.host} gives other bytes for blob {digest}: they have {answer.digest}"
            )
        return answer.body

    def _ping(self, reference: Reference) -> None:
        """Check once per host that it is a registry, whose API begins at /v2/. Raises ToolError."""
        if reference.host in self._pinged:
            return
        answer = send_registry_request(
            f"{scheme_of(reference.server)}://{reference.server}/v2/", most=1 << 20, sleep=self.sleep
        )
        if answer.status == 400 and b"HTTPS server" in answer.body:
            raise ToolError(
                f"{reference.host} speaks TLS, and registries on this machine are asked without",
                "Serve it without TLS here, or name it by a host that is not loopback.",
            )
        if answer.status not in (200, 401):
            raise ToolError(f"{reference.host} is not a registry: it answers {answer.status} to /v2/")
        self._pinged.add(reference.host)

    def _get(
        self,
        reference: Reference,
        what: str,
        most: int,
        headers: Mapping[str, str],
        into: IO[bytes] | None = None,
    ) -> HttpAnswer:
        url = f"{scheme_of(reference.server)}://{reference.server}/v2/{reference.server_path}/{what}"
        key = (reference.host, reference.path)
        for is_last in (False, True):
            own = {"Authorization": self._tokens[key]} if key in self._tokens else {}
            answer = send_registry_request(url, {**headers, **own}, most=most, into=into, sleep=self.sleep)
            challenge = answer.headers.get("www-authenticate", "")
            if answer.status != 401 or is_last or not challenge:
                return answer
            said = answer_registry_challenge(
                reference.host, reference.server_path, challenge, self._who(reference), self.sleep
            )
            if said is None:
                return answer
            self._tokens[key] = said
        raise AssertionError("not reached")

    def _who(self, reference: Reference) -> Credentials | None:
        name = reference.repository
        if name not in self._known:
            self._known[name] = find_registry_credentials(name, self.environment)
        return self._known[name]


def _check_registry_answer(reference: Reference, answer: HttpAnswer) -> None:
    if answer.status == 200:
        return
    if answer.status in (401, 403):
        help = f"Log in: docker login {reference.host}, or podman login {reference.host}."
        raise ToolError(
            f"{reference.host} does not let us read {reference.repository} ({answer.status})", help
        )
    raise ToolError(f"{reference.host} answers {answer.status} for {reference}", "Try again later.")
