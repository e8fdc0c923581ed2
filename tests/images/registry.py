"""A strict registry for tests: HTTP on this machine, tokens or Basic, redirects, faults on demand."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gangplan.oci.names import INDEX_TYPES, MANIFEST_TYPES, compute_blob_digest

USER, PASSWORD, TOKEN, IDENTITY = "reader", "s3cret:with:colons", "tok.en-1", "identity-1"


@dataclass
class Store:
    """The contents of a registry, manifests by repository and digest or tag, blobs by digest; and its
    behaviour."""

    manifests: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    auth: str = ""  # "", "bearer", "basic"
    is_public: bool = False  # anyone gets a token
    elsewhere: str = ""  # the address of another server, which has the blobs
    faults: list[int] = field(default_factory=list)  # statuses of the next answers
    lies: dict[str, str] = field(default_factory=dict)  # digests that headers give instead of the real ones
    broken: dict[str, bytes] = field(default_factory=dict)  # bytes sent instead of those that a digest names
    moved: str = ""  # where every request is redirected
    realm: str = ""  # used instead of its own token service
    cut: int = 0  # how many of the next answers end in the middle
    proxied: list[str] = field(default_factory=list)  # the Proxy-Authorization of requests that have one
    asked: list[tuple[str, str]] = field(default_factory=list)  # each path with its Authorization

    def push(self, repository: str, tag: str, body: dict[str, Any] | bytes, media_type: str = "") -> str:
        """Store a manifest under its digest and a tag, and return the digest."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        media_type = media_type or (json.loads(data)["mediaType"] if data.startswith(b"{") else "")
        digest = compute_blob_digest(data)
        self.manifests[repository, digest] = (media_type, data)
        if tag:
            self.manifests[repository, tag] = (media_type, data)
        return digest

    def blob(self, data: bytes) -> dict[str, Any]:
        """Store a blob and return its descriptor without media type."""
        self.blobs[compute_blob_digest(data)] = data
        return {"digest": compute_blob_digest(data), "size": len(data)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        """Return a token for an identity token, as `docker login` keeps them."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        facts = dict(urllib.parse.parse_qsl(body))
        good = facts.get("grant_type") == "refresh_token" and facts.get("refresh_token") == IDENTITY
        self.server.store.asked.append((self.path, "identity token"))
        self._say(200 if good else 401, {"access_token": TOKEN} if good else {})

    def do_GET(self) -> None:
        """Answer as a registry does."""
        store, path = self.server.store, self.path
        store.asked.append((path, self.headers.get("Authorization", "")))
        store.proxied += self.headers.get_all("Proxy-Authorization", [])
        if store.faults:
            status = store.faults.pop(0)
            self._send(status, b"busy", {"Retry-After": "0"} if status == 429 else {})
        elif store.moved:
            self._send(307, b"", {"Location": store.moved + path})
        elif path.startswith("/token?"):
            self._token(dict(urllib.parse.parse_qsl(path.partition("?")[2])))
        elif path.startswith("/store/"):
            assert not self.headers.get("Authorization"), "a store was given what is for the registry"
            self._data(path.removeprefix("/store/"))
        elif not self._is_let_in():
            realm, scope = store.realm or f"{self.server.url}/token", f"repository:{self._repository()}:pull"
            bearer = f'Bearer realm="{realm}",service="tests",scope="{scope}"'
            challenge = bearer if store.auth == "bearer" else 'Basic realm="tests"'
            self._send(401, b"{}", {"WWW-Authenticate": challenge})
        elif path == "/v2/":
            self._say(200, {})
        else:
            self._image(*self._parts())

    def _image(self, repository: str, what: str, name: str) -> None:
        elsewhere = self.server.store.elsewhere
        if what == "manifests":
            self._manifest(repository, name)
        elif what == "blobs" and elsewhere:
            self._send(307, b"", {"Location": f"{elsewhere}/store/{name}"})
        elif what == "blobs":
            self._data(name)
        else:
            self._say(404, {})

    def _is_let_in(self) -> bool:
        said = self.headers.get("Authorization", "")
        basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return said == {"": said, "bearer": f"Bearer {TOKEN}", "basic": basic}[self.server.store.auth]

    def _token(self, query: dict[str, str]) -> None:
        assert query["service"] == "tests"
        assert query["scope"].startswith("repository:")
        basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        good = self.server.store.is_public or self.headers.get("Authorization") == basic
        self._say(200 if good else 401, {"token": TOKEN} if good else {})

    def _manifest(self, repository: str, name: str) -> None:
        accepted = self.headers.get("Accept", "")
        assert all(kind in accepted for kind in (*INDEX_TYPES, *MANIFEST_TYPES)), accepted
        found = self.server.store.manifests.get((repository, name))
        if found is None:
            self._say(404, {"errors": [{"code": "MANIFEST_UNKNOWN"}]})
            return
        media_type, data = found
        digest = compute_blob_digest(data)
        data = self.server.store.broken.get(digest, data)
        said = self.server.store.lies.get(digest, digest)
        self._send(200, data, {"Content-Type": media_type, "Docker-Content-Digest": said})

    def _data(self, digest: str) -> None:
        data = self.server.store.blobs.get(digest)
        if data is None:
            self._say(404, {})
            return
        self._send(200, self.server.store.broken.get(digest, data), {})

    def _parts(self) -> tuple[str, str, str]:
        parts = self.path.removeprefix("/v2/").split("/")
        return "/".join(parts[:-2]), parts[-2], parts[-1]

    def _repository(self) -> str:
        return self._parts()[0] if self.path != "/v2/" else ""

    def _say(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.server.store.cut and status == 200:
            self.server.store.cut -= 1
            self.close_connection = True
            data = data[: len(data) // 2]
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store: Store) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = store

    @property
    def host(self) -> str:
        """The host, as images name it."""
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://{self.host}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up: they are part of the tests."""


@contextlib.contextmanager
def serve(store: Store) -> Iterator[_Server]:
    """Serve these contents as a registry while the block runs."""
    server = _Server(store)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
