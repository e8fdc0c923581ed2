"""The context in which an object of a cluster is traced: the object, the cluster, and any team."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath
from gangplan.model.site import Site, Tenant
from gangplan.records import dataclass
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.files import TracedFiles, build_own_cause
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ClusterObjectContext:
    """A generated object of a cluster's platform or of a tenant, and the files that it comes from.

    `tenant` is None for an object of the platform.
    """

    workspace: Workspace
    name: str
    site: Site
    tenant: Tenant | None
    files: TracedFiles
    body: Any

    def cluster(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """Return a field of the cluster's file as a cause."""
        return self.files.cause("cluster", *path, because=because, key=key)

    def team(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """Return a field of the tenant's own file as a cause."""
        return self.files.cause("team", *path, because=because, key=key)

    def team_of(self, team: str, *path: str | int, because: str = "") -> Cause:
        """Return a field of any team's file as a cause."""
        files = TracedFiles(team=self.workspace.teams[team].document)
        return files.cause("team", *path, because=because)

    def value(self, role: str, *path: str | int) -> Any:
        """Return the value in a file."""
        return self.files.value(role, *path)

    def word(self, word: str) -> Any:
        """Return the value of a placeholder in a table."""
        name = self.body["metadata"]["name"]
        if word == "pool":  # the flavor's pool, or one that grows
            return next(
                (one.pool for one in self.site.flavors if one.name == name), name.removeprefix("provision-")
            )
        if word == "holder":  # the team of a queue, or the cohort of a Cohort
            queue = next((one.team for one in self.site.queues if one.name == name), name)
            return ("cohorts", name) if self.body["kind"] == "Cohort" else ("teams", queue)
        words = {"name": name, "kind": self.body["kind"], "cluster": self.name, "source": self.site.source}
        if self.tenant is not None:
            words |= {"team": self.tenant.team, "source": self.tenant.source}
        return words[word]

    def gang(self) -> Cause:
        """Return the setting that makes the pods of a run start together, as an indirect cause."""
        return self.cluster("gang").aside()


def trace_topology_level_causes(place: ClusterObjectContext) -> list[Cause]:
    """Return the labels of all topology levels of the cluster."""
    count = len(place.value("cluster", "topology") or ())
    return [place.cluster("topology", index, "label") for index in range(count)]


def trace_topology_name_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of metadata.name of a Topology."""
    return [*trace_topology_level_causes(place), *list_pools_with_topology(place)]


def list_pools_with_topology(place: ClusterObjectContext) -> list[Cause]:
    """Return the pools that are placed by topology; without any, no Topology exists."""
    pools = place.value("cluster", "nodePools") or {}
    return mark_indirect([place.cluster("nodePools", pool, "topology") for pool in pools] + [place.gang()])


def trace_level_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a level of a Topology."""
    return [place.cluster("topology", stars[0], "label"), *list_pools_with_topology(place)]


def find_flavor_pool(place: ClusterObjectContext, flavor: str) -> str:
    """Return the node pool of a flavor."""
    return next((one.pool for one in place.site.flavors if one.name == flavor), flavor)


def trace_flavor_name_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of metadata.name of a ResourceFlavor."""
    return trace_flavor_causes(place, place.body["metadata"]["name"])


def trace_flavor_causes(place: ClusterObjectContext, flavor: str) -> list[Cause]:
    """Return the causes of a flavor's name, wherever it stands: its pool, and what its hash is of."""
    pool = find_flavor_pool(place, flavor)
    named = place.cluster("nodePools", pool, because=f"node pool {pool}", key=True).aside()
    if pool == flavor:
        return [
            named,
            build_own_cause("a flavor is named after its node pool"),
            place.cluster("nodePools", pool, "topology").aside(),
        ]
    hashed = build_own_cause("a flavor with a topology cannot change, so its name says what it contains")
    parts = [place.cluster("nodePools", pool, field) for field in ("labels", "topology", "taints")]
    return [
        named,
        hashed,
        *mark_indirect([*parts, *trace_topology_level_causes(place), place.cluster("versions", "kueue")]),
    ]


def trace_flavor_topology_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of the Topology that a ResourceFlavor names."""
    pool = find_flavor_pool(place, place.body["metadata"]["name"])
    return [
        place.cluster("nodePools", pool, "topology").aside(),
        *trace_topology_level_causes(place),
        *list_pools_with_topology(place),
    ]
