"""Fields of alert rules and dashboards: where each comes from."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.files import own
from gangplan.trace.place import StandingPlace


def rules(place: StandingPlace, stars: Path) -> list[Cause]:
    """Alerts and records: a few numbers and the teams come from files, everything else is gangplan's."""
    queues = [place.gang(), place.cluster("monitoring").aside()]
    if place.body["spec"]["groups"][stars[0]].get("name") == "gangplan.teams":
        return [*_team_rule(place, stars), *queues]
    around = [
        place.cluster("monitoring", "pending"),
        place.cluster("podsReadyTimeout"),
        place.cluster("versions", "trainer"),
        *(place.cluster("nodePools", pool, "gpu") for pool in place.value("cluster", "nodePools") or {}),
    ]
    return [own("what gangplan records and alerts on, on every cluster"), *asides(around), *queues]


def _team_rule(place: StandingPlace, stars: Path) -> list[Cause]:
    if "labels" not in stars:
        return [own("a series per team, so that others can be joined with it")]
    queue = place.site.queues[int(stars[2])]
    if stars[-1] == "namespace":
        return [place.team_of(queue.team, "namespace")]
    if stars[-1] == "cluster_queue":
        return [place.cluster("teams", queue.team, "clusterQueue")]
    return [place.cluster("teams", queue.team, because=f"team {queue.team}", key=True)]
