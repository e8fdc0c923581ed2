"""Admission checks, their parameters, all pools at once: where these fields come from."""

from __future__ import annotations

from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.files import own
from gangplan.trace.flavors import flavor_causes
from gangplan.trace.place import StandingPlace


def holder_of(place: StandingPlace) -> Path:
    """The team or cohort behind a queue or a Cohort."""
    return tuple(place.word("holder"))


def concurrent(place: StandingPlace, stars: Path) -> list[Cause]:
    """spec.concurrentAdmissionPolicy of a ClusterQueue."""
    holder = (*holder_of(place), "concurrentAdmission")
    if stars[0] == "mode":
        return [place.cluster(*holder, "migration")]
    bounds = place.body["spec"]["concurrentAdmissionPolicy"]["migration"]["constraints"]
    pool = place.cluster(*holder, "lastAcceptablePool")
    return [pool, *asides(flavor_causes(place, bounds["lastAcceptableFlavorName"]))]


def checks(place: StandingPlace, stars: Path) -> list[Cause]:
    """spec.admissionChecksStrategy of a ClusterQueue."""
    strategy = place.body["spec"]["admissionChecksStrategy"]["admissionChecks"]
    name = strategy[stars[0]]["name"] if stars else ""
    if place.files.has("cluster", "admissionChecks", name):
        own_of = ("admissionChecks", name)
        if "onFlavors" in stars:
            quota = place.cluster(*holder_of(place), "quota")
            around = [*_flavor_of_check(place, stars), quota]
            return [place.cluster(*own_of, "pools"), *asides(around)]
        around = [place.cluster(*own_of, field).aside() for field in ("teams", "pools")]
        return [place.cluster(*own_of, because=f"admission check {name}", key=True), *around]
    pools = place.value("cluster", "nodePools") or {}
    growing = [place.cluster("nodePools", pool, "autoscale") for pool in pools]
    holder = place.cluster(*holder_of(place), "quota")
    flavor = _flavor_of_check(place, stars)
    why = own("checks for pools that grow, and for handing runs to worker clusters")
    return [why, *asides([*growing, place.cluster("multiKueue"), holder, *flavor])]


def _flavor_of_check(place: StandingPlace, stars: Path) -> list[Cause]:
    if "onFlavors" not in stars:
        return []
    strategy = place.body["spec"]["admissionChecksStrategy"]["admissionChecks"]
    return flavor_causes(place, strategy[stars[0]]["onFlavors"][stars[-1]])


def _autoscale(place: StandingPlace, *path: str | int) -> Cause:
    pool = place.body["metadata"]["name"].removeprefix("provision-")
    return place.cluster("nodePools", pool, "autoscale", *path)


def check(place: StandingPlace, stars: Path) -> list[Cause]:
    """Name and spec of an AdmissionCheck, the name of its parameters."""
    name = place.body["metadata"]["name"]
    if place.files.has("cluster", "admissionChecks", name):
        if stars:
            return [place.cluster("admissionChecks", name, "controller")]
        return [place.cluster("admissionChecks", name, because=f"admission check {name}", key=True)]
    if name.startswith("provision-"):
        return [own("a check of this name asks for nodes of a pool that grows"), _autoscale(place).aside()]
    return [own("a check of this name hands runs to worker clusters"), place.cluster("multiKueue").aside()]
