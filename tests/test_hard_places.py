"""Disks that are full or read-only, files that vanish during reading, links in the cache, other commands."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import gangplan, render, rendered, tree, write

# The exit codes that a command may have when a file that it reads vanishes.
SOUND = (Exit.CLEAN, Exit.FINDINGS, Exit.INPUT)


def _in_child(do: Callable[[], workspaces.Outcome], folder: Path) -> workspaces.Outcome:
    """Run a command in a child, whose limits, user and hooks are its own, and return its outcome."""
    child = os.fork()
    if child == 0:
        try:
            outcome = do()
            (folder / "told").write_text(outcome.out + outcome.err)
            os._exit(outcome.code)
        finally:
            os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told = folder / "told"
    return workspaces.Outcome(code, "", told.read_text() if told.exists() else "")


def test_a_full_disk_leaves_rendered_unchanged(root: Path, tmp_path: Path) -> None:
    """A limit on the size of files fails in the middle of a file, as a full disk does."""
    render(root)
    before = rendered(root)
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", "workers: 3")})

    def limited() -> workspaces.Outcome:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        outcome = gangplan("render", "-C", root)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return outcome

    outcome = _in_child(limited, tmp_path)
    assert outcome.code == Exit.ENVIRONMENT, outcome.err
    assert "File too large" in outcome.err
    assert "bug in gangplan" not in outcome.err
    assert rendered(root) == before
    render(root)
    assert gangplan("render", "-C", root, "--check", "--no-cache").code == Exit.CLEAN


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Create a temporary folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="gangplan-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_another_user_may_validate_and_plan_but_not_render(open_folder: Path) -> None:
    root = workspaces.stock(open_folder / "workspace")
    render(root)
    before = tree(root)

    def asked(*arguments: str) -> workspaces.Outcome:
        def as_nobody() -> workspaces.Outcome:
            os.setgid(65534)
            os.setuid(65534)
            return gangplan(*arguments, "-C", root)

        return _in_child(as_nobody, open_folder)

    assert asked("validate").code == Exit.CLEAN
    assert asked("plan").code == Exit.CLEAN
    outcome = asked("render")
    assert outcome.code == Exit.ENVIRONMENT, outcome.err
    assert "Permission denied" in outcome.err
    assert "bug in gangplan" not in outcome.err
    assert tree(root) == before


def _vanishing(root: Path, number: int) -> list[str]:
    """Delete the file of the workspace that is opened as the given one, just before it is opened."""
    gone: list[str] = []
    count = [0]
    inside = (f"{root}/specs", f"{root}/overlays", f"{root}/images", f"{root}/policies", f"{root}/rendered")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.scandir", "os.listdir") or gone or not arguments:
            return
        path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
        if not path.startswith(inside):
            return
        count[0] += 1
        if count[0] == number:
            gone.append(path)
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    sys.addaudithook(hook)
    return gone


@pytest.mark.parametrize("command", ["validate", "render"])
def test_any_file_may_vanish_while_it_is_read(command: str, root: Path, tmp_path: Path) -> None:
    write(root, {"specs/nlp/second.yaml": workspaces.SPEC, "overlays/lab/schemas/a/b.json": "{}"})
    shutil.rmtree(root / "overlays/lab/schemas")
    render(root)
    write(root, {"specs/nlp/second.yaml": workspaces.SPEC.replace("workers: 4", "workers: 3")})
    number, ended = 1, False
    while not ended:
        copy = tmp_path / "copy"
        shutil.copytree(root, copy, symlinks=True)

        def vanish(copy: Path = copy, number: int = number) -> workspaces.Outcome:
            gone = _vanishing(copy, number)
            outcome = gangplan(command, "-C", copy, "--no-cache", "--engine", "serial")
            return workspaces.Outcome(outcome.code, f"{gone}\n", outcome.err)

        outcome = _in_child(vanish, tmp_path)
        ended = outcome.err.startswith("[]\n")
        assert outcome.code in (*SOUND, Exit.ENVIRONMENT), outcome.err
        assert "bug in gangplan" not in outcome.err, outcome.err
        shutil.rmtree(copy)
        number += 1
    assert number > 8


@pytest.mark.parametrize("place", ["cache", "cache/folders", "cache/seen"])
def test_links_in_the_cache_are_not_followed(place: str, root: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"precious": "1"})
    render(root)
    path = root / ".gangplan" / place
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(outside)
    for command in ("validate", "render", "validate"):
        outcome = workspaces.gangplan_process(command, "-C", root)
        assert "bug in gangplan" not in outcome.err
        assert outcome.code == gangplan(command, "-C", root, "--no-cache").code, outcome.err
    assert tree(outside) == {"precious": b"1"}


def test_validate_works_during_a_render(root: Path, tmp_path: Path) -> None:
    """While a tree is swapped, a command sees either the old one or the new one."""
    render(root)
    ask = [sys.executable, "-m", "gangplan"]
    for workers in (3, 2):
        write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("workers: 4", f"workers: {workers}")})
        pids = []
        for number, command in enumerate(("render", "validate", "render", "validate")):
            told = os.open(tmp_path / f"{number}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            actions = [(os.POSIX_SPAWN_DUP2, told, 1), (os.POSIX_SPAWN_DUP2, told, 2)]
            words = [*ask, command, "-C", str(root)]
            pids.append(os.posix_spawn(sys.executable, words, os.environ, file_actions=actions))
            os.close(told)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        told_all = [(tmp_path / f"{number}").read_text() for number in range(4)]
        assert not any("bug in gangplan" in told for told in told_all), told_all
        assert codes[1] == codes[3] == Exit.CLEAN, told_all
        assert {codes[0], codes[2]} <= {Exit.CLEAN, Exit.ENVIRONMENT}
        assert Exit.CLEAN in (codes[0], codes[2])
        assert gangplan("render", "-C", root, "--check", "--no-cache").code == Exit.CLEAN
