"""Causes of quotas, limits and bounds: the fields of a cluster file that they are calculated from
(resolve/quota.py)."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.spec.nodes import find_spec_field_of_resource
from gangplan.trace import rails
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.files import build_own_cause
from gangplan.trace.place import ClusterObjectContext


def trace_pool_capacity_causes(place: ClusterObjectContext, pool: str, resource: str) -> list[Cause]:
    """Return what decides how much of a resource a pool has: its number of nodes and the amount per node."""
    at: FieldPath = ("nodePools", pool)
    autoscaled = place.files.has("cluster", *at, "autoscale")
    nodes = place.cluster(*at, *(("autoscale", "most") if autoscaled else ("count",)))
    counted = place.cluster("kueue", "resources").aside()  # what Kueue ignores, or counts as something else
    found = [nodes, place.cluster(*at, "gpu", "count").aside(), counted]
    if resource in ("cpu", "memory"):
        daemons = place.cluster(*at, "daemons", resource, because="what DaemonSets take of each node")
        return [*found, place.cluster(*at, resource), daemons]
    devices = rails.trace_rdma_name_causes(place.files, pool)
    gpu = place.value("cluster", *at, "gpu")
    is_gpu = gpu and (gpu.get("resource") or "nvidia.com/gpu") == resource
    if holder := (*at, "gpu") if is_gpu else rails.find_rail_path(place.files, pool, resource):
        return [*found, place.cluster(*holder, "count"), *devices]
    if place.files.has("cluster", *at, *find_spec_field_of_resource(resource)):
        return [*found, place.cluster(*at, *find_spec_field_of_resource(resource)), *devices]
    others = [str(one) for one in place.value("cluster", "nodePools") or {} if one != pool]
    offering = [
        place.cluster("nodePools", one, *find_spec_field_of_resource(resource)).aside() for one in others
    ]
    offering += [cause for one in others for cause in rails.trace_rdma_name_causes(place.files, one)]
    return [build_own_cause(f"pool {pool} has no {resource}"), *mark_indirect(found), *devices, *offering]


def trace_pool_share_causes(
    place: ClusterObjectContext, share: FieldPath, pool: str, resource: str
) -> list[Cause]:
    """Return the causes of the amount of a share of a pool; `share` is its path in the cluster's file."""
    written = place.value("cluster", *share) or {}
    is_gpu = bool(place.value("cluster", "nodePools", pool, "gpu"))
    measure = "gpus" if is_gpu else "cpu"
    found = trace_pool_capacity_causes(place, pool, resource)
    if found[0].where is None:
        return found  # the pool has none of it
    # Shares are proportional, so the pool's amount of the measure counts too.
    facts = mark_indirect([*found, *trace_pool_capacity_causes(place, pool, "cpu")])
    gpu = place.value("cluster", "nodePools", pool, "gpu", "resource") or "nvidia.com/gpu"
    own_field = resource if resource in ("cpu", "memory") else "gpus" if resource == gpu else ""
    if not place.files.has("cluster", *share):
        return [place.cluster(*share, because="a pool that is left out has none"), *facts]
    if own_field in written:
        return [place.cluster(*share, own_field), *facts]
    other: FieldPath = ("disk",) if resource == "ephemeral-storage" else ("devices", resource)
    if place.files.has("cluster", *share, *other):
        return [place.cluster(*share, *other), *facts]
    words = f"its part of the pool, in proportion to {measure}"
    stated = [place.cluster(*share, own_field).aside()] if own_field else []
    return [place.cluster(*share, measure, because=words), *facts, *stated]


def trace_nominal_quota_causes(
    place: ClusterObjectContext, holder: FieldPath, pool: str, resource: str
) -> list[Cause]:
    """Return the causes of the nominal quota of a holder (`teams` or `cohorts`, name) in a pool."""
    stated = place.cluster(*holder, "quota")
    if stated.is_written or holder[0] == "cohorts":
        return trace_pool_share_causes(place, (*holder, "quota", pool), pool, resource)
    rest = build_own_cause(f"what stated quotas leave of pool {pool}, shared by weight")
    facts = [
        *trace_pool_capacity_causes(place, pool, resource),
        *trace_pool_capacity_causes(place, pool, "cpu"),
    ]
    return [rest, *mark_indirect(facts), *_trace_pool_sharing_causes(place, pool), stated.aside()]


def _trace_pool_sharing_causes(place: ClusterObjectContext, pool: str) -> list[Cause]:
    """Return the quotas and weights of all that share a pool, as indirect causes."""
    found = []
    for kind in ("teams", "cohorts"):
        for name in place.value("cluster", kind) or {}:
            found += [place.cluster(kind, name, "quota"), place.cluster(kind, name, "weight")]
            found.append(place.cluster(kind, name, "quota", pool))
    return mark_indirect(found)


def trace_borrow_or_lend_limit_causes(
    place: ClusterObjectContext, holder: FieldPath, kind: str, pool: str, resource: str
) -> list[Cause]:
    """Return the causes of a limit on borrowing or lending."""
    share: FieldPath = (*holder, kind, pool)
    return [*trace_pool_share_causes(place, share, pool, resource), place.cluster(*holder, kind).aside()]


def trace_queue_maximum_causes(place: ClusterObjectContext, team: str, resource: str) -> list[Cause]:
    """Return the causes of the most that a team's queue can ever give: all that its cohorts share."""
    most = build_own_cause(
        f"the most {resource} that the queue of team {team} can ever give, with all that it may borrow"
    )
    facts = [
        cause
        for pool in place.value("cluster", "nodePools") or {}
        for one in (resource, "cpu")
        for cause in trace_pool_capacity_causes(place, str(pool), one)
    ]
    return [most, *mark_indirect(facts), place.cluster("teams").aside(), place.cluster("cohorts").aside()]


def trace_limit_range_bound_causes(place: ClusterObjectContext, kind: str, resource: str) -> list[Cause]:
    """Return the causes of a bound in a LimitRange: the largest node, which also caps a default."""
    pools = place.value("cluster", "nodePools") or {}
    facts = mark_indirect(
        [
            place.cluster("nodePools", pool, *field)
            for pool in pools
            for field in ((resource,), ("daemons", resource))
        ]
    )
    if kind == "max":
        return [
            build_own_cause(f"no container is larger than the largest node: its {resource} for runs"),
            *facts,
        ]
    return [
        build_own_cause("what a container gets that states nothing: a debug container, never a worker"),
        *facts,
    ]
