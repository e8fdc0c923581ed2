"""`gangplan retire`: which runs are over according to its flags, and what a cluster reported about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from gangplan.model.statuses import RunStatus
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class RunSelection:
    """Which runs are over. `older_s` limits the other choices, or selects by itself without another.

    `statuses` are those of one cluster; `now_s` is in seconds since 1970.
    """

    is_superseded: bool = False
    statuses: Sequence[RunStatus] | None = None
    cluster: str = ""  # that of the statuses
    older_s: int | None = None
    now_s: int = 0
    clusters: tuple[str, ...] = ()  # only these; empty is all
    by_name: dict[str, list[RunStatus]] = field(default_factory=dict)

    def takes(self, cluster: str) -> bool:
        """Return whether runs on a cluster are selected."""
        return not self.clusters or cluster in self.clusters

    def named(self, name: str) -> Sequence[RunStatus]:
        """Return what the cluster reported about a run."""
        if not self.by_name:
            for one in self.statuses or ():
                self.by_name.setdefault(one.name, []).append(one)
        return self.by_name.get(name, ())
