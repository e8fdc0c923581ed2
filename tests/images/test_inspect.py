"""`images inspect`: the contents of images in layouts and in a registry, also of hostile ones."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import ToolError
from gangplan.oci.layers import ImageFiles
from gangplan.oci.names import OCI_INDEX, compute_blob_digest
from gangplan.oci.tar import iterate_tar_entries
from tests import workspaces
from tests.images import made
from tests.images.registry import Store, serve
from tests.images.test_pin import home  # noqa: F401  no credentials, no waiting
from tests.workspaces import Outcome, gangplan

PASSWD = "root:x:0:0:root:/root:/bin/sh\nmpiuser:x:1000:1000::/home/mpiuser:/bin/sh\n"
BASE: dict[str, str | bytes | None] = {
    "etc/": None,
    "etc/passwd": PASSWD,
    "lib": "-> usr/lib",
    "usr/sbin/sshd": b"\x7fELF",
    "usr/lib/x86_64-linux-gnu/libmpi.so.40": b"\x7fELF",
    "usr/bin/ompi_info": b"\x7fELF",
    "opt/openmpi/lib/pkgconfig/ompi.pc": "Name: Open MPI\nVersion: 5.0.8\n",
    "home/mpiuser/.sshd_config": "# ours\nPort 2222\nPermitRootLogin no\nport 22\n",
}
DPKG = "Package: openmpi-bin\nStatus: install ok installed\nVersion: 4.1.4-3+b1\n\nPackage: x\n"
CATALOG = """\
apiVersion: gangplan.dev/v1
kind: ImageCatalog
images:
  openmpi:
    repository: HOST/training/openmpi
    tag: "5.0.8"
    digest: sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee
    mpi: {implementation: OpenMPI, version: "5.0.8"}
"""


def inspect(
    tmp_path: Path, *layers: dict[str, Any] | bytes, catalog: str = "", config: Any = None
) -> Outcome:
    """Run `images inspect` on a layout with these layers, and compare it with the catalog."""
    store = Store()
    packed = [one if isinstance(one, bytes) else made.layer(one) for one in layers]
    folder = made.layout(tmp_path / "layout", store, made.image(store, packed, config))
    return look(tmp_path, f"oci:{folder}", "--image", "openmpi", catalog=catalog)


def look(tmp_path: Path, *words: str, catalog: str = "", host: str = "registry.example.com") -> Outcome:
    files = workspaces.STOCK | {"images/catalog.yaml": (CATALOG + catalog).replace("HOST", host)}
    root = workspaces.write(tmp_path / "workspace", files)
    return gangplan("images", "inspect", *words, "-C", root)


def test_an_image_that_matches_the_catalog_has_no_findings(tmp_path: Path) -> None:
    config = {
        "User": "1000",
        "Env": ["PATH=/opt/openmpi/bin:/usr/bin", "EMPTY"],
        "Entrypoint": ["/usr/bin/tini", "--"],
        "ExposedPorts": {"2222/tcp": {}},
        "Labels": {"org.opencontainers.image.title": "Open MPI"},
    }
    done = inspect(tmp_path, BASE, config=config)
    assert (done.code, done.findings) == (0, []), done.err
    lines = {line.split()[0]: line.split(None, 1)[1] for line in done.out.splitlines()}
    assert lines["user"] == "1000"
    assert lines["entrypoint"] == "/usr/bin/tini --"
    assert lines["ports"] == "2222/tcp"
    assert lines["labels"] == "org.opencontainers.image.title=Open MPI"
    assert "mpi           OpenMPI 5.0.8 by /opt/openmpi/lib/pkgconfig/ompi.pc" in done.out
    assert "users         root (0), mpiuser (1000)" in done.out


@pytest.mark.parametrize(
    ("change", "catalog", "rule", "says"),
    [
        ({"opt/openmpi/lib/pkgconfig/ompi.pc": "Version: 4.1.8\n"}, "", "image-differs", "has OpenMPI 4.1.8"),
        ({"home/mpiuser/.sshd_config": "Port 22\n"}, "", "image-differs", "has Port 22 in /home/mpiuser"),
        ({"home/mpiuser/.sshd_config": "PermitRootLogin yes\n"}, "", "sshd-setting", "permitrootlogin yes"),
        ({"home/mpiuser/.wh..sshd_config": ""}, "", "image-differs", "no such file"),
        ({"usr/sbin/.wh..wh..opq": ""}, "", "image-differs", "no such file"),
        ({"etc/passwd": "root:x:0:0::/root:/bin/sh\n"}, "", "image-user-unknown", "no user 1000"),
        (
            {"etc/ssh/ssh_host_rsa_key": "-----BEGIN"},
            "",
            "image-holds-key",
            "/etc/ssh/ssh_host_rsa_key in layer 2",
        ),
        ({"root/.ssh/id_ed25519": "-----BEGIN"}, "", "image-holds-key", "/root/.ssh/id_ed25519"),
        ({}, '    cuda: "12.8"\n    cudaCompat: true\n', "image-differs", "no /usr/local/cuda/compat"),
        (
            {"usr/local/cuda-12.4/version.json": '{"cuda": {"version": "12.4.1"}}'},
            '    cuda: "12.8"\n',
            "image-differs",
            "has CUDA 12.4",
        ),
        (
            {"usr/lib/libcudart.so.12.4.127": "x"},
            "",
            "image-differs",
            "has CUDA 12.4, and the catalog says no cuda",
        ),
        (
            {"opt/rocm-6.4.1/.info/version": "6.4.1-83\n"},
            '    rocm: "6.3"\n',
            "image-differs",
            "has ROCM 6.4",
        ),
        (
            {"opt/py/lib/torch-2.9.0+cu128.dist-info/METADATA": "x"},
            '    framework: torch\n    frameworkVersion: "2.8"\n',
            "image-differs",
            "has torch 2.9.0+cu128",
        ),
    ],
)
def test_differences_from_the_catalog_are_reported(
    tmp_path: Path, change: dict[str, Any], catalog: str, rule: str, says: str
) -> None:
    done = inspect(tmp_path, BASE, change, catalog=catalog)
    assert done.code == 1, done.err
    assert {one.rule for one in done.findings} == {rule}
    assert says in done.err
    assert all(one.place.startswith("images/catalog.yaml:") for one in done.findings)


@pytest.mark.parametrize(
    ("user", "is_right"),
    [
        ("", True),
        ("1000", True),
        ("1000:0", True),
        ("mpiuser", True),
        ("somebody", True),  # no entry in /etc/passwd says who that is
        ("0", False),
        ("00:1000", False),
        ("root", False),
        ("toor", False),
        ("1001", False),
        (":1000", False),
    ],
)
def test_another_user_than_the_catalogs_is_reported(tmp_path: Path, user: str, is_right: bool) -> None:
    passwd = {"etc/passwd": f"{PASSWD}toor:x:0:0::/:/bin/sh\n"}
    done = inspect(tmp_path, BASE, passwd, config={"User": user})
    assert [one.rule for one in done.findings] == ([] if is_right else ["image-differs"]), done.err
    assert is_right or f"has User '{user}', and the catalog says 1000" in done.err


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"etc/ssh/sshd_config": "PermitRootLogin yes\n"}, "permitrootlogin yes in /etc/ssh/sshd_config"),
        ({"etc/ssh/sshd_config": "PasswordAuthentication yes\n"}, "passwordauthentication yes in /etc/ssh/"),
        (
            {
                "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\nPermitRootLogin no\n",
                "etc/ssh/sshd_config.d/10-cloud.conf": "PermitRootLogin yes\n",
            },
            "permitrootlogin yes in /etc/ssh/sshd_config",
        ),
        (
            {
                "etc/ssh/sshd_config": "Include sshd_config.d/*.conf\nPermitRootLogin yes\n",
                "etc/ssh/sshd_config.d/10-site.conf": "PermitRootLogin no\n",
            },
            "",
        ),
        ({"etc/ssh/sshd_config": "#PermitRootLogin yes\nUsePAM yes\nPort 22\n"}, ""),
        ({"etc/ssh/sshd_config.d/10-cloud.conf": "PermitRootLogin yes\n"}, ""),  # nothing includes it
    ],
)
def test_logins_that_the_default_configuration_of_sshd_lets_in_are_reported(
    tmp_path: Path, files: dict[str, Any], says: str
) -> None:
    done = inspect(tmp_path, BASE, files)
    assert [one.rule for one in done.findings] == (["sshd-setting"] if says else []), done.err
    assert says in done.err


@pytest.mark.parametrize(
    ("files", "family", "version"),
    [
        (
            {"usr/share/openmpi/mpicc-wrapper-data.txt": "project=Open MPI\nversion=4.1.4\n"},
            "OpenMPI",
            "4.1.4",
        ),
        (
            {"var/lib/dpkg/status": DPKG},
            "OpenMPI",
            "4.1.4",
        ),
        ({"var/lib/dpkg/status.d/mpich": "Package: mpich\nVersion: 1:4.3.2-1\n"}, "MPICH", "4.3.2"),
        ({"opt/conda/conda-meta/mpich-4.3.2-h1.json": "{}"}, "MPICH", "4.3.2"),
        ({"usr/lib64/mpich/lib/pkgconfig/mpich.pc": "Version: 4.2.0\n"}, "MPICH", "4.2.0"),
        ({"opt/intel/oneapi/mpi/2021.13/bin/mpirun": "x"}, "IntelMPI", "2021.13"),
        ({"usr/bin/mpichversion": "x"}, "MPICH", ""),
    ],
)
def test_the_mpi_inside_an_image_is_recognised(
    tmp_path: Path, files: dict[str, Any], family: str, version: str
) -> None:
    store = Store()
    folder = made.layout(tmp_path / "layout", store, made.image(store, [made.layer(files)]))
    done = gangplan("images", "inspect", f"oci:{folder}", "--format", "json")
    (mpi,) = json.loads(done.out)["inside"]["mpi"]
    assert (mpi["family"], mpi["version"]) == (family, version)


def test_later_layers_replace_and_remove_files() -> None:
    files = ImageFiles()
    for number, one in enumerate(
        [
            {
                "etc/passwd": "a:x:1:1::/:/bin/sh\n",
                "etc/group": "g",
                "opt/a/sshd": "x",
                "opt/a/b/sshd": "x",
                "opt/c/sshd": "x",
            },
            {"etc/.wh.group": "", "opt/a/.wh..wh..opq": "", "opt/a/mpirun": "x", "opt/c": "now a file"},
            {
                "etc/passwd": "b:x:2:2::/:/bin/sh\n",
                "usr/lib64/sshd": "x",
                "sbin": "-> usr/sbin",
                "usr/sbin": "-> ../usr/lib64",
            },
        ],
        1,
    ):
        files.lay(number, io.BytesIO(made.layer(one)), 1000, frozenset())  # type: ignore[arg-type]
    assert not files.unread
    assert set(files.kept) == {"etc/passwd", "opt/a/mpirun", "usr/lib64/sshd", "sbin", "usr/sbin"}
    found = files.find("/etc/passwd")
    assert found is not None
    assert found.content.startswith(b"b:")
    assert files.find("/sbin/sshd") is not None
    assert files.find("/sbin/nothing") is None


def test_links_that_form_a_cycle_lead_nowhere() -> None:
    files = ImageFiles()
    files.lay(
        1,
        io.BytesIO(made.layer({"a": "-> b", "b": "-> a", "up": "-> ../../../etc", "etc/passwd": PASSWD})),
        1000,
        frozenset(),
    )
    assert files.find("/a/x") is None
    assert files.find("/up/passwd") is not None  # the parent of the root is the root


def test_hard_links_are_found() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, link in (("usr/bin/sshd", ""), ("usr/sbin/sshd", "usr/bin/sshd")):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = (tarfile.LNKTYPE, link) if link else (tarfile.REGTYPE, "")
            archive.addfile(entry)
    files = ImageFiles()
    files.lay(1, io.BytesIO(out.getvalue()), 1000, frozenset())
    assert files.find("/usr/sbin/sshd") is not None


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/../../etc/passwd", "/../etc/passwd"])
def test_names_that_lead_out_of_the_image_are_reported(tmp_path: Path, name: str) -> None:
    done = inspect(tmp_path, BASE, {name: "evil:x:0:0::/:/bin/sh\n"})
    assert [one.rule for one in done.findings] == ["image-unread"]
    assert "leads out of it" in done.err
    assert "evil" not in done.out


def test_control_characters_are_not_printed(tmp_path: Path) -> None:
    labels = {"schlüssel\u202e": "wert\x1b[31m", "x": "é"}
    store = Store()
    odd = made.layer({"home/ünï/\u202e.sshd_config": "Port 1\n", "ä" * 200: "long"})
    body = made.image(store, [odd], {"Labels": labels, "User": "ro\x1b[0mot"})
    folder = made.layout(tmp_path / "layout", store, body)
    done = gangplan("images", "inspect", f"oci:{folder}")
    assert done.code == 0, done.err
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_labels_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    store = Store()
    config = b'{"architecture": "amd64", "config": {"Labels": {"a": "\xff\xfe"}}}'
    body = made.image(store) | {"config": store.blob(config) | {"mediaType": made.CONFIG}}
    folder = made.layout(tmp_path / "layout", store, body)
    done = gangplan("images", "inspect", f"oci:{folder}")
    assert (done.code, "configuration is not a JSON object" in done.err) == (3, True)


@pytest.mark.parametrize(
    "config",
    [
        {"Env": 7, "Labels": [1], "User": {"a": 1}, "Entrypoint": "sh", "ExposedPorts": 3, "Cmd": [1, None]},
        {"Labels": {"a": {"b": 1}}},
    ],
)
def test_wrong_types_in_a_configuration_are_ignored(tmp_path: Path, config: Any) -> None:
    assert inspect(tmp_path, BASE, config=config).code == 0


def test_a_layer_that_unpacks_to_too_much_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gangplan.oci.layers._ALWAYS", 1 << 20)
    monkeypatch.setattr("gangplan.oci.layers._GROWTH", 10)
    done = inspect(tmp_path, BASE, {"zeros": bytes(8 << 20)})
    assert [one.rule for one in done.findings] == ["image-unread"]
    assert "layer 2 unpacks to more than" in done.err


def test_a_zstd_layer_is_reported_as_unread(tmp_path: Path) -> None:
    store = Store()
    body = made.image(store, [b"\x28\xb5\x2f\xfd" + bytes(100)], compress=False)
    folder = made.layout(tmp_path / "layout", store, body)
    done = look(tmp_path, f"oci:{folder}", "--image", "openmpi")
    assert [one.rule for one in done.findings] == ["image-unread"]
    assert "packed with zstd" in done.err
    assert done.code == 0  # a warning
    alone = gangplan("images", "inspect", f"oci:{folder}")
    assert "not read      layer 1 is packed with zstd" in alone.out


def test_blobs_that_a_layout_lacks_are_named(tmp_path: Path) -> None:
    store = Store()
    images = {name: made.image(store, [made.layer(BASE)], architecture=name) for name in ("amd64", "arm64")}
    digest = made.index(store, "a", images)
    folder = made.layout(tmp_path / "layout", store, json.loads(store.manifests["a", digest][1]))
    (layer,) = images["amd64"]["layers"]
    blobs = folder / "blobs/sha256"
    (blobs / layer["digest"].removeprefix("sha256:")).unlink()
    (blobs / compute_blob_digest(json.dumps(images["arm64"]).encode()).removeprefix("sha256:")).unlink()
    done = gangplan("images", "inspect", f"oci:{folder}")
    assert (done.code, f"has no {layer['digest']}" in done.out) == (0, True)
    other = gangplan("images", "inspect", f"oci:{folder}", "--arch", "arm64")
    assert (other.code, "choose an architecture that it has" in other.err) == (3, True)


@pytest.mark.parametrize("cut", [20, 100, -20])
def test_a_layer_that_ends_too_early_is_reported(tmp_path: Path, cut: int) -> None:
    store = Store()
    body = made.image(store, [gzip.compress(made.layer(BASE), mtime=0)[:cut]], compress=False)
    folder = made.layout(tmp_path / "layout", store, body)
    done = look(tmp_path, f"oci:{folder}", "--image", "openmpi")
    assert [one.rule for one in done.findings] == ["image-unread"]
    assert "layer 1 is damaged" in done.err


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """Return a tar header with any fields and a correct checksum."""
    body = name.ljust(100, b"\0") + b"0" * 24 + size.ljust(12, b"\0") + b"0" * 12 + b" " * 8 + kind
    body = body.ljust(512, b"\0")
    return body[:148] + f"{sum(body):06o}\0 ".encode() + body[156:]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"not a tar at all".ljust(1024, b"x"), "wrong checksum"),
        (header(b"a", b"zzz"), "a size is not a number"),
        (header(b"a", b"77777777777"), "ends in the middle"),
        (header(b"a", b"77777777777", b"x"), "has a header of"),
        (header(b"a", b"10", b"x") + b"99 a=b\n".ljust(512, b"\0"), "pax header cannot be read"),
        (header(b"a", b"10", b"x") + b"0 a=b\n".ljust(512, b"\0"), "pax header cannot be read"),
        (header(b"a", b"\xff" + b"\xff" * 11), ""),
    ],
)
def test_hostile_archives_are_refused(data: bytes, says: str) -> None:
    if not says:
        assert [one.size for one, _ in iterate_tar_entries(io.BytesIO(data), 1 << 30, "layer 1")] == [0]
        return
    with pytest.raises(ToolError, match=says):
        list(iterate_tar_entries(io.BytesIO(data), 1 << 30, "layer 1"))


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_archives_of_every_format_are_read(format: int) -> None:
    out = io.BytesIO()
    names = ["a", "d/" * 40 + "name", "ü/é"] + (
        [] if format == tarfile.USTAR_FORMAT else ["l" * 300, "d/" * 200 + "x"]
    )
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 700
            archive.addfile(entry, io.BytesIO(name.encode()[:1] * 700))
    found = [
        (one.name, one.kind, read(1000))
        for one, read in iterate_tar_entries(io.BytesIO(out.getvalue()), 1 << 30, "it")
    ]
    assert found == [(name, "file", name.encode()[:1] * 700) for name in names]


def test_a_layout_with_altered_bytes_is_refused(tmp_path: Path) -> None:
    store = Store()
    body = made.image(store, [made.layer(BASE)])
    folder = made.layout(tmp_path / "layout", store, body)
    blob = folder / "blobs/sha256" / body["config"]["digest"].removeprefix("sha256:")
    blob.write_bytes(blob.read_bytes().replace(b"amd64", b"arm64"))
    done = gangplan("images", "inspect", f"oci:{folder}")
    assert (done.code, "are others" in done.err) == (3, True)


def test_an_index_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    store = Store()
    top = made.image(store)
    for _ in range(6):
        data = json.dumps(top).encode()
        store.blobs[compute_blob_digest(data)] = data
        entry = {
            "mediaType": top["mediaType"],
            "digest": compute_blob_digest(data),
            "size": len(data),
            "platform": {"os": "linux", "architecture": "amd64"},
        }
        top = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}
    folder = made.layout(tmp_path / "layout", store, top)
    done = gangplan("images", "inspect", f"oci:{folder}")
    assert (done.code, "nested more than" in done.err) == (3, True)


def test_links_in_a_layout_are_refused(tmp_path: Path) -> None:
    store = Store()
    body = made.image(store, [made.layer(BASE)])
    folder = made.layout(tmp_path / "layout", store, body)
    blob = folder / "blobs/sha256" / body["config"]["digest"].removeprefix("sha256:")
    (tmp_path / "outside").write_bytes(blob.read_bytes())
    blob.unlink()
    blob.symlink_to(tmp_path / "outside")
    done = gangplan("images", "inspect", f"oci:{folder}")
    assert (done.code, "is a link" in done.err) == (3, True)


def test_a_layout_in_a_tar_reads_the_same(tmp_path: Path) -> None:
    store = Store()
    folder = made.layout(tmp_path / "layout", store, made.image(store, [made.layer(BASE)]), "v1")
    with tarfile.open(tmp_path / "image.tar", "w") as archive:
        archive.add(folder, ".")
    outs = [
        json.loads(gangplan("images", "inspect", f"oci:{path}:v1", "--format", "json").out)
        for path in (folder, tmp_path / "image.tar")
    ]
    assert outs[0] | {"reference": ""} == outs[1] | {"reference": ""}
    done = gangplan("images", "inspect", f"oci:{folder}:v2")
    assert (done.code, "It has v1" in done.err) == (2, True)
    assert gangplan("images", "inspect", "oci:nowhere").code == 2


def test_an_image_of_a_registry_is_inspected(tmp_path: Path) -> None:
    store = Store()
    images = {
        name: made.image(store, [made.layer(BASE)], {"User": name}, architecture=name)
        for name in ("amd64", "arm64")
    }
    digest = made.index(store, "training/openmpi", images, "5.0.8")
    with serve(store) as server:
        name = f"{server.host}/training/openmpi:5.0.8"
        done = look(tmp_path, name, "--format", "json", host=server.host)
        facts = json.loads(done.out)
        assert (facts["digest"], facts["user"], facts["image"]) == (digest, "amd64", "openmpi")
        assert facts["architectures"] == ["amd64", "arm64"]
        assert "inside" not in facts
        asked = [path for path, _ in store.asked if "/blobs/" in path]
        assert len(asked) == 1  # only the configuration
        done = look(tmp_path, name, "--layers", "--arch", "arm64", host=server.host)
        assert (done.code, done.findings) == (0, []), done.err
        assert "user          arm64" in done.out
        assert "OpenMPI 5.0.8" in done.out
        pinned = CATALOG.replace(
            "sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee", digest
        )
        root = workspaces.write(
            tmp_path / "workspace", {"images/catalog.yaml": pinned.replace("HOST", server.host)}
        )
        assert f"digest        {digest}" in gangplan("images", "inspect", "openmpi", "-C", root).out
        assert gangplan("images", "inspect", "openmpi", "--cluster", "lab", "-C", root).code == 0
        assert (
            "nothing for linux/riscv64"
            in gangplan("images", "inspect", "openmpi", "--arch", "riscv64", "-C", root).err
        )


@pytest.mark.parametrize(
    "name", ["openmp", "no/host", "UPPER.example.com/x", "a.example.com/x:" + "t" * 200, "a.example.com/../x"]
)
def test_invalid_names_of_images_are_refused(tmp_path: Path, name: str) -> None:
    done = look(tmp_path, name)
    assert done.code == 2, done.err


def test_a_hard_link_to_a_file_with_any_name_is_read(tmp_path: Path) -> None:
    linked = {
        "opt/openmpi/lib/pkgconfig/.wh.ompi.pc": "",
        "usr/share/other": "Version: 4.1.8\n",
        "root/.ssh/id_rsa": "-----BEGIN",
        "usr/lib/pkgconfig/ompi.pc": "=> usr/share/other",
    }
    done = inspect(tmp_path, BASE, linked)
    assert "has OpenMPI 4.1.8" in done.err
    assert [one.rule for one in done.findings].count("image-holds-key") == 1
    assert done.err.count("/root/.ssh/id_rsa") == 1
    near = inspect(tmp_path / "near", BASE, {"usr/lib/pkgconfig/ompi.pc": "=> usr/share/gone"})
    assert near.code == 0, near.err
