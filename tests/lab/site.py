"""What the programs of one lab share: folder, ports, credentials."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from . import build, certs
from .certs import Identity
from .ports import Ports
from .profiles import Profile


@dataclass
class Site:
    """The addresses and files of one lab, created before anything starts."""

    profile: Profile
    folder: Path
    ports: Ports
    gates: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    identity: Identity = field(init=False)
    api_port: int = field(init=False)
    etcd_port: int = field(init=False)

    def __post_init__(self) -> None:
        """Reserve the ports and write the files that the first programs read."""
        self.api_port = self.ports.take()
        self.etcd_port = self.ports.take()
        self.identity = Identity(self.folder / "pki")
        self.identity.folder.mkdir()
        certs.write_signing_key(self.signing_key)
        tokens = self.identity.folder / "tokens.csv"
        tokens.write_text(f'{self.token},lab-admin,lab-admin,"system:masters"\n')

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def signing_key(self) -> Path:
        """The key that signs service account tokens."""
        return self.identity.folder / "service-accounts.key"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    def write_kubeconfig(self) -> None:
        """Write the kubeconfig; possible once the API server has its certificate."""
        cluster = {"server": self.url, "certificate-authority-data": self.identity.bundle()}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
            "current-context": "lab",
        }
        self.kubeconfig.write_text(json.dumps(content, indent=2))
        self.kubeconfig.chmod(0o600)

    def executable(self, program: str, name: str | None = None) -> Path:
        """Return an executable of one of the profile's programs."""
        return build.executable(self.profile.program(program), name)
