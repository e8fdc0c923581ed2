"""Registries behind TLS and a proxy, as in companies: certificates of the site's own, CONNECT."""

from __future__ import annotations

import base64
import contextlib
import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gangplan.errors import ToolError
from gangplan.oci.http import send_registry_request
from gangplan.oci.names import parse_registry_image_reference
from gangplan.oci.registry import RegistryClient
from tests.images import made
from tests.images.registry import Store, serve
from tests.images.test_pin import home  # noqa: F401

HOST = "registry.example.com"
pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl, which makes the certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a certificate of HOST that no system trusts, with its key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    key, file = folder / "key.pem", folder / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-config", "/dev/null", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    done = subprocess.run(
        [*words, "-days", "2", "-keyout", key, "-out", file], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"openssl: {done.stderr.decode()[-200:]}")
    file.write_text(file.read_text() + key.read_text())
    return file


@contextlib.contextmanager
def proxy(target: int) -> Iterator[tuple[str, list[str]]]:
    """Run a proxy that leads every CONNECT to a port of this machine; yield its address and its requests."""
    asked: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def received(side: socket.socket) -> bytes:
        try:
            return side.recv(65536)
        except ConnectionResetError:
            return b""

    def pump(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", target)) as server:
            asked.append(client.recv(4096).decode())
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            while True:
                for one in select.select([client, server], [], [], 5)[0] or [None]:
                    data = received(one) if one else b""
                    if not data:
                        return
                    (server if one is client else client).sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=pump, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.close()


@pytest.fixture
def store() -> Store:
    store = Store()
    store.push("training/openmpi", "1", made.image(store))
    return store


@pytest.fixture
def behind(store: Store, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Put the registry behind TLS and a proxy; yield the requests that the proxy got."""
    with serve(store) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with proxy(server.server_address[1]) as (address, asked):
            monkeypatch.setenv("https_proxy", address)
            yield asked


def test_a_certificate_of_the_site_is_trusted_once_it_is_named(
    behind: list[str], certificate: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = parse_registry_image_reference(f"{HOST}/training/openmpi:1")
    with pytest.raises(ToolError, match="certificate that is not trusted"):
        RegistryClient({}).manifest(reference)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    found = RegistryClient({}).manifest(reference)
    assert ("training/openmpi", found.digest) in store.manifests
    assert behind[-1].startswith(f"CONNECT {HOST}:443 ")


def test_the_login_of_a_proxy_is_sent_with_connect(
    behind: list[str], certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("https_proxy", os.environ["https_proxy"].replace("//", "//anna:p%40ss%3A@"))
    send_registry_request(f"https://{HOST}/v2/", most=1000)
    login = base64.b64encode(b"anna:p@ss:").decode()
    assert f"\r\nProxy-Authorization: Basic {login}\r\n" in behind[-1]


def test_the_login_of_a_proxy_is_sent_with_plain_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(auth="basic")
    with serve(store) as server:
        monkeypatch.setenv("http_proxy", server.url.replace("//", "//anna:secret@"))
        send_registry_request(f"http://{HOST}/v2/", {"Authorization": "Basic x"}, most=1000)
    login = base64.b64encode(b"anna:secret").decode()
    assert store.proxied == [f"Basic {login}"]
    assert store.asked == [(f"http://{HOST}/v2/", "Basic x")]


@pytest.mark.parametrize("scheme", ["https", "socks5"])
def test_a_proxy_that_is_not_plain_http_is_refused(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("https_proxy", f"{scheme}://anna:secret@127.0.0.1:1")
    with pytest.raises(ToolError) as caught:
        send_registry_request(f"https://{HOST}/v2/", most=1000)
    assert f"proxy {scheme}://127.0.0.1:1 is not one that gangplan can use" in str(caught.value)
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("https_proxy", "anna:secret@127.0.0.1:door")
    with pytest.raises(ToolError, match=r"^127\.0\.0\.1:door has no port that there is"):
        send_registry_request(f"https://{HOST}/v2/", most=1000)


def test_redirects_to_plain_http_are_refused(
    behind: list[str], certificate: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    store.moved = "http://plain.example.com"
    with pytest.raises(ToolError, match="without encryption"):
        send_registry_request(f"https://{HOST}/v2/", most=100)
