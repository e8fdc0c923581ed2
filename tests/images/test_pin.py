"""`images pin` against a registry on this machine: tags, mirrors, credentials, and errors."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from gangplan.errors import ToolError
from gangplan.oci.auth import parse_registry_challenge
from gangplan.oci.http import send_registry_request
from gangplan.oci.names import (
    DOCKER_LIST,
    DOCKER_MANIFEST,
    HUB_SERVERS,
    OCI_INDEX,
    SCHEMA_1_MANIFEST,
    parse_registry_image_reference,
)
from gangplan.oci.registry import RegistryClient
from tests import workspaces
from tests.images import made
from tests.images.registry import IDENTITY, PASSWORD, USER, Store, serve
from tests.workspaces import Outcome, gangplan

OLD = "sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
CATALOG = """\
# What specs may run.  Two blanks, and a tab behind this:\t
apiVersion: gangplan.dev/v1
kind: ImageCatalog
images:
  openmpi:   # the first
    repository: HOST/training/openmpi
    tag: "5.0.8"
    digest: sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee # of May
    mpi: {implementation: OpenMPI, version: "5.0.8"}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Remove the credentials and proxies of the user, let retries not wait, and return Docker's folder."""
    for name in (
        "REGISTRY_AUTH_FILE",
        "XDG_RUNTIME_DIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "docker"
    folder.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    monkeypatch.setattr("gangplan.oci.http.WAITS_S", (0.0, 0.0))
    return folder


@pytest.fixture
def store() -> Store:
    store = Store()
    store.push("training/openmpi", "5.0.8", made.image(store))
    return store


def workspace(tmp_path: Path, host: str, catalog: str = CATALOG, **cluster: str) -> Path:
    root = tmp_path / "workspace"
    files = workspaces.STOCK | {"images/catalog.yaml": catalog.replace("HOST", host)}
    lines = "".join(f"{name}: {value}\n" for name, value in cluster.items())
    files["overlays/lab/cluster.yaml"] = workspaces.CLUSTER + lines
    return workspaces.write(root, files)


def pin(root: Path, *flags: str) -> Outcome:
    return gangplan("images", "pin", "-C", root, *flags)


def login(folder: Path, host: str, **entry: str) -> None:
    auth = entry or {"auth": base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}
    (folder / "config.json").write_text(json.dumps({"auths": {host: auth}}))


def test_a_tag_that_moved_is_written_and_nothing_else_changes(tmp_path: Path, store: Store) -> None:
    with serve(store) as server:
        root = workspace(tmp_path, server.host)
        before = (root / "images/catalog.yaml").read_bytes()
        digest = next(key[1] for key in store.manifests if key[1].startswith("sha256:"))
        shown = pin(root, "--check")
        assert shown.code == 1
        assert (root / "images/catalog.yaml").read_bytes() == before
        assert [(one.place, one.rule) for one in shown.findings] == [
            ("images/catalog.yaml:8:13", "image-tag-moved")
        ]
        assert f"-    digest: {OLD} # of May\n+    digest: {digest} # of May\n" in shown.out
        assert pin(root, "--dry-run").code == 1
        done = pin(root)
        assert (done.code, done.findings) == (0, []), done.err
        line, kept = f"{OLD} # of May\n", f"{digest} # of May\n    earlier: [{OLD}]\n"
        assert (root / "images/catalog.yaml").read_bytes() == before.replace(line.encode(), kept.encode())
        again = pin(root, "--check")
        assert (again.code, again.findings) == (0, [])


def test_the_digest_of_an_index_is_pinned(tmp_path: Path) -> None:
    store = Store()
    both = {name: made.image(store, architecture=name) for name in ("amd64", "arm64")}
    digest = made.index(store, "training/openmpi", both, "5.0.8")
    with serve(store) as server:
        root = workspace(tmp_path, server.host, CATALOG + "    architectures: [amd64, arm64]\n")
        assert pin(root).code == 0
        assert f"digest: {digest} # of May" in (root / "images/catalog.yaml").read_text()


def test_a_missing_architecture_is_reported(tmp_path: Path, store: Store) -> None:
    with serve(store) as server:
        root = workspace(tmp_path, server.host, CATALOG + "    architectures: [amd64, arm64]\n")
        done = pin(root)
    assert done.code == 1
    assert [(one.place, one.rule) for one in done.findings] == [
        ("images/catalog.yaml:10:20", "image-architectures")
    ]
    assert "is to be for arm64" in done.err


def test_a_missing_tag_is_reported(tmp_path: Path, store: Store) -> None:
    with serve(store) as server:
        root = workspace(tmp_path, server.host, CATALOG.replace('"5.0.8"', '"5.0.9"', 1))
        done = pin(root)
    assert (done.code, done.errors()) == (1, [("images/catalog.yaml:7:10", "image-tag-gone")])


def test_without_a_tag_the_digest_is_looked_up(tmp_path: Path, store: Store) -> None:
    with serve(store) as server:
        root = workspace(tmp_path, server.host, CATALOG.replace('    tag: "5.0.8"\n', ""))
        done = pin(root)
    assert [one.rule for one in done.findings] == ["image-tag-none", "image-digest-gone"]
    assert done.code == 1


def test_the_mirror_of_a_cluster_must_have_the_same_build(tmp_path: Path, store: Store) -> None:
    mirror = Store()
    with serve(store) as server, serve(mirror) as other:
        rule = f'[{{source: "{server.host}", mirror: "{other.host}/all"}}]'
        root = workspace(tmp_path, server.host, mirrors=rule)
        assert pin(root).code == 0
        done = pin(root, "--cluster", "lab")
        assert [one.rule for one in done.findings] == ["image-mirror-differs"]
        assert done.code == 1
        mirror.push("all/training/openmpi", "5.0.8", made.image(mirror))
        assert pin(root, "--cluster", "lab", "--check").code == 0
        # Where the registry itself cannot be reached, tags are looked up in the mirror.
        store.manifests.clear()
        assert pin(root, "--via", "lab", "--check").code == 0


def test_the_build_of_a_cluster_is_pinned_for_that_cluster(tmp_path: Path, store: Store) -> None:
    mirror = Store()
    own = mirror.push("own/openmpi", "5.0.8", made.image(mirror, config={"User": "7"}))
    with serve(store) as server, serve(mirror) as other:
        lines = f'    clusters: {{lab: {{repository: "{other.host}/own/openmpi", digest: "{OLD}"}}}}\n'
        root = workspace(tmp_path, server.host, CATALOG + lines)
        assert pin(root, "--cluster", "lab").code == 0
        text = (root / "images/catalog.yaml").read_text()
    assert f'digest: "{own}"}}}}}}' in text or f"digest: {own}}}" in text
    assert text.count(OLD) == text.count(f"    earlier: [{OLD}]\n") == 1


def test_a_token_for_anyone_is_enough(tmp_path: Path, store: Store) -> None:
    store.auth, store.is_public = "bearer", True
    with serve(store) as server:
        assert pin(workspace(tmp_path, server.host)).code == 0
    paths = [path.partition("?")[0] for path, _ in store.asked]
    assert paths[:4] == [
        "/v2/",
        "/v2/training/openmpi/manifests/5.0.8",
        "/token",
        "/v2/training/openmpi/manifests/5.0.8",
    ]


@pytest.mark.parametrize("auth", ["bearer", "basic"])
def test_credentials_of_docker_login_are_used(tmp_path: Path, store: Store, home: Path, auth: str) -> None:
    store.auth = auth
    with serve(store) as server:
        root = workspace(tmp_path, server.host)
        refused = pin(root)
        assert refused.code == 3
        assert "docker login" in refused.err
        login(home, server.host)
        assert pin(root).code == 0
    assert PASSWORD not in refused.err


def test_credentials_of_a_repository_win_over_those_of_its_host(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.auth = "basic"
    with serve(store) as server:
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        wrong = base64.b64encode(b"other:wrong").decode()
        entries = {f"{server.host}/training": {"auth": auth}, server.host: {"auth": wrong}}
        file = tmp_path / "auth.json"
        file.write_text(json.dumps({"auths": entries}))
        monkeypatch.setenv("REGISTRY_AUTH_FILE", str(file))
        assert pin(workspace(tmp_path, server.host)).code == 0


def test_an_identity_token_is_exchanged(tmp_path: Path, store: Store, home: Path) -> None:
    store.auth = "bearer"
    with serve(store) as server:
        login(home, server.host, identitytoken=IDENTITY)
        assert pin(workspace(tmp_path, server.host)).code == 0
    assert ("/token", "identity token") in store.asked


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a credential helper that records what it is asked for, and return its folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker-credential-vault"
    answer = json.dumps({"ServerURL": "", "Username": USER, "Secret": PASSWORD})
    program.write_text(f"#!/bin/sh\n[ $1 = get ] && cat > {folder}/asked && echo '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


def test_a_credential_helper_is_asked(tmp_path: Path, store: Store, home: Path, helper: Path) -> None:
    store.auth = "basic"
    with serve(store) as server:
        (home / "config.json").write_text(json.dumps({"credHelpers": {server.host: "vault"}}))
        assert pin(workspace(tmp_path, server.host)).code == 0
        assert (helper / "asked").read_text() == server.host
        (home / "config.json").write_text(json.dumps({"credsStore": "vault"}))
        assert pin(workspace(tmp_path, server.host)).code == 0
        assert (helper / "asked").read_text() == server.host


@pytest.mark.parametrize("name", ["../evil", "a b", "x;y", "-rf"])
def test_invalid_names_of_helpers_are_refused(tmp_path: Path, store: Store, home: Path, name: str) -> None:
    store.auth = "basic"
    (home / "config.json").write_text(json.dumps({"credsStore": name}))
    with serve(store) as server:
        done = pin(workspace(tmp_path, server.host))
    assert (done.code, "is not the name of a credential helper" in done.err) == (3, True)


@pytest.mark.parametrize("text", ["[]", "{", '{"auths": {"HOST": {"auth": "%%%"}}}'])
def test_damaged_credentials_are_reported(tmp_path: Path, store: Store, home: Path, text: str) -> None:
    store.auth = "basic"
    with serve(store) as server:
        (home / "config.json").write_text(text.replace("HOST", server.host))
        done = pin(workspace(tmp_path, server.host))
    assert done.code == 3
    assert "docker" in done.err


def test_credentials_go_to_no_other_host(tmp_path: Path, store: Store, home: Path) -> None:
    """A redirect often leads to a store of blobs; registry.py fails if Authorization is sent there."""
    store.auth, elsewhere = "basic", Store(blobs=store.blobs)
    with serve(elsewhere) as behind, serve(store) as server:
        store.elsewhere = behind.url
        login(home, server.host)
        assert pin(workspace(tmp_path, server.host)).code == 0
    assert [said for path, said in elsewhere.asked if path.startswith("/store/")] == [""]


def test_a_busy_registry_is_asked_again(tmp_path: Path, store: Store) -> None:
    with serve(store) as server:
        root = workspace(tmp_path, server.host)
        store.faults = [503, 429]
        assert pin(root, "--check").code == 1
        store.faults = [500] * 3
        done = pin(root, "--check")
        assert (done.code, "nothing was written" in done.err, "500" in done.err) == (3, True, True)


def test_an_answer_that_breaks_off_is_asked_for_again(tmp_path: Path, store: Store) -> None:
    with serve(store) as server:
        root = workspace(tmp_path, server.host)
        store.cut = 1
        assert pin(root).code == 0


@pytest.mark.parametrize("fault", ["lies", "broken"])
def test_bytes_with_another_digest_are_refused(tmp_path: Path, store: Store, fault: str) -> None:
    digest = next(key[1] for key in store.manifests if key[1].startswith("sha256:"))
    if fault == "lies":
        store.lies[digest] = OLD
    else:
        store.broken[digest] = b'{"schemaVersion": 2}'
    with serve(store) as server:
        root = workspace(tmp_path, server.host)
        before = (root / "images/catalog.yaml").read_bytes()
        done = pin(root)
        assert done.code == 3
        assert "its bytes have" in done.err
        assert (root / "images/catalog.yaml").read_bytes() == before


def test_nothing_is_written_if_one_image_cannot_be_read(tmp_path: Path, store: Store) -> None:
    lost = (
        CATALOG
        + '  lost: {repository: "127.0.0.1:1/lost", tag: a, digest: "'
        + OLD
        + '", framework: torch}\n'
    )
    with serve(store) as server:
        root = workspace(tmp_path, server.host, lost)
        before = (root / "images/catalog.yaml").read_bytes()
        done = pin(root)
        assert done.code == 3
        assert "image 'lost': http://127.0.0.1:1/v2/ cannot be read" in done.err
        assert (root / "images/catalog.yaml").read_bytes() == before
        assert pin(root, "openmpi").code == 0


def test_unknown_images_and_clusters_are_refused(tmp_path: Path) -> None:
    root = workspace(tmp_path, "registry.example.com")
    assert "the catalog has no image 'openmp'" in pin(root, "openmp").err
    assert pin(root, "openmp").code == 2
    assert pin(root, "--cluster", "labb").code == 2


@pytest.mark.parametrize(
    ("body", "media_type", "says"),
    [
        (b"[]", "", "not a JSON object"),
        (b"{" * 3000, "", "not a JSON object"),
        (b'{"manifests": {}}', OCI_INDEX, "lists nothing"),
        (b'{"manifests": [], "layers": []}', OCI_INDEX, "both an index and an image"),
        (
            b'{"config": {"digest": "sha256:../../x", "size": 1}, "layers": []}',
            DOCKER_MANIFEST,
            "not a SHA-256 digest",
        ),
        (
            b'{"config": {"digest": "' + OLD.encode() + b'", "size": 1e99}, "layers": []}',
            DOCKER_MANIFEST,
            "bytes",
        ),
        (b'{"layers": []}', DOCKER_MANIFEST, "not an image"),
        (b'{"manifests": [7]}', DOCKER_LIST, "not a SHA-256 digest"),
        (b'{"schemaVersion": 1}', SCHEMA_1_MANIFEST + "+prettyjws", "Docker's first format"),
        (b"x" * ((4 << 20) + 1), OCI_INDEX, "at most 4194304 are read"),
    ],
)
def test_invalid_manifests_are_refused(tmp_path: Path, body: bytes, media_type: str, says: str) -> None:
    store = Store()
    store.push("training/openmpi", "5.0.8", body, media_type or OCI_INDEX)
    with serve(store) as server:
        done = pin(workspace(tmp_path, server.host))
    assert (done.code, says in done.err) == (3, True), done.err


def test_endless_and_invalid_redirects_are_refused(store: Store) -> None:
    with serve(store) as server:
        store.moved = server.url
        with pytest.raises(ToolError, match="more than 5 times"):
            send_registry_request(f"{server.url}/v2/", most=100)
        assert len(store.asked) == 6
        store.moved = "ftp://example.com"
        with pytest.raises(ToolError, match="not an address"):
            send_registry_request(f"{server.url}/v2/", most=100)


def test_a_token_service_without_encryption_is_refused(store: Store) -> None:
    store.auth, store.realm = "bearer", "http://tokens.example.com/token"
    with serve(store) as server, pytest.raises(ToolError, match="without encryption"):
        RegistryClient({}).manifest(parse_registry_image_reference(f"{server.host}/training/openmpi:5.0.8"))


def test_a_server_that_is_not_a_registry_is_reported(store: Store) -> None:
    with serve(store) as server:
        store.faults = [404]
        with pytest.raises(ToolError, match="is not a registry: it answers 404"):
            RegistryClient({}).manifest(
                parse_registry_image_reference(f"{server.host}/training/openmpi:5.0.8")
            )


@pytest.mark.parametrize(
    ("text", "kind", "facts"),
    [
        (
            'Bearer realm="https://a/b",service="s",scope="repository:x:pull,push"',
            "bearer",
            {"realm": "https://a/b", "service": "s", "scope": "repository:x:pull,push"},
        ),
        ("BEARER realm=https://a", "bearer", {"realm": "https://a"}),
        ('Basic realm="with \\" in it"', "basic", {"realm": 'with " in it'}),
        ("Negotiate", "negotiate", {}),
    ],
)
def test_challenges_are_parsed(text: str, kind: str, facts: dict[str, str]) -> None:
    assert parse_registry_challenge(text) == (kind, facts)


def test_a_cluster_that_cannot_be_read_is_not_called_unknown(tmp_path: Path, store: Store) -> None:
    with serve(store) as server:
        root = workspace(tmp_path, server.host, mirrors="[{source: a.example.com}]")
        done = pin(root, "--via", "lab")
        assert done.code == 2
        assert "fatal: overlays/lab/cluster.yaml:" in done.err
        assert "there is no cluster 'lap'" in pin(root, "--via", "lap").err


def test_a_mirror_may_be_a_whole_registry(tmp_path: Path, store: Store) -> None:
    with serve(store) as server, serve(store) as other:
        rule = f'[{{source: "{server.host}", mirror: "{other.host}"}}]'
        root = workspace(tmp_path, server.host, mirrors=rule)
        assert pin(root, "--via", "lab").code == 0
        assert pin(root, "--cluster", "lab", "--check").code == 0
        rule = f'[{{source: "{server.host}/training", mirror: "{other.host}"}}]'
        broken = workspace(tmp_path / "broken", server.host, mirrors=rule)
        done = gangplan("validate", "-C", broken)
        assert done.code == 2
        assert f"such as {other.host}/training, or a source without one" in done.err


@pytest.mark.parametrize("depth", [1, 2])
def test_an_index_without_platforms_is_searched(tmp_path: Path, depth: int) -> None:
    store = Store()
    top = made.image(store)
    for level in range(depth):
        data = json.dumps(top).encode()
        entry = {"mediaType": top["mediaType"], "digest": store.push("training/openmpi", "", data)}
        top = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry | {"size": len(data)}]}
        assert level < depth
    digest = store.push("training/openmpi", "5.0.8", top)
    with serve(store) as server:
        root = workspace(tmp_path, server.host)
        done = pin(root)
        assert (done.code, done.findings) == (0, []), done.err
        assert f"digest: {digest} # of May" in (root / "images/catalog.yaml").read_text()
        other = workspace(tmp_path / "other", server.host, CATALOG + "    architectures: [arm64]\n")
        assert [one.rule for one in pin(other).findings] == ["image-architectures"]


@pytest.mark.parametrize(
    ("text", "server", "path"),
    [
        ("docker.io/library/debian:13", "registry-1.docker.io", "library/debian"),
        ("docker.io/debian", "registry-1.docker.io", "library/debian"),
        ("index.docker.io/nvidia/cuda", "registry-1.docker.io", "nvidia/cuda"),
        ("registry.example.com/debian", "registry.example.com", "debian"),
    ],
)
def test_docker_hub_is_asked_where_it_answers(text: str, server: str, path: str) -> None:
    reference = parse_registry_image_reference(text)
    assert (reference.server, reference.server_path) == (server, path)
    assert str(reference) == text


def test_an_image_of_docker_hub_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(auth="bearer", is_public=True)
    digest = store.push("library/debian", "5.0.8", made.image(store))
    with serve(store) as server:
        monkeypatch.setitem(HUB_SERVERS, "docker.io", server.host)
        catalog = CATALOG.replace("HOST/training/openmpi", "docker.io/debian")
        root = workspace(tmp_path, "", catalog)
        done = pin(root)
    assert done.code == 0, done.err
    assert digest in (root / "images/catalog.yaml").read_text()


def test_images_whose_registry_fails_alike_share_a_line(tmp_path: Path) -> None:
    store = Store(faults=[404, 404])
    with serve(store) as server:
        more = (
            CATALOG.split("images:\n")[1]
            .replace("  openmpi:", "  second:")
            .replace(OLD, f"sha256:{'1' * 64}")
        )
        done = pin(workspace(tmp_path, server.host, CATALOG + more))
    assert (done.code, f"images 'openmpi', 'second': {server.host} is not a registry" in done.err) == (
        3,
        True,
    )
