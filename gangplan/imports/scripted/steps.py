"""Keep the numbers of each launch of a script apart from those of its job."""

from __future__ import annotations

from gangplan.imports.scripted.wanted import WantedAllocation

# What a launch may ask for less of than its job has; the ranks that it starts, and what these share.
_RANKS = ("nodes", "tasks", "tasks_per_node")
_SHARES = (
    "cpus_per_task",
    "cpus_per_gpu",
    "gpus",
    "gpus_per_node",
    "gpus_per_task",
    "memory",
    "memory_per_cpu",
)
_OF_JOB = "the job as a whole has another number"


class JobSteps:
    """The launches of a script: each begins with what the job has, whatever another asks for.

    A script with one launch is that launch, so that its numbers hold.
    """

    __slots__ = ("_counts", "_job", "_most", "_nodes", "_several", "_shares", "_wanted")

    def __init__(self, wanted: WantedAllocation, several: bool) -> None:
        self._wanted, self._several = wanted, several
        self._job = {name: getattr(wanted, name) for name in (*_RANKS, *_SHARES)}
        self._nodes = dict(wanted.at)
        self._counts: dict[int, tuple[int, int]] = {}
        self._most: tuple[int, dict[str, int | None]] = (0, {})
        self._shares: dict[str, int] = {}

    def begin(self) -> None:
        """Begin a launch: it has the numbers of the job until its own options say others."""
        if self._several:
            for name, value in self._job.items():
                setattr(self._wanted, name, value)

    def end(self, number: int, has_starter: bool) -> int:
        """End the launch of an item, and return how many ranks it starts."""
        wanted = self._wanted
        ranks = (wanted.tasks_on_node or 1) * wanted.node_count
        if self._several:
            if has_starter and ranks > 1:
                self._counts[number] = (wanted.tasks or ranks, wanted.node_count)
            if ranks > self._most[0]:
                self._most = (ranks, {name: getattr(wanted, name) for name in _RANKS})
            for name in _SHARES:
                if (value := getattr(wanted, name)) is not None:
                    self._shares[name] = max(value, self._shares.get(name, 0))
        return ranks

    def settle(self) -> dict[int, tuple[int, int]]:
        """Give the job the most that a launch asks for; return the launches' ranks and nodes if they differ."""
        if not self._several:
            return {}
        if len(set(self._counts.values())) > 1:
            return self._counts
        for name, value in self._most[1].items():
            setattr(self._wanted, name, value)
        for name in _SHARES:
            mine = self._job[name]
            setattr(self._wanted, name, mine if mine is not None else self._shares.get(name))
            at = self._wanted.at.get(name)
            if mine is not None and at is not None and at is not self._nodes.get(name):
                at.dropped(_OF_JOB)
                self._wanted.at[name] = self._nodes[name]
        return {}
