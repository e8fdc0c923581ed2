"""`images pin` and `inspect` against the CNCF distribution registry 3, which `make lab` builds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gangplan.oci.names import DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX
from tests import workspaces
from tests.images import made, real, tokens
from tests.images.registry import IDENTITY, Store
from tests.images.test_inspect import BASE
from tests.images.test_pin import CATALOG, OLD, home, login, pin, workspace  # noqa: F401
from tests.images.test_tls import HOST, certificate, proxy  # noqa: F401
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
NAME = "training/openmpi"
BOTH = CATALOG + "    architectures: [amd64, arm64]\n"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
FOREIGN = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"


@pytest.fixture
def store() -> Store:
    store = Store()
    layers = [made.layer(BASE)]
    both = {
        name: made.image(store, layers, {"User": "1000"}, architecture=name) for name in ("amd64", "arm64")
    }
    made.index(store, NAME, both, "5.0.8", is_signed=False)
    return store


def top(store: Store) -> str:
    """Return the digest of the index that a store has."""
    found = (key[1] for key, value in store.manifests.items() if b'"manifests"' in value[1])
    return next(name for name in found if ":" in name)


def inspected(root: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    done = gangplan("images", "inspect", *words, "--format", "json", "-C", root)
    return done.code, json.loads(done.out) if done.out else {}, done.err


@pytest.mark.parametrize("is_closed", [False, True])
def test_pin_and_inspect(tmp_path: Path, store: Store, home: Path, is_closed: bool) -> None:  # noqa: F811
    auth = real.htpasswd(tmp_path / "registry") if is_closed else None
    said = real.basic() if is_closed else None
    with real.running(tmp_path / "registry", auth=auth, headers=said) as registry:
        registry.push(store, NAME)
        root = workspace(tmp_path, registry.host, BOTH)
        if is_closed:
            refused = pin(root)
            assert refused.code == 3
            assert "docker login" in refused.err
            login(home, registry.host, auth="d3Jvbmc6cGFzc3dvcmQ=")
            assert pin(root).code == 3
            login(home, registry.host)
        moved = pin(root, "--check")
        assert [one.rule for one in moved.findings] == ["image-tag-moved"]
        assert pin(root).code == 0
        text = (root / "images/catalog.yaml").read_text()
        assert f"digest: {top(store)}" in text
        assert f"earlier: [{OLD}]" in text
        assert pin(root, "--check").code == 0
        code, facts, told = inspected(root, "openmpi", "--layers", "--arch", "arm64")
        assert (code, facts["findings"]) == (0, []), told
        assert (facts["digest"], facts["architecture"]) == (top(store), "arm64")
        assert facts["inside"]["mpi"][0]["version"] == "5.0.8"
        assert gangplan("images", "check", "-C", root).code == 0


def test_missing_images_are_reported(tmp_path: Path, store: Store, home: Path) -> None:  # noqa: F811
    with real.running(tmp_path / "registry") as registry:
        registry.push(store, NAME)
        gone = workspace(tmp_path, registry.host, CATALOG.replace('"5.0.8"', '"5.0.9"', 1))
        assert pin(gone).errors() == [("images/catalog.yaml:7:10", "image-tag-gone")]
        mirror = f'[{{source: "{registry.host}/training", mirror: "{registry.host}/mirror"}}]'
        root = workspace(tmp_path, registry.host, mirrors=mirror)
        done = pin(root, "--cluster", "lab")
        assert [one.rule for one in done.findings] == ["image-mirror-differs"]
        workspaces.write(
            root, {"images/catalog.yaml": CATALOG.replace("HOST/training", f"{registry.host}/none")}
        )
        assert [one.rule for one in pin(root).findings] == ["image-tag-gone"]


def grants(*mine: str, everybody: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    return {"reader": mine, "": everybody}


@contextmanager
def closed(folder: Path, store: Store, granted: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Any, Any]]:
    """Run a registry that wants signed tokens with the service that gives them; the image is in the
    registry."""
    with tokens.serve(folder / "tokens", dict(granted)) as service:
        pusher = tokens.Service(service.folder, {"pusher": (NAME,)})
        said = {"Authorization": f"Bearer {pusher.token('pusher', f'repository:{NAME}:pull,push')}"}
        with real.running(folder / "registry", auth=service.auth(), headers=said) as registry:
            registry.push(store, NAME)
            yield registry, service


@pytest.mark.parametrize("how", ["anybody", "password", "identity token"])
def test_every_kind_of_token_works(tmp_path: Path, store: Store, home: Path, how: str) -> None:  # noqa: F811
    granted = grants(everybody=(NAME,)) if how == "anybody" else grants(NAME)
    with closed(tmp_path, store, granted) as (registry, service):
        root = workspace(tmp_path, registry.host, BOTH)
        if how != "anybody":
            refused = pin(root)
            assert refused.code == 3
            assert f"{registry.host} does not let us read {registry.host}/{NAME}" in refused.err
            assert "docker login" in refused.err
        if how == "password":
            login(home, registry.host)
        if how == "identity token":
            login(home, registry.host, auth="PHRva2VuPjo=", identitytoken=IDENTITY)
        done = pin(root)
        assert done.code == 0, done.err
        assert top(store) in (root / "images/catalog.yaml").read_text()
        code, facts, told = inspected(root, "openmpi", "--layers")
        assert (code, facts["findings"]) == (0, []), told
        scopes = {one.get("scope") for one in service.asked}
        assert scopes == {f"repository:{NAME}:pull"}


def test_wrong_tokens_are_refused(tmp_path: Path, store: Store, home: Path) -> None:  # noqa: F811
    with closed(tmp_path, store, grants(NAME)) as (registry, service):
        root = workspace(tmp_path, registry.host, BOTH)
        login(home, registry.host, auth="d3Jvbmc6cGFzc3dvcmQ=")
        assert pin(root).code == 3
        login(home, registry.host)
        service.lifetime_s = -120
        late = pin(root)
        assert late.code == 3
        assert "does not let us read" in late.err
        service.lifetime_s = 300
        service.make_key()  # the registry still trusts the old one
        assert pin(root).code == 3


def test_a_certificate_of_the_site_is_trusted_once_it_is_named(
    tmp_path: Path,
    store: Store,
    home: Path,  # noqa: F811
    certificate: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    auth = real.htpasswd(tmp_path / "registry")
    with (
        real.running(
            tmp_path / "registry", auth=auth, certificate=certificate, headers=real.basic()
        ) as registry,
        proxy(registry.port) as (address, asked),
    ):
        registry.push(store, NAME)
        monkeypatch.setenv("https_proxy", address)
        root = workspace(tmp_path, HOST, BOTH)
        login(home, HOST)
        refused = pin(root)
        assert refused.code == 3
        assert "SSL_CERT_FILE" in refused.err
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        done = pin(root)
        assert done.code == 0, done.err
        assert top(store) in (root / "images/catalog.yaml").read_text()
        assert asked[-1].startswith(f"CONNECT {HOST}:443 ")


def test_tls_on_a_local_registry_is_reported(
    tmp_path: Path,
    store: Store,
    home: Path,  # noqa: F811
    certificate: Path,  # noqa: F811
) -> None:
    with real.running(tmp_path / "registry", certificate=certificate) as registry:
        root = workspace(tmp_path, registry.host, BOTH)
        done = pin(root)
    assert done.code == 3
    assert "speaks TLS" in done.err


def test_a_pull_through_mirror_is_used(tmp_path: Path, store: Store, home: Path) -> None:  # noqa: F811
    with ExitStack() as upstream:
        registry = upstream.enter_context(real.running(tmp_path / "registry"))
        registry.push(store, NAME)
        with real.running(tmp_path / "mirror", upstream=f"http://{registry.host}") as mirror:
            rule = f'[{{source: "{registry.host}", mirror: "{mirror.host}"}}]'
            root = workspace(tmp_path, registry.host, BOTH, mirrors=rule)
            # By tag through the mirror, and by digest from both.
            through = pin(root, "--via", "lab")
            assert through.code == 0, through.err
            assert top(store) in (root / "images/catalog.yaml").read_text()
            assert pin(root, "--cluster", "lab", "--check").code == 0
            code, facts, told = inspected(root, "openmpi", "--cluster", "lab", "--layers")
            assert (code, facts["findings"]) == (0, []), told
            # A moved tag is seen through the mirror at once.
            again = Store()
            layers = [made.layer(BASE | {"etc/release": "2"})]
            both = {name: made.image(again, layers, architecture=name) for name in ("amd64", "arm64")}
            new = made.index(again, NAME, both, "5.0.8", is_signed=False)
            registry.push(again, NAME)
            moved = pin(root, "--via", "lab", "--check")
            assert [one.rule for one in moved.findings] == ["image-tag-moved"]
            assert new in moved.err
            # Without the registry that it mirrors, the mirror still has what was pulled.
            upstream.close()
            assert inspected(root, "openmpi", "--cluster", "lab")[0] == 0
            assert pin(root, "--check").code == 3


def docker(store: Store, layers: list[bytes], architecture: str = "amd64") -> dict[str, Any]:
    """Return an image in Docker's second format."""
    body = made.image(store, layers, {"User": "1000"}, architecture)
    body["mediaType"] = DOCKER_MANIFEST
    body["config"]["mediaType"] = DOCKER_CONFIG
    for one in body["layers"]:
        one["mediaType"] = DOCKER_LAYER
    return body


def packed(data: bytes) -> bytes:
    """Pack bytes with zstd."""
    try:
        return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("no zstd, which packs the layer")


def test_images_in_docker_s_format_are_read(tmp_path: Path, home: Path) -> None:  # noqa: F811
    store = Store()
    above = made.layer(
        {
            "opt/openmpi/lib/pkgconfig/.wh.ompi.pc": "",
            "usr/share/openmpi/other.pc": "Version: 4.1.8\n",
            "usr/lib/pkgconfig/ompi.pc": "=> usr/share/openmpi/other.pc",
        }
    )
    empty = made.layer({})
    images = {name: docker(store, [made.layer(BASE), empty, above], name) for name in ("amd64", "arm64")}
    entries = []
    for architecture, body in images.items():
        data = json.dumps(body).encode()
        platform = {"os": "linux", "architecture": architecture}
        digest = store.push(NAME, "", data)
        entries.append(
            {"mediaType": DOCKER_MANIFEST, "digest": digest, "size": len(data), "platform": platform}
        )
    listed = {"schemaVersion": 2, "mediaType": DOCKER_LIST, "manifests": entries}
    digest = store.push(NAME, "5.0.8", listed)
    with real.running(tmp_path / "registry") as registry:
        registry.push(store, NAME)
        root = workspace(tmp_path, registry.host, BOTH)
        assert pin(root).code == 0
        assert digest in (root / "images/catalog.yaml").read_text()
        code, facts, told = inspected(root, "openmpi", "--layers")
    assert code == 1, told
    # The removed record does not count; the one that is a hard link to a file of its layer does.
    assert [one["version"] for one in facts["inside"]["mpi"] if one["version"]] == ["4.1.8"]
    assert [one["rule"] for one in facts["findings"]] == ["image-differs"]


@pytest.mark.parametrize("kind", ["zstd", "foreign", "index of an index"])
def test_layers_of_other_kinds_are_handled(tmp_path: Path, home: Path, kind: str) -> None:  # noqa: F811
    store = Store()
    body = made.image(store, [made.layer(BASE)], {"User": "1000"})
    if kind == "zstd":
        layer = store.blob(packed(made.layer({"usr/lib/libcudart.so.12.4.127": "x"})))
        body["layers"].append(layer | {"mediaType": made.LAYER + "+zstd"})
    if kind == "foreign":
        other = {"digest": "sha256:" + "ab" * 32, "size": 7, "urls": ["https://elsewhere.example.com/layer"]}
        body = docker(store, [made.layer(BASE)])
        body["layers"].insert(0, other | {"mediaType": FOREIGN})
    if kind == "index of an index":
        inner = made.index(store, NAME, {"amd64": body}, is_signed=False)
        data = store.manifests[NAME, inner][1]
        entry = {"mediaType": OCI_INDEX, "digest": inner, "size": len(data)}
        outer = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}
        digest = store.push(NAME, "5.0.8", outer)
    else:
        digest = store.push(NAME, "5.0.8", body)
    with real.running(tmp_path / "registry") as registry:
        registry.push(store, NAME)
        root = workspace(tmp_path, registry.host)
        done = pin(root)
        assert done.code == 0, done.err
        assert digest in (root / "images/catalog.yaml").read_text()
        code, facts, told = inspected(root, "openmpi", "--layers")
    wanted = {"zstd": ["image-unread"], "foreign": ["image-unread"], "index of an index": []}[kind]
    assert [one["rule"] for one in facts["findings"]] == wanted, told
    assert code == 0, told
    assert facts["inside"]["mpi"][0]["version"] == "5.0.8"
