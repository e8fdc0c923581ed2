"""The same specs give the same bytes, regardless of order, seed, locale, engine and folder."""

from __future__ import annotations

import locale
import os
import platform
import random
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gangplan import engines
from gangplan.emit import is_run_file
from gangplan.errors import Exit
from gangplan.tools.kustomize import KustomizeEngine
from tests import workspaces
from tests.workspaces import REPOSITORY, gangplan_process, render, rendered, tree, write

MPIEXEC = Path(sys.executable).with_name("mpiexec")
INPUTS = ("specs", "overlays", "images")


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """Return every file that the sample workspace is rendered from."""
    return {f"{part}/{name}": data for part in INPUTS for name, data in tree(REPOSITORY / part).items()}


@pytest.fixture(scope="module")
def expected(
    files: dict[str, bytes], builder: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """Render the sample workspace once in this process, one file after the other."""
    root = write(tmp_path_factory.mktemp("expected"), files)
    render(root, "--engine", "serial")
    return rendered(root)


def many(root: Path, count: int = 120) -> Path:
    """Create a workspace of so many specs for two teams on two clusters without patches: several tasks."""
    cluster = workspaces.CLUSTER + "  vision: {queue: training}\n"
    write(
        root, {**workspaces.STOCK, "overlays/lab/cluster.yaml": cluster, "overlays/far/cluster.yaml": cluster}
    )
    write(root, {"specs/vision/team.yaml": workspaces.TEAM.replace("[lab]", "[far, lab]")})
    images = ("openmpi", "openmpi4", "horovod", "deepspeed", "pytorch", "mpich")
    for number in range(count):
        spec = workspaces.SPEC.replace("image: openmpi", f"image: {images[number % len(images)]}")
        team = ("nlp", "vision")[number % 2]
        write(
            root,
            {f"specs/{team}/job-{number:03}.yaml": spec.replace("workers: 4", f"workers: {number % 5 + 2}")},
        )
    return root


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_files_and_place_of_the_workspace_change_nothing(
    seed: int, files: dict[str, bytes], expected: dict[str, bytes], tmp_path: Path
) -> None:
    names = sorted(files)
    random.Random(seed).shuffle(names)
    root = write(tmp_path / f"somewhere else {seed}", {name: files[name] for name in names})
    render(root)
    assert rendered(root) == expected


@pytest.mark.parametrize(("seed", "language"), [("random", "C"), ("1", "C.UTF-8"), ("0", "tr_TR.UTF-8")])
def test_hash_seed_and_locale_change_nothing(
    seed: str, language: str, files: dict[str, bytes], expected: dict[str, bytes], tmp_path: Path
) -> None:
    if not _has_locale(language):
        pytest.skip(f"locale {language} is not installed")
    root = write(tmp_path, files)
    outcome = gangplan_process(
        "render", cwd=root, env={"PYTHONHASHSEED": seed, "LC_ALL": language, "TZ": "Asia/Kolkata"}
    )
    assert outcome.code == Exit.CLEAN, outcome.err
    assert rendered(root) == expected


def _has_locale(name: str) -> bool:
    kept = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_ALL, kept)
    return True


@pytest.mark.parametrize(
    "engine", [("serial",), ("process", "--jobs", "1"), ("process", "--jobs", "2"), ("auto",)]
)
@pytest.mark.parametrize("chunk", [1, 7])
def test_engines_and_sizes_of_tasks_change_nothing(
    engine: tuple[str, ...],
    chunk: int,
    files: dict[str, bytes],
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "MOST_IN_TASK", chunk)
    root = write(tmp_path, files)
    render(root, "--engine", *engine)
    assert rendered(root) == expected


def test_kubectl_and_kustomize_apply_patches_to_the_same_bytes(
    files: dict[str, bytes],
    expected: dict[str, bytes],
    real_kubectl: KustomizeEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kubectl contains another version of kustomize."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/kubectl").symlink_to(real_kubectl.command[0])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("GANGPLAN_TOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GANGPLAN_KUSTOMIZE", raising=False)
    root = write(tmp_path / "workspace", files)
    render(root)
    assert rendered(root) == expected


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the workspace of many specs, one after the other."""
    root = many(tmp_path_factory.mktemp("many") / "workspace")
    render(root, "--engine", "serial")
    assert sum(map(is_run_file, rendered(root))) == 1 + 60 + 2 * 60
    return root


def test_processes_on_many_specs_render_the_same(in_one_process: Path, tmp_path: Path) -> None:
    render(in_one_process, "--engine", "process", "--jobs", "2", "--output", tmp_path / "out")
    assert tree(tmp_path / "out") == rendered(in_one_process)


@pytest.mark.skipif(not MPIEXEC.is_file(), reason="no mpiexec next to this python")
def test_mpi_ranks_on_many_specs_render_the_same(in_one_process: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    ranks = [MPIEXEC, "-n", "3", sys.executable, "-m", "mpi4py.futures", "-m", "gangplan"]
    done = subprocess.run(
        [*ranks, "render", "--engine", "mpi", "--output", tmp_path / "out"],
        cwd=in_one_process,
        env=os.environ | {"PYTHONHASHSEED": "random"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == Exit.CLEAN, done.stderr
    assert tree(tmp_path / "out") == rendered(in_one_process)


def test_mpi_without_ranks_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    outcome = gangplan_process("render", "--engine", "mpi", cwd=workspaces.stock(tmp_path))
    assert outcome.code == Exit.ENVIRONMENT
    assert "at least two ranks" in outcome.err
    assert not (tmp_path / "rendered").exists()


@pytest.mark.parametrize("folder", ["", "specs/nlp", "rendered"])
def test_rendering_from_any_folder_gives_the_same(folder: str, root: Path, tmp_path: Path) -> None:
    render(root)
    before = rendered(root)
    other = workspaces.stock(tmp_path / "other")
    (other / "rendered").mkdir()
    assert gangplan_process("render", cwd=other / folder).code == Exit.CLEAN
    assert rendered(other) == before


def test_a_workspace_can_be_checked_from_outside(root: Path) -> None:
    render(root)
    assert gangplan_process("render", "-C", root, "--check", cwd=Path("/")).code == Exit.CLEAN


def test_rendered_files_name_nothing_of_this_machine(
    files: dict[str, bytes], expected: dict[str, bytes]
) -> None:
    everything = b"".join(expected.values())
    for path in (str(REPOSITORY), str(Path.home()), sys.prefix):
        assert path.encode() not in everything
    # A short name such as `vm` is a part of other words, so only whole words count.
    name = re.escape(socket.gethostname()).encode()
    assert not re.search(rb"(?<![0-9A-Za-z])" + name + rb"(?![0-9A-Za-z])", everything)
    assert b"\r" not in everything
    assert all(data.endswith(b"\n") and not data.endswith(b"\n\n") for data in expected.values())


def test_another_machine_renders_the_same(
    files: dict[str, bytes], expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of a machine and its user change nothing, even when they look like a rendered word."""
    system = os.uname()
    other = os.uname_result((system.sysname, "another-machine", system.release, "#2", "riscv64"))
    monkeypatch.setattr(os, "uname", lambda: other)
    for owner, name in ((socket, "gethostname"), (socket, "getfqdn"), (platform, "node")):
        monkeypatch.setattr(owner, name, lambda *_: other.nodename)
    for name in ("HOSTNAME", "HOST", "USER", "LOGNAME"):
        monkeypatch.setenv(name, "another")
    root = write(tmp_path, files)
    render(root, "--engine", "serial", "--no-cache")
    assert rendered(root) == expected


def test_rendering_twice_writes_nothing(root: Path) -> None:
    render(root)
    paths = sorted((root / "rendered").rglob("*"))
    before = [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in paths]
    outcome = render(root)
    assert f": {len(rendered(root))} same files (" in outcome.out
    assert [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in paths] == before
    assert sorted((root / "rendered").rglob("*")) == paths
    assert sorted(path.name for path in (root / ".gangplan").iterdir()) == ["cache", "lock"]


def test_an_unchanged_file_is_not_written_again(root: Path) -> None:
    second = workspaces.SPEC.replace("workers: 4", "workers: 2")
    third = workspaces.SPEC.replace("workers: 4", "workers: 3")
    write(root, {"specs/nlp/second.yaml": second, "specs/nlp/third.yaml": third})
    render(root)
    before = {path: path.stat() for path in (root / "rendered").rglob("*.yaml")}
    write(root, {"specs/nlp/second.yaml": second + "run: 2\n", "specs/nlp/third.yaml": third + "run: 2\n"})
    outcome = render(root)
    assert re.search(r": 2 new, [0-9]+ same, 2 removed files [(]", outcome.out)
    kept = [path for path in before if path.exists()]
    assert len(kept) == len(before) - 2
    for path in kept:
        assert (path.stat().st_mtime_ns, path.stat().st_ino) == (
            before[path].st_mtime_ns,
            before[path].st_ino,
        )
