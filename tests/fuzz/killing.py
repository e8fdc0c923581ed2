"""A render that is killed at any moment leaves the old tree or the new one, and changes no answer."""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from tests import workspaces
from tests.fuzz.base import Stories

TEAM = workspaces.TEAM.replace("[lab]", "[far, lab]")
SPECS = [f"specs/nlp/job-{number:02}.yaml" for number in range(20)]


def story(chance: random.Random, folder: Path) -> None:
    """Render a changing workspace three times, and kill each render at a random moment.

    No second judge runs: it is not under test here, and would take most of the time.
    """
    with mock.patch.dict(os.environ, {"PATH": os.devnull, "GANGPLAN_TOOL_CACHE": os.devnull}):
        _story(chance, folder)


def _story(chance: random.Random, folder: Path) -> None:
    root = workspaces.write(
        folder / "workspace",
        {
            "images/catalog.yaml": workspaces.CATALOG,
            "overlays/lab/cluster.yaml": workspaces.WIDE_CLUSTER,
            "overlays/far/cluster.yaml": workspaces.WIDE_CLUSTER,
            "specs/nlp/team.yaml": TEAM,
            **dict.fromkeys(SPECS, workspaces.SPEC),
        },
    )
    flags = ["--no-cache"] if chance.random() < 0.4 else []
    _call(root, "render", *flags)
    for _ in range(3):
        _change(root, chance)
        _killed(root, flags, chance)


def _change(root: Path, chance: random.Random) -> None:
    """Change, add or remove specs."""
    for file in chance.sample(SPECS, chance.choice((1, 5, 20))):
        path = root / file
        if chance.random() < 0.2:
            path.unlink(missing_ok=True)
        else:
            text = workspaces.SPEC.replace("workers: 4", f"workers: {chance.randrange(1, 100)}")
            path.write_text(text)


def _killed(root: Path, flags: list[str], chance: random.Random) -> None:
    old = workspaces.rendered(root)
    with tempfile.TemporaryDirectory(prefix="gangplan-fuzz-") as beside:
        _call(root, "render", "--no-cache", "--output", f"{beside}/new")
        new = workspaces.tree(Path(beside) / "new")
    began = time.monotonic()
    is_program = chance.random() < 0.25
    lasts = _lasts() if is_program else _works(root)
    child = _program(root, flags) if is_program else _fork(root, flags)
    time.sleep(chance.random() * 1.1 * lasts)
    # Kill it alone, or with the workers that it started.
    (os.killpg if chance.random() < 0.5 else os.kill)(child, signal.SIGKILL)
    os.waitpid(child, 0)
    where = f"after {time.monotonic() - began:.3f} s, {flags}"
    found = workspaces.rendered(root)
    assert found in (old, new), f"{where}: the tree is neither the old one nor the new one"
    _same_answers(root, where, found == new)
    _call(root, "render", *flags)
    assert workspaces.rendered(root) == new, f"{where}: the next render does not finish the work"
    left = sorted(path.name for path in (root / ".gangplan").iterdir())
    assert set(left) <= {"cache", "lock"}, f"{where}: {left} is left"


def _same_answers(root: Path, where: str, is_new: bool) -> None:
    """Check that commands answer the same with the cache that the kill left and without a cache."""
    for command in (("validate",), ("render", "--check")):
        with_it = _call(root, *command)
        without = _call(root, *command, "--no-cache")
        assert with_it == without, f"{where}: {command}: {with_it} and without the cache {without}"
        assert with_it.code == (0 if is_new or command == ("validate",) else 1), f"{where}: {with_it}"


def _call(root: Path, command: str, *flags: str) -> workspaces.Outcome:
    outcome = workspaces.gangplan(command, "-C", str(root), *flags)
    assert outcome.code in (0, 1), outcome.err
    return outcome


def _fork(root: Path, flags: list[str]) -> int:
    """Start a render in a child that need not import anything, and return its process id."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os._exit(workspaces.gangplan("render", "-C", root, *flags).code)
        finally:
            os._exit(99)
    while os.getpgid(child) != child:  # setsid has run once the child leads its own group
        time.sleep(0.0005)
    return child


def _program(root: Path, flags: list[str]) -> int:
    """Start a render as a program of its own, and return its process id."""
    command = [sys.executable, "-m", "gangplan", "render", "-C", str(root), *flags]
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=quiet, setsid=True)


def _works(root: Path) -> float:
    """Return the seconds that a render takes in this process now."""
    began = time.monotonic()
    _call(root, "render", "--check", "--no-cache")
    return time.monotonic() - began


@functools.cache
def _lasts() -> float:
    """Return the seconds that a render takes as a program, with all its imports."""
    with tempfile.TemporaryDirectory(prefix="gangplan-fuzz-") as folder:
        root = workspaces.stock(Path(folder))
        began = time.monotonic()
        os.waitpid(_program(root, []), 0)
        return time.monotonic() - began


KILL = Stories(story)
