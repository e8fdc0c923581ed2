"""Causes of the fields of a sweep's objects on a cluster: its queues, and the cohort of its team."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.spec.sweep_files import SweepFile
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.files import build_own_cause
from gangplan.trace.place import ClusterObjectContext
from gangplan.trace.quotas import trace_borrow_or_lend_limit_causes


def is_of_sweep(place: ClusterObjectContext) -> bool:
    """Return whether an object of a cluster exists because of a sweep."""
    return _find_team_of_traced_cohort(place) is not None or _find_sweep_of_traced_queue(place) is not None


def trace_sweep_object_causes(place: ClusterObjectContext, path: FieldPath) -> list[Cause]:
    """Return the causes of a field of such an object."""
    sweep, team = _find_sweep_of_traced_queue(place), _find_team_of_traced_cohort(place)
    if sweep is not None:
        document = sweep.document
        assert document is not None
        most = Cause(
            document.where(("maxConcurrent",)),
            f"maxConcurrent of sweep {sweep.name}, whose trials wait here",
            document.file,
            ("maxConcurrent",),
        )
        around = [
            place.cluster("teams", sweep.team).aside(),
            place.cluster("nodePools").aside(),
            place.gang(),
        ]
        if path[-1:] == ("nominalQuota",):
            return [most, *around]
        return [build_own_cause("the queue of a sweep"), most.aside(), *mark_indirect(around)]
    holder: FieldPath = ("teams", str(team))
    because = build_own_cause("team and sweeps together get what the team alone would")
    around = [because, place.cluster(*holder, "weight").aside(), place.gang()]
    if path[:2] == ("spec", "fairSharing"):
        return [place.cluster(*holder, "weight"), because]
    if path[:2] == ("spec", "parentName"):
        return [place.cluster(*holder, "cohort"), because]
    if path and path[-1] in ("borrowingLimit", "lendingLimit"):
        return [*_trace_team_limit_causes(place, holder, path), because]
    return around


def _trace_team_limit_causes(place: ClusterObjectContext, holder: FieldPath, path: FieldPath) -> list[Cause]:
    """Return the causes of a limit of the team, which is that of its cohort."""
    flavor = place.body["spec"]["resourceGroups"][0]["flavors"][path[4]]
    resource = flavor["resources"][path[6]]["name"]
    pool = next((one.pool for one in place.site.flavors if one.name == flavor["name"]), flavor["name"])
    kind = "borrow" if path[-1] == "borrowingLimit" else "lend"
    return [
        *mark_indirect(trace_borrow_or_lend_limit_causes(place, holder, kind, pool, resource)),
        place.cluster(*holder, kind),
    ]


def _find_team_of_traced_cohort(place: ClusterObjectContext) -> str | None:
    """Return the team whose cohort the object is, or None."""
    if place.body["kind"] != "Cohort":
        return None
    name = place.body["metadata"]["name"]
    return next((one.team for one in place.site.queues if f"{one.name}.team" == name), None)


def _find_sweep_of_traced_queue(place: ClusterObjectContext) -> SweepFile | None:
    """Return the sweep whose queue the object is, or None."""
    kind, name = place.body["kind"], place.body["metadata"]["name"]
    for sweep in place.workspace.sweeps.values():
        if kind == "LocalQueue" and place.tenant is not None and place.tenant.team == sweep.team:
            if name == sweep.queue:
                return sweep
        elif kind == "ClusterQueue" and name.endswith(f".{sweep.queue}"):
            queues = (one for one in place.site.sweeps if one.name == name)
            if any(one.team == sweep.team for one in queues):
                return sweep
    return None
