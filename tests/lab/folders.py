"""The lab's folders: built programs, runs, locks."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: How many folders of finished runs (their logs) are kept for a later look.
KEPT_RUNS = 5


def cache() -> Path:
    """Return the folder of everything that the lab builds and leaves behind."""
    chosen = os.environ.get("GANGPLAN_LAB_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gangplan" / "lab"


def locked(path: Path, *, wait: bool = False) -> IO[str] | None:
    """Open and lock a file until it is closed; return None if another process holds the lock.

    The kernel releases the lock when the holder dies, however it dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = path.open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        handle.close()
        return None
    return handle


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file for the length of a block, after waiting for it."""
    handle = locked(path, wait=True)
    try:
        yield
    finally:
        if handle:
            handle.close()


class RunFolder:
    """The private folder of one running lab; its logs outlive it."""

    def __init__(self, name: str) -> None:
        """Create the folder, and prune what runs that ended long ago left behind."""
        runs = cache() / "runs"
        self.path, self._lock = _claim(runs, name)
        self.logs = self.path / "logs"
        self.logs.mkdir()
        _prune(runs)

    def close(self) -> None:
        """Delete everything but the logs, and let the folder be pruned later."""
        for entry in self.path.iterdir():
            if entry.is_dir() and entry != self.logs:
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.is_file() and entry.name != "lock":
                entry.unlink(missing_ok=True)
        self._lock.close()


def _claim(runs: Path, name: str) -> tuple[Path, IO[str]]:
    """Create and lock the first free folder ``<name>-<process>-<number>``."""
    for number in range(1000):
        path = runs / f"{name}-{os.getpid()}-{number}"
        with suppress(FileExistsError):
            path.mkdir(parents=True)
            path.chmod(0o700)
            lock = locked(path / "lock")
            if lock:
                return path, lock
    raise RuntimeError(f"no free folder {runs}/{name}-{os.getpid()}-*")


def _prune(runs: Path) -> None:
    """Empty the folders of dead runs, and delete all but the newest few."""
    dead = []
    for path in sorted(runs.iterdir(), key=lambda entry: entry.stat().st_mtime, reverse=True):
        lock = locked(path / "lock") if (path / "lock").exists() else None
        if lock:
            dead.append(path)
            lock.close()
    for path in dead[KEPT_RUNS:]:
        shutil.rmtree(path, ignore_errors=True)
    for path in dead[:KEPT_RUNS]:
        for entry in path.iterdir():
            if entry.is_dir() and entry.name != "logs":
                shutil.rmtree(entry, ignore_errors=True)
