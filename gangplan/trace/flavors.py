"""Fields of the topology and of flavors: where each comes from."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.files import own
from gangplan.trace.place import StandingPlace


def levels(place: StandingPlace) -> list[Cause]:
    count = len(place.value("cluster", "topology") or ())
    return [place.cluster("topology", index, "label") for index in range(count)]


def topology_name(place: StandingPlace, stars: Path) -> list[Cause]:
    return [*levels(place), *placed(place)]


def placed(place: StandingPlace) -> list[Cause]:
    """The pools that are placed by topology; without any there is none."""
    pools = place.value("cluster", "nodePools") or {}
    return asides([place.cluster("nodePools", pool, "topology") for pool in pools] + [place.gang()])


def level(place: StandingPlace, stars: Path) -> list[Cause]:
    return [place.cluster("topology", stars[0], "label"), *placed(place)]


def pool_of(place: StandingPlace, flavor: str) -> str:
    """The node pool behind a flavor."""
    return next((one.pool for one in place.site.flavors if one.name == flavor), flavor)


def flavor_name(place: StandingPlace, stars: Path) -> list[Cause]:
    return flavor_causes(place, place.body["metadata"]["name"])


def flavor_causes(place: StandingPlace, flavor: str) -> list[Cause]:
    pool = pool_of(place, flavor)
    named = place.cluster("nodePools", pool, because=f"node pool {pool}", key=True).aside()
    if pool == flavor:
        return [
            named,
            own("a flavor is named after its node pool"),
            place.cluster("nodePools", pool, "topology").aside(),
        ]
    hashed = own("a flavor with a topology cannot change, so its name says what it contains")
    parts = [place.cluster("nodePools", pool, field) for field in ("labels", "topology", "taints")]
    return [named, hashed, *asides([*parts, *levels(place), place.cluster("versions", "kueue")])]


def topology_of(place: StandingPlace, stars: Path) -> list[Cause]:
    pool = pool_of(place, place.body["metadata"]["name"])
    return [place.cluster("nodePools", pool, "topology").aside(), *levels(place), *placed(place)]
