"""Fields of a team's LocalQueues: where each comes from."""

from __future__ import annotations

from gangplan.trace.bindings import tenant_of
from gangplan.trace.cause import Cause, Path
from gangplan.trace.place import StandingPlace


def queue_name(place: StandingPlace, stars: Path) -> list[Cause]:
    """metadata.name of a LocalQueue."""
    holder, name = ("teams", tenant_of(place).team), place.body["metadata"]["name"]
    own = place.cluster(*holder, "queue")
    if place.value("cluster", *holder, "queue") == name:
        return [own, place.gang()]
    stated = place.cluster(*holder, "localQueues", name, because=f"LocalQueue {name}", key=True)
    return [stated, own.aside(), place.gang()]
