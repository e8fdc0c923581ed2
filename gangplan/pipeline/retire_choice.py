"""`gangplan retire`: what its flags say about which runs are over, and what a cluster reported about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from gangplan.model.statuses import RunStatus
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """Which runs are over. `older_s` limits the others, or selects by itself where there is no other.

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
        """Whether runs on a cluster are asked about."""
        return not self.clusters or cluster in self.clusters

    def named(self, name: str) -> Sequence[RunStatus]:
        """What the cluster reported about a run."""
        if not self.by_name:
            for one in self.statuses or ():
                self.by_name.setdefault(one.name, []).append(one)
        return self.by_name.get(name, ())
