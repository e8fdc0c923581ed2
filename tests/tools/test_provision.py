"""Installing: what is tried, what is trusted, and what a failure or a kill leaves."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gangplan.errors import ToolError
from gangplan.tools import download, provision
from gangplan.tools.find import build_cached_path, find_tool
from gangplan.tools.pins import KUSTOMIZE_TOOL, Archive, Tool, detect_platform
from tests.tools.programs import binary_of, fake

MODULE = "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1"


def program(version: str = "5.8.1") -> bytes:
    """Return a file that claims to be kustomize at a version."""
    path = Path(os.environ["GANGPLAN_TOOL_CACHE"]).parent / "made" / "kustomize"
    return binary_of(KUSTOMIZE_TOOL, version, path).read_bytes()


def archive_of(*members: tuple[str, bytes | str]) -> bytes:
    """Return a .tar.gz of files (bytes) and symbolic links (text)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def tool_with(content: bytes, folder: Path, sha256: str | None = None) -> Tool:
    """Return kustomize with a release archive of our own, at a file URL."""
    file = folder / "release.tar.gz"
    file.write_bytes(content)
    archive = Archive(file.as_uri(), sha256 or hashlib.sha256(content).hexdigest())
    return dataclasses.replace(KUSTOMIZE_TOOL, archives={detect_platform(): archive})


@pytest.fixture
def without_archive() -> Tool:
    """Return kustomize without a known archive, so that Go is next."""
    return dataclasses.replace(KUSTOMIZE_TOOL, archives={})


@pytest.fixture
def go(path_folder: Path) -> Path:
    """Put a fake Go on PATH that can make kustomize; return its folder."""
    fake("go", "go", path_folder)
    (path_folder / "product").write_bytes(program())
    return path_folder


def test_a_tool_is_installed_from_its_archive(tmp_path: Path, path_folder: Path) -> None:
    tool = tool_with(archive_of(("LICENSE", b"x"), ("kustomize", program())), tmp_path)
    said: list[str] = []
    found = provision.install_pinned_tool(tool, said.append)
    assert (found.path, found.version, found.origin) == (build_cached_path(tool), "5.8.1", "cache")
    assert os.access(found.path, os.X_OK)
    assert said == [f"kustomize: downloading {(tmp_path / 'release.tar.gz').as_uri()}"]
    assert find_tool(tool) == found
    assert leftovers() == []


def leftovers() -> list[Path]:
    """Return what an installation has left in the work folder."""
    return list((Path(os.environ["GANGPLAN_TOOL_CACHE"]) / "work").iterdir())


def test_an_installed_tool_is_not_installed_again(tmp_path: Path) -> None:
    tool = tool_with(archive_of(("kustomize", program())), tmp_path)
    first = provision.install_pinned_tool(tool)
    (tmp_path / "release.tar.gz").unlink()
    assert provision.install_pinned_tool(tool) == first
    assert provision.ensure(tool) == first


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([("README", b"x")], "there is no file 'kustomize'"),
        ([("../kustomize", b"x")], "there is no file 'kustomize'"),
        ([("kustomize", "/bin/sh")], "there is no file 'kustomize'"),
        ([("kustomize", b"#!/bin/sh\necho v5.8.0\n")], "says it is version 5.8.0, not 5.8.1"),
    ],
)
def test_an_archive_with_other_contents_is_refused(
    members: list[tuple[str, bytes | str]], why: str, tmp_path: Path, path_folder: Path
) -> None:
    tool = tool_with(archive_of(*members), tmp_path)
    with pytest.raises(ToolError, match=why):
        provision.install_pinned_tool(tool)
    assert not build_cached_path(tool).exists()
    assert leftovers() == []


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>log in first</html>", archive_of(("kustomize", b"x" * 9999))[:60]],
    ids=["nothing", "a-page", "the-first-part"],
)
def test_an_unreadable_archive_is_refused(content: bytes, tmp_path: Path, path_folder: Path) -> None:
    with pytest.raises(ToolError, match="is not a readable archive"):
        provision.install_pinned_tool(tool_with(content, tmp_path))


def test_an_archive_with_another_checksum_is_not_even_opened(
    tmp_path: Path, path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_unpack_program_file", lambda *_: pytest.fail("it was opened"))
    tool = tool_with(archive_of(("kustomize", program())), tmp_path, sha256="0" * 64)
    with pytest.raises(ToolError, match="was refused: its SHA-256 is") as caught:
        provision.install_pinned_tool(tool)
    assert "go is not on PATH" in caught.value.message
    assert "GANGPLAN_KUSTOMIZE" in (caught.value.help or "")
    assert not build_cached_path(tool).exists()


def test_sizes_are_limited(tmp_path: Path, path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tool_with(archive_of(("kustomize", program())), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(download, "_MAX_PROGRAM_BYTES", 10)
        with pytest.raises(ToolError, match="is larger than"):
            provision.install_pinned_tool(tool)
    monkeypatch.setattr(download, "_MAX_ARCHIVE_BYTES", 10)
    with pytest.raises(ToolError, match="is larger than"):
        provision.install_pinned_tool(tool)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Return a URL on this machine that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/release.tar.gz"


def test_a_server_that_does_not_answer_is_reported(
    silent_server: str, path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "FIRST_BYTE_TIMEOUT_S", 0.3)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    tool = dataclasses.replace(KUSTOMIZE_TOOL, archives={detect_platform(): Archive(silent_server, "0" * 64)})
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"did not answer within 0.3 s"):
        provision.install_pinned_tool(tool)
    assert time.monotonic() - started < 3


def test_an_unreachable_server_is_reported(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/release.tar.gz"
    tool = dataclasses.replace(KUSTOMIZE_TOOL, archives={detect_platform(): Archive(url, "0" * 64)})
    with pytest.raises(ToolError, match=r"cannot be downloaded: .*refused"):
        provision.install_pinned_tool(tool)


def test_go_builds_what_cannot_be_downloaded(go: Path, tmp_path: Path) -> None:
    tool = tool_with(b"not an archive", tmp_path)
    said: list[str] = []
    found = provision.install_pinned_tool(tool, said.append)
    assert found.path.read_bytes() == program()
    assert (go / "calls").read_text() == f"install {MODULE}\n"
    assert "is not a readable archive" in said[1]
    assert said[2] == f"kustomize: go install {MODULE}"


def test_go_gets_its_settings_but_none_that_aim_elsewhere(
    go: Path, without_archive: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOFLAGS", "-buildvcs=false")
    monkeypatch.setenv("GOPROXY", "https://proxy.example.com")
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.setenv("KUBECONFIG", "/home/me/.kube/config")
    provision.install_pinned_tool(without_archive)
    seen = dict(line.split("=", 1) for line in (go / "environment").read_text().splitlines() if "=" in line)
    assert (seen["GOFLAGS"], seen["GOPROXY"]) == ("-buildvcs=false", "https://proxy.example.com")
    assert (seen["CGO_ENABLED"], seen["GOWORK"]) == ("0", "off")
    assert not {"GOOS", "KUBECONFIG"} & seen.keys()


def test_a_failure_of_go_is_reported(go: Path, without_archive: Tool) -> None:
    (go / "refusal").write_text("go: sigs.k8s.io/kustomize/kustomize/v5@v5.8.1: module lookup disabled\n")
    with pytest.raises(ToolError, match=r"no release archive is known for .*module lookup disabled"):
        provision.install_pinned_tool(without_archive)
    assert leftovers() == []


def test_another_version_from_go_is_refused(go: Path, without_archive: Tool) -> None:
    (go / "product").write_bytes(program("5.7.1"))
    with pytest.raises(ToolError, match=r"says it is version 5\.7\.1, not 5\.8\.1"):
        provision.install_pinned_tool(without_archive)
    assert not build_cached_path(without_archive).exists()


def test_offline_tries_nothing(go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGPLAN_OFFLINE", "1")
    with pytest.raises(ToolError, match="GANGPLAN_OFFLINE is set: nothing was tried"):
        provision.install_pinned_tool(tool_with(archive_of(("kustomize", program())), tmp_path))
    assert not (go / "calls").exists()


def test_offline_uses_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGPLAN_OFFLINE", "1")
    binary_of(KUSTOMIZE_TOOL, "5.8.1", build_cached_path(KUSTOMIZE_TOOL))
    assert provision.ensure(KUSTOMIZE_TOOL).origin == "cache"


def test_a_cache_that_cannot_be_written_is_reported(cache: Path, tmp_path: Path, path_folder: Path) -> None:
    tool = tool_with(archive_of(("kustomize", program())), tmp_path)
    cache.write_text("a file where the folder should be")
    with pytest.raises(ToolError, match="cannot be installed into") as caught:
        provision.install_pinned_tool(tool)
    assert "GANGPLAN_TOOL_CACHE" in (caught.value.help or "")


def _install_from_go(answers: multiprocessing.SimpleQueue[str]) -> None:
    tool = dataclasses.replace(KUSTOMIZE_TOOL, archives={})
    answers.put(provision.install_pinned_tool(tool).version)


def test_concurrent_installations_build_once(go: Path) -> None:
    (go / "wait").touch()
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    workers = [context.Process(target=_install_from_go, args=(answers,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    wait_for(go / "calls")
    time.sleep(0.2)
    (go / "wait").unlink()
    for worker in workers:
        worker.join(timeout=20)
    assert [answers.get() for _ in workers] == ["5.8.1"] * 3
    assert (go / "calls").read_text().count("install") == 1


def wait_for(file: Path) -> None:
    """Wait until a file is there, ten seconds at most."""
    for _ in range(500):
        if file.exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"{file} never came")


def test_a_kill_in_the_middle_leaves_nothing_installed(go: Path, without_archive: Tool) -> None:
    (go / "wait").touch()
    script = (
        "import dataclasses; from gangplan.tools import provision;"
        " from gangplan.tools.pins import KUSTOMIZE_TOOL;"
        " provision.install_pinned_tool(dataclasses.replace(KUSTOMIZE_TOOL, archives={}))"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as ours:
        wait_for(go / "calls")
        ours.send_signal(signal.SIGKILL)
    assert find_tool(without_archive) is None
    assert leftovers()
    (go / "wait").unlink()
    assert provision.install_pinned_tool(without_archive).version == "5.8.1"
    assert leftovers() == []
