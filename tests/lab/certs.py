"""Keys and certificates without a cryptography library.

The API server signs a certificate for itself when it has none; the lab lets it, and gives the same
certificate to the webhook servers. Only the key that signs service account tokens must exist before, and a
private elliptic curve key is just a random number in a fixed frame.
"""

from __future__ import annotations

import base64
import secrets
import ssl
import textwrap
from pathlib import Path

#: The order of the P-256 group: a private key lies between 1 and this.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
#: DER of SEQUENCE {1, OCTET STRING (32 bytes)} and of [0] prime256v1.
_BEFORE = bytes.fromhex("3031020101 0420")
_AFTER = bytes.fromhex("a00a06082a8648ce3d030107")


def write_signing_key(path: Path) -> None:
    """Write a new private key (P-256, PEM) for service account tokens."""
    number = 1 + secrets.randbelow(_ORDER - 1)
    frame = _BEFORE + number.to_bytes(32, "big") + _AFTER
    body = "\n".join(textwrap.wrap(base64.b64encode(frame).decode(), 64))
    path.write_text(f"-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----\n")
    path.chmod(0o600)


class Identity:
    """The certificate that every server of one lab presents."""

    def __init__(self, folder: Path) -> None:
        """Use the folder in which the API server puts its certificate."""
        self.folder = folder
        self.certificate = folder / "apiserver.crt"
        self.key = folder / "apiserver.key"

    def bundle(self) -> str:
        """Return what a client must trust, as base64 of PEM."""
        return base64.b64encode(self.certificate.read_bytes()).decode()

    def trust(self) -> ssl.SSLContext:
        """Return a client context that trusts this certificate and nothing else."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        # Newer Pythons demand extensions that the API server leaves out.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context

    def link(self, folder: Path) -> None:
        """Link the certificate into a folder, under the names that controllers expect."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, target in (("tls.crt", self.certificate), ("tls.key", self.key)):
            (folder / name).symlink_to(target)
