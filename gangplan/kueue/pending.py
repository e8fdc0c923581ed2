"""The pending workloads of one queue, and the head of the queue.

Ported from pkg/cache/queue/cluster_queue.go of Kueue v0.19.2. A run that cannot be admitted blocks all runs
of its shape until quota is released (scheduling equivalence, since v0.18; before, each of them was tried and
failed in the same way).
"""

from __future__ import annotations

from heapq import heappop, heappush

from gangplan.kueue.state import PendingWorkload

Shape = tuple[object, ...]
Entry = tuple[tuple[int, float, int], PendingWorkload]


class PendingQueue:
    """Waiting runs by shape. A strict queue blocks no shape: its first run keeps all others waiting."""

    def __init__(self, is_strict: bool) -> None:
        """Create an empty queue."""
        self.is_strict = is_strict
        self._blocked: set[Shape] = set()
        self._waiting: dict[Shape, list[Entry]] = {}
        self._preempting: PendingWorkload | None = None
        # The first run of each shape, in order, and how many of them are known to be blocked.
        self._firsts: list[Entry] | None = None
        self._passed = 0

    def push(self, asking: PendingWorkload) -> None:
        """Add a run that arrives or was preempted (`PushOrUpdate`)."""
        entries = self._waiting.setdefault(asking.shape, [])
        heappush(entries, (asking.order, asking))
        if entries[0][1] is asking:
            self._firsts = None

    def head(self) -> PendingWorkload | None:
        """Return the next run to try (`Pop`).

        A run that waits for its preempted targets stays at the head.
        """
        if self._preempting is not None and self._preempting.shape not in self._blocked:
            return self._preempting
        if self._firsts is None:
            self._firsts, self._passed = sorted(entries[0] for entries in self._waiting.values()), 0
        while self._passed < len(self._firsts):
            asking = self._firsts[self._passed][1]
            if asking.shape not in self._blocked:
                return asking
            self._passed += 1
        return None

    def retry(self) -> None:
        """Unblock all shapes after quota was released (`queueInadmissibleWorkloads`)."""
        self._blocked.clear()
        self._passed = 0

    def take(self, asking: PendingWorkload) -> None:
        """Remove a run that was admitted (`Delete`)."""
        self._firsts = None
        entries = self._waiting[asking.shape]
        if entries[0][1] is asking:
            heappop(entries)
        else:
            entries[:] = sorted(entry for entry in entries if entry[1] is not asking)
        if not entries:
            del self._waiting[asking.shape]
        if self._preempting is asking:
            self._preempting = None

    def block(self, asking: PendingWorkload) -> bool:
        """Block the shape of a run for now (`requeueIfNotPresent`); return whether this is new."""
        if self.is_strict:
            return False
        is_news = asking.shape not in self._blocked
        self._blocked.add(asking.shape)
        return is_news

    def preempts(self, asking: PendingWorkload) -> None:
        """Record that a run waits for its preempted targets (`preemptorWorkload`)."""
        self._preempting = None if self.is_strict else asking

    def all(self) -> list[PendingWorkload]:
        """Return every waiting run in order (`Snapshot`)."""
        return [
            asking for _, asking in sorted(entry for entries in self._waiting.values() for entry in entries)
        ]
