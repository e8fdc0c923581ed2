"""Keep the numbers of each launch of a script apart from those of its job."""

from __future__ import annotations

from gangplan.imports.account import SourceNode
from gangplan.imports.scripted.wanted import WantedAllocation

# What a launch may ask for less of than its job has; the ranks that it starts, and what these share.
_RANKS = ("nodes", "tasks", "tasks_per_node", "tasks_per_gpu")
_SHARES = (
    "cpus_per_task",
    "cpus_per_gpu",
    "gpus",
    "gpus_per_node",
    "gpus_per_task",
    "memory",
    "memory_per_cpu",
)
# A launch that says nothing of these has what the scheduler gives it by default, which no script tells.
_MEMORY = ("memory", "memory_per_cpu")
_OTHER = "the run has one number for all of its launches"


class JobSteps:
    """The launches of a script: each begins with what the job has, whatever another asks for.

    A script with one launch is that launch, so that its numbers hold.
    """

    __slots__ = ("_counts", "_job", "_most", "_nodes", "_open", "_said", "_several", "_wanted")

    def __init__(self, wanted: WantedAllocation, several: bool) -> None:
        self._wanted, self._several = wanted, several
        self._job = {name: getattr(wanted, name) for name in (*_RANKS, *_SHARES)}
        self._nodes = {name: wanted.at[name] for name in self._job if name in wanted.at}
        self._counts: dict[int, tuple[int, int]] = {}
        self._most: tuple[int, dict[str, int | None]] = (0, {})
        self._said: list[tuple[str, int, SourceNode]] = []
        self._open = set[str]()

    def begin(self) -> None:
        """Begin a launch: it has the numbers of the job until its own options say others."""
        if self._several:
            for name, value in self._job.items():
                setattr(self._wanted, name, value)
                self._wanted.at.pop(name, None)

    def end(self, number: int, has_starter: bool) -> int:
        """End the launch of an item, and return how many ranks it starts."""
        wanted = self._wanted
        ranks = (wanted.tasks_on_node or 1) * wanted.node_count
        if self._several:
            # With fewer tasks than nodes, srun leaves nodes out (srun(1), Slurm 25.05, --nodes).
            ranks = min(ranks, wanted.tasks or ranks)
            if has_starter and ranks > 1:
                self._counts[number] = (wanted.tasks or ranks, wanted.node_count)
            if ranks > self._most[0]:
                self._most = (ranks, {name: getattr(wanted, name) for name in _RANKS})
            own = _SHARES if ranks == 1 else self._job  # one rank starts as it is written, without a launcher
            self._said += [
                (name, getattr(wanted, name), wanted.at[name]) for name in own if name in wanted.at
            ]
            self._open |= {name for name in _MEMORY if getattr(wanted, name) is None}
        return ranks

    @property
    def has_more_nodes_than_one(self) -> bool:
        """Whether one of several launches has several nodes."""
        return any(nodes > 1 for _, nodes in self._counts.values())

    def settle(self) -> dict[int, tuple[int, int]]:
        """Give the job the most that a launch asks for; return the launches' ranks and nodes if they differ."""
        if not self._several:
            return {}
        if len(set(self._counts.values())) > 1:
            return self._counts
        wanted = self._wanted
        for name in _SHARES:
            asked = [value for said, value, _ in self._said if said == name and name not in self._open]
            setattr(wanted, name, max(asked, default=None) if self._job[name] is None else self._job[name])
        for name, value in self._most[1].items():
            setattr(wanted, name, value)
        for name, value, node in self._said:
            if value == getattr(wanted, name):
                wanted.at[name] = node
            else:
                node.account.remark(node.path, "dropped", "", _OTHER)
        wanted.at |= self._nodes
        return {}
