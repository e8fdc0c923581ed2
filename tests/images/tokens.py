"""A token service for a real registry (distribution's docs, spec/auth/token.md): grants and signed tokens."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import shutil
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.images.registry import IDENTITY, PASSWORD, USER

ISSUER, SERVICE, KEY_ID = "tests", "registry.tests", "key-1"
_E = 65537


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _openssl(*words: str, data: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=data, capture_output=True, check=True).stdout


@dataclass
class Service:
    """The repositories that the service grants by user ('' is anyone), and the requests that it got."""

    folder: Path
    grants: dict[str, tuple[str, ...]]
    asked: list[dict[str, str]] = field(default_factory=list)
    lifetime_s: int = 300  # negative: tokens have expired when they arrive
    url: str = ""

    def auth(self) -> dict[str, Any]:
        """Return the token section of the registry's configuration."""
        realm = {"realm": f"{self.url}/token", "service": SERVICE, "issuer": ISSUER}
        return {"token": {**realm, "jwks": str(self.folder / "jwks.json")}}

    def make_key(self) -> None:
        """Create a new pair of keys: a private one to sign with, and a public one that the registry
        trusts."""
        key = self.folder / "key.pem"
        _openssl("genrsa", "-out", str(key), "2048")
        modulus = _openssl("rsa", "-in", str(key), "-modulus", "-noout").decode().strip().partition("=")[2]
        facts = {"kty": "RSA", "kid": KEY_ID, "alg": "RS256", "use": "sig"}
        public = {"n": _packed(bytes.fromhex(modulus)), "e": _packed(_E.to_bytes(3, "big"))}
        (self.folder / "jwks.json").write_text(json.dumps({"keys": [facts | public]}))

    def token(self, user: str, scope: str) -> str:
        """Return a token for the part of a scope that a user may use."""
        kind, _, rest = scope.partition(":")
        name, _, actions = rest.rpartition(":")
        access = []
        if name in self.grants.get(user, ()) or name in self.grants.get("", ()):
            access = [{"type": kind, "name": name, "actions": actions.split(",")}]
        now = int(time.time())
        # The registry allows a minute of skew in both directions.
        times = {"iat": now, "nbf": now - 5, "exp": now + self.lifetime_s}
        claims = {
            "iss": ISSUER,
            "sub": user,
            "aud": SERVICE,
            "jti": _jti(user, scope),
            **times,
            "access": access,
        }
        header = {"typ": "JWT", "alg": "RS256", "kid": KEY_ID}
        text = ".".join(_packed(json.dumps(part).encode()) for part in (header, claims))
        signed = _openssl("dgst", "-sha256", "-sign", str(self.folder / "key.pem"), data=text.encode())
        return f"{text}.{_packed(signed)}"


def _jti(user: str, scope: str) -> str:
    return hashlib.sha256(f"{user} {scope}".encode()).hexdigest()[:16]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Return a token to the account with the right password, and to anyone what anyone may have."""
        query = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
        self.server.service.asked.append(query)
        said = self.headers.get("Authorization", "")
        right = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if said not in ("", right) or query.get("service") != SERVICE:
            self._say(401, {"errors": [{"code": "UNAUTHORIZED"}]})
            return
        self._say(200, {"token": self.server.service.token(USER if said else "", query.get("scope", ""))})

    def do_POST(self) -> None:
        """Return a token for an identity token, as OAuth2 has it."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        facts = dict(urllib.parse.parse_qsl(body))
        self.server.service.asked.append(facts)
        if facts.get("refresh_token") != IDENTITY or facts.get("service") != SERVICE:
            self._say(401, {})
            return
        self._say(200, {"access_token": self.server.service.token(USER, facts.get("scope", ""))})

    def _say(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, service: Service) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service


@contextlib.contextmanager
def serve(folder: Path, grants: dict[str, tuple[str, ...]]) -> Iterator[Service]:
    """Run a token service while the block runs."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl, which signs the tokens")
    folder.mkdir(parents=True, exist_ok=True)
    service = Service(folder, grants)
    service.make_key()
    server = _Server(service)
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
