"""Free loopback ports that no other lab and no outgoing connection can take."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import IO

from . import folders

FIRST = 20000
LAST_IF_UNKNOWN = 32767


def _last() -> int:
    """Return the last port below those that the kernel gives to outgoing connections."""
    setting = Path("/proc/sys/net/ipv4/ip_local_port_range")
    with suppress(OSError, ValueError):
        return max(int(setting.read_text().split()[0]) - 1, FIRST + 1000)
    return LAST_IF_UNKNOWN


def _free(port: int) -> bool:
    """Return whether nothing listens on a loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Ports:
    """Hands out ports, and keeps each reserved with a lock file until closed."""

    def __init__(self) -> None:
        """Start at a place of this user's own, because other users' labs have other locks."""
        self._locks: list[IO[str]] = []
        self._range = range(FIRST, _last())
        self._next = self._range[os.getuid() * 100 % len(self._range)]

    def take(self) -> int:
        """Return a free port and reserve it."""
        for _ in self._range:
            port, self._next = self._next, self._next + 1
            if self._next not in self._range:
                self._next = self._range.start
            lock = folders.locked(folders.cache() / "ports" / str(port))
            if lock and _free(port):
                self._locks.append(lock)
                return port
            if lock:
                lock.close()
        raise RuntimeError(f"no free loopback port from {FIRST} to {self._range.stop}")

    def close(self) -> None:
        """Release all ports."""
        while self._locks:
            self._locks.pop().close()
