"""Who of a team may do what: where each part of its role bindings comes from. And the team's namespace."""

from __future__ import annotations

from gangplan.generators.tenants import grant_name
from gangplan.model.site import DebugGrant, Tenant
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import namespace_causes
from gangplan.trace.files import own
from gangplan.trace.place import StandingPlace

GROUPS = {"viewer": "viewers", "data-scientist": "dataScientists", "mlops": "mlops", "admin": "admins"}


def tenant_of(place: StandingPlace) -> Tenant:
    assert place.tenant is not None
    return place.tenant


def namespace(place: StandingPlace, stars: Path) -> list[Cause]:
    return namespace_causes(place.files, tenant_of(place).team)


def _grants(place: StandingPlace) -> list[tuple[int, str]]:
    """The debug grants whose binding this is: by its name, which holds the last day and a hash."""
    listed = place.value("team", "debuggers") or []
    found = []
    for index, one in enumerate(listed):
        one_grant = DebugGrant(one["group"], str(one["until"]), one["reason"])
        if grant_name(one_grant) == place.body["metadata"]["name"]:
            found.append((index, one["group"]))
    return found


def grant(place: StandingPlace, stars: Path, field: str) -> list[Cause]:
    return [place.team("debuggers", index, field) for index, _ in _grants(place)]


def binding_name(place: StandingPlace, stars: Path) -> list[Cause]:
    grants = _grants(place)
    if grants:
        return [cause for index, _ in grants for cause in _named_grant(place, index)]
    return role(place, stars)


def _named_grant(place: StandingPlace, index: int) -> list[Cause]:
    return [place.team("debuggers", index, field) for field in ("until", "group", "reason")]


def role(place: StandingPlace, stars: Path) -> list[Cause]:
    if place.body["metadata"]["name"] == "gangplan-scheduler":
        return [place.cluster("schedules", because="CronJobs of the cluster start the runs of schedules")]
    if place.body["metadata"]["name"].startswith("training-"):
        return [
            own("OpenShift: images run as their own user"),
            place.cluster("versions", "openshift").aside(),
        ]
    if _grants(place):
        return [own("who may open a shell in pods has the role of a debugger")]
    around = [place.cluster("gitopsOnly").aside(), *asides(_members(place))]
    return [own("the role of a persona; where only Git writes, everybody looks"), *around]


def _members(place: StandingPlace) -> list[Cause]:
    return [
        place.team("groups", field, index)
        for field in GROUPS.values()
        for index in range(len(place.value("team", "groups", field) or ()))
    ]


def _group(place: StandingPlace, stars: Path) -> list[Cause]:
    if grants := _grants(place):
        return [place.team("debuggers", index, "group") for index, _ in grants]
    name = place.body["subjects"][stars[0]]["name"]
    found = [cause for cause in _members(place) if place.value("team", *cause.field) == name]
    others = asides(cause for cause in _members(place) if cause not in found)
    return [*found, *others, place.cluster("gitopsOnly").aside()]


def subject(place: StandingPlace, stars: Path) -> list[Cause]:
    """Who is bound: groups of the team's file, or on OpenShift the account of the pods."""
    is_account = place.body["subjects"][stars[0]].get("kind") == "ServiceAccount"
    return role(place, stars) if is_account else _group(place, stars)


def subject_kind(place: StandingPlace, stars: Path) -> list[Cause]:
    """What kind of subject is bound: the same for every group, there as long as the group is."""
    return [
        own("groups of the identity provider, or on OpenShift the pods' account"),
        *asides(subject(place, stars)),
    ]
