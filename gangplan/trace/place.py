"""What a trace of a standing object works on: the object, the cluster, its team where it has one."""

from __future__ import annotations

from typing import Any

from gangplan.model.site import Site, Tenant
from gangplan.records import dataclass
from gangplan.trace.cause import Cause
from gangplan.trace.files import Files
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class StandingPlace:
    """One object that stands on a cluster, as generated, and the files that it is made from.

    `tenant` is None for an object of the platform.
    """

    workspace: Workspace
    name: str
    site: Site
    tenant: Tenant | None
    files: Files
    body: Any

    def cluster(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """A field of the cluster's file."""
        return self.files.cause("cluster", *path, because=because, key=key)

    def team(self, *path: str | int, because: str = "", key: bool = False) -> Cause:
        """A field of the tenant's own file."""
        return self.files.cause("team", *path, because=because, key=key)

    def team_of(self, team: str, *path: str | int, because: str = "") -> Cause:
        """A field of the file of any team."""
        files = Files(team=self.workspace.teams[team].document)
        return files.cause("team", *path, because=because)

    def value(self, role: str, *path: str | int) -> Any:
        """What a file says."""
        return self.files.value(role, *path)

    def word(self, word: str) -> Any:
        """What a word of a table stands for."""
        name = self.body["metadata"]["name"]
        if word == "pool":  # behind a flavor, or that grows
            return next(
                (one.pool for one in self.site.flavors if one.name == name), name.removeprefix("provision-")
            )
        if word == "holder":  # the team or cohort behind a queue or a Cohort
            queue = next((one.team for one in self.site.queues if one.name == name), name)
            return ("cohorts", name) if self.body["kind"] == "Cohort" else ("teams", queue)
        words = {"name": name, "kind": self.body["kind"], "cluster": self.name, "source": self.site.source}
        if self.tenant is not None:
            words |= {"team": self.tenant.team, "source": self.tenant.source}
        return words[word]

    def gang(self) -> Cause:
        """What starts the pods of a run together, as a cause that does not show."""
        return self.cluster("gang").aside()
