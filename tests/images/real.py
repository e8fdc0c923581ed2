"""The CNCF distribution registry 3, from its Go module, as sites run it: accounts, tokens, TLS, mirrors."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.images.registry import PASSWORD, USER, Store
from tests.lab import build, programs

#: The bcrypt hash of PASSWORD, as `htpasswd -B` writes it: the registry takes no other kind.
HTPASSWD = f"{USER}:$2b$04$lSUDqnuus0wdgq1tJPQBw.t1iTINJUGpG80952wb0TQE9Yo7EWt4W\n"
#: Manifests may name layers that are stored elsewhere; without this the registry refuses them.
_FOREIGN = {"manifests": {"urls": {"allow": ["^https://"]}}}


def program() -> Path:
    """Return the registry's program, built if it is missing; skip the test if it cannot be built."""
    try:
        build.ensure([programs.DISTRIBUTION])
    except build.GoMissingError as missing:
        pytest.skip(f"no registry: {missing}")
    return build.executable(programs.DISTRIBUTION)


@dataclass(frozen=True)
class Real:
    """A running registry, the headers of requests to it, and the certificate that it shows."""

    host: str
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: Path | None = None

    @property
    def port(self) -> int:
        """The registry's port on this machine."""
        return int(self.host.rpartition(":")[2])

    def push(self, store: Store, repository: str) -> None:
        """Push everything that a store has of a repository, in the order of clients: blobs, manifests, then
        tags."""
        for digest, data in store.blobs.items():
            self._blob(repository, digest, data)
        names = [key for key in store.manifests if key[0] == repository]
        for _, name in sorted(
            names, key=lambda key: (not key[1].startswith("sha256:"), b"manifests" in store.manifests[key][1])
        ):
            media_type, data = store.manifests[repository, name]
            answer = self.ask("PUT", f"/v2/{repository}/manifests/{name}", data, {"Content-Type": media_type})
            assert answer.status == 201, answer.read()

    def _blob(self, repository: str, digest: str, data: bytes) -> None:
        answer = self.ask("POST", f"/v2/{repository}/blobs/uploads/", b"")
        assert answer.status == 202, answer.read()
        place = urllib.parse.urlsplit(answer.headers["Location"])
        query = f"{place.query}&digest={urllib.parse.quote(digest)}"
        headers = {"Content-Type": "application/octet-stream"}
        answer = self.ask("PUT", f"{place.path}?{query}", data, headers)
        assert answer.status == 201, answer.read()

    def ask(
        self, method: str, path: str, data: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """Send one request with the registry's headers."""
        if self.trusted is None:
            connection = http.client.HTTPConnection(self.host, timeout=10)
        else:
            context = ssl.create_default_context(cafile=str(self.trusted))
            context.check_hostname = False
            connection = http.client.HTTPSConnection(self.host, timeout=10, context=context)
        connection.request(method, path, data, {**self.headers, **(headers or {})})
        return connection.getresponse()


def basic() -> dict[str, str]:
    """Return the header of the only account."""
    return {"Authorization": "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    auth: Mapping[str, Any] | None = None,
    certificate: Path | None = None,
    upstream: str = "",
    headers: Mapping[str, str] | None = None,
) -> Iterator[Real]:
    """Run a registry in its own folder while the block runs.

    `auth` is the section of its configuration; `certificate` is a file with its key; `upstream` is the
    registry that it mirrors (a pull-through mirror); `headers` are sent with every push.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"secret": "tests"},
        "validation": _FOREIGN,
    }
    if auth:
        config["auth"] = dict(auth)
    if certificate:
        config["http"]["tls"] = {"certificate": str(certificate), "key": str(certificate)}
    if upstream:
        config["proxy"] = {"remoteurl": upstream}
    (folder / "config.yml").write_text(json.dumps(config))
    words = [str(program()), str(folder / "config.yml")]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            host = process.stdout.readline().strip()
            assert host, (folder / "log").read_text()
            yield Real(host, headers or {}, certificate)
        finally:
            process.terminate()


def htpasswd(folder: Path) -> dict[str, Any]:
    """Write an account file and return the section of a registry with this one account."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "htpasswd").write_text(HTPASSWD)
    return {"htpasswd": {"realm": "tests", "path": str(folder / "htpasswd")}}
