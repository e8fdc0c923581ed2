"""Causes of the fields of a cluster's own objects (generators in PLATFORM_GENERATORS)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gangplan.findings import FieldPath
from gangplan.trace import rails
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.files import build_own_cause
from gangplan.trace.place import (
    ClusterObjectContext,
    find_flavor_pool,
    trace_flavor_causes,
    trace_flavor_name_causes,
    trace_flavor_topology_causes,
    trace_level_causes,
    trace_topology_name_causes,
)
from gangplan.trace.quotas import trace_borrow_or_lend_limit_causes, trace_nominal_quota_causes
from gangplan.trace.table import CauseRow, CauseTable


def holder_of(place: ClusterObjectContext) -> FieldPath:
    """Return the path of the team of a queue, or of the cohort of a Cohort."""
    return tuple(place.word("holder"))


def trace_concurrent_admission_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of spec.concurrentAdmissionPolicy of a ClusterQueue."""
    holder = (*holder_of(place), "concurrentAdmission")
    if stars[0] == "mode":
        return [place.cluster(*holder, "migration")]
    bounds = place.body["spec"]["concurrentAdmissionPolicy"]["migration"]["constraints"]
    pool = place.cluster(*holder, "lastAcceptablePool")
    return [pool, *mark_indirect(trace_flavor_causes(place, bounds["lastAcceptableFlavorName"]))]


def trace_admission_checks_strategy_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of spec.admissionChecksStrategy of a ClusterQueue."""
    strategy = place.body["spec"]["admissionChecksStrategy"]["admissionChecks"]
    name = strategy[stars[0]]["name"] if stars else ""
    if place.files.has("cluster", "admissionChecks", name):
        own_of = ("admissionChecks", name)
        if "onFlavors" in stars:
            quota = place.cluster(*holder_of(place), "quota")
            around = [*_trace_check_flavor_causes(place, stars), quota]
            return [place.cluster(*own_of, "pools"), *mark_indirect(around)]
        around = [place.cluster(*own_of, field).aside() for field in ("teams", "pools")]
        return [place.cluster(*own_of, because=f"admission check {name}", key=True), *around]
    pools = place.value("cluster", "nodePools") or {}
    growing = [place.cluster("nodePools", pool, "autoscale") for pool in pools]
    holder = place.cluster(*holder_of(place), "quota")
    flavor = _trace_check_flavor_causes(place, stars)
    why = build_own_cause("checks for pools that grow, and for handing runs to worker clusters")
    return [why, *mark_indirect([*growing, place.cluster("multiKueue"), holder, *flavor])]


def _trace_check_flavor_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    if "onFlavors" not in stars:
        return []
    strategy = place.body["spec"]["admissionChecksStrategy"]["admissionChecks"]
    return trace_flavor_causes(place, strategy[stars[0]]["onFlavors"][stars[-1]])


def _trace_autoscale_cause(place: ClusterObjectContext, *path: str | int) -> Cause:
    pool = place.body["metadata"]["name"].removeprefix("provision-")
    return place.cluster("nodePools", pool, "autoscale", *path)


def trace_admission_check_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of name and spec of an AdmissionCheck, and of the name of its parameters."""
    name = place.body["metadata"]["name"]
    if place.files.has("cluster", "admissionChecks", name):
        if stars:
            return [place.cluster("admissionChecks", name, "controller")]
        return [place.cluster("admissionChecks", name, because=f"admission check {name}", key=True)]
    if name.startswith("provision-"):
        return [
            build_own_cause("a check of this name asks for nodes of a pool that grows"),
            _trace_autoscale_cause(place).aside(),
        ]
    return [
        build_own_cause("a check of this name hands runs to worker clusters"),
        place.cluster("multiKueue").aside(),
    ]


def rules(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of alerts and recording rules: files give the teams and a few numbers."""
    queues = [place.gang(), place.cluster("monitoring").aside()]
    if place.body["spec"]["groups"][stars[0]].get("name") == "gangplan.teams":
        return [*_trace_team_rule_causes(place, stars), *queues]
    around = [
        place.cluster("monitoring", "pending"),
        place.cluster("podsReadyTimeout"),
        place.cluster("versions", "trainer"),
        *(place.cluster("nodePools", pool, "gpu") for pool in place.value("cluster", "nodePools") or {}),
    ]
    return [
        build_own_cause("what gangplan records and alerts on, on every cluster"),
        *mark_indirect(around),
        *queues,
    ]


def _trace_team_rule_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    if "labels" not in stars:
        return [build_own_cause("a series per team, so that others can be joined with it")]
    queue = place.site.queues[int(stars[2])]
    if stars[-1] == "namespace":
        return [place.team_of(queue.team, "namespace")]
    if stars[-1] == "cluster_queue":
        return [place.cluster("teams", queue.team, "clusterQueue")]
    return [place.cluster("teams", queue.team, because=f"team {queue.team}", key=True)]


def _trace_priority_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    name = place.body["metadata"]["name"].removeprefix("training-")
    listed = place.value("cluster", "limits", "priorities") or []
    at = (listed.index(name),) if name in listed else ()
    words = "" if at else "the priorities that every cluster has unless it lists its own"
    return [place.cluster("limits", "priorities", *at, because=words), place.gang()]


def _trace_cohort_name_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    name = place.body["metadata"]["name"]
    words = (
        ""
        if place.files.has("cluster", "cohorts")
        else "the one cohort that there is unless the file has its own"
    )
    return [place.cluster("cohorts", name, because=words or f"cohort {name}", key=True), place.gang()]


def _trace_namespace_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    team = str(holder_of(place)[1])
    stated = place.team_of(team, "namespace")
    return [
        stated if stated.is_written else place.team_of(team, "namespace", because=f"named after team {team}")
    ]


def _trace_preemption_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    field = "borrowWithinCohort" if stars[0] == "borrowWithinCohort" else str(stars[0])
    holder = holder_of(place)
    if place.files.has("cluster", *holder, "preemption"):
        return [place.cluster(*holder, "preemption", field), place.cluster("preemption", field).aside()]
    return [place.cluster("preemption", field), place.cluster(*holder, "preemption").aside()]


# Fields of a pool that add resources of their own.
OTHERS = ("disk", "hugePages", "devices")


def _trace_covered_resource_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    pools = place.value("cluster", "nodePools") or {}
    devices = [cause for one in pools for cause in rails.trace_rdma_name_causes(place.files, one)]
    others = [place.cluster("nodePools", one, field).aside() for one in pools for field in OTHERS]
    settings = place.cluster("kueue", "resources").aside()
    return [
        build_own_cause("every resource that some pool of the cluster offers"),
        *devices,
        *others,
        settings,
    ]


def _read_flavor_and_resource(place: ClusterObjectContext, stars: FieldPath) -> tuple[str, str]:
    """Return flavor and resource of a quota's path."""
    flavor = place.body["spec"]["resourceGroups"][0]["flavors"][stars[0]]
    resource = flavor["resources"][stars[1]]["name"] if len(stars) > 1 else ""
    return flavor["name"], resource


def _trace_quota_flavor_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    name, _ = _read_flavor_and_resource(place, stars)
    quota = place.cluster(*holder_of(place), "quota").aside()
    return [*trace_flavor_causes(place, name), quota]


def _trace_quota_amount_causes(
    place: ClusterObjectContext, stars: FieldPath, field: str, causes: Callable[..., list[Cause]]
) -> list[Cause]:
    """Return the causes of an amount of a quota, including resources that Kueue transforms into it."""
    name, resource = _read_flavor_and_resource(place, stars)
    holder, pool, rules = holder_of(place), find_flavor_pool(place, name), place.site.manager.transformations
    made = [one.resource for one in rules if resource in dict(one.outputs)]
    if not made:
        return causes(place, holder, pool=pool, resource=resource)
    at: FieldPath = ("kueue", "resources", "transformations")
    factors = [place.cluster(*at, one, "outputs", resource) for one in made]
    of_inputs = [cause for one in made for cause in causes(place, holder, pool=pool, resource=one)]
    item = place.body["spec"]["resourceGroups"][0]["flavors"][stars[0]]["resources"][stars[1]]
    if str(item.get(field)) == "0":
        factors = [
            build_own_cause(f"{' and '.join(made)}, which it is counted for, are not there"),
            *mark_indirect(factors),
        ]
    return [*factors, *mark_indirect(of_inputs), place.cluster("kueue", "resources").aside()]


def _trace_nominal_quota_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return _trace_quota_amount_causes(place, stars, "nominalQuota", trace_nominal_quota_causes)


def _trace_borrowing_limit_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return _trace_quota_amount_causes(
        place, stars, "borrowingLimit", partial(trace_borrow_or_lend_limit_causes, kind="borrow")
    )


def _trace_lending_limit_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return _trace_quota_amount_causes(
        place, stars, "lendingLimit", partial(trace_borrow_or_lend_limit_causes, kind="lend")
    )


def _trace_worker_cluster_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    if place.body["kind"] == "MultiKueueConfig" and stars:
        name = place.body["spec"]["clusters"][stars[0]]
    else:
        name = place.body["metadata"]["name"]
    return [place.cluster("multiKueue", "clusters", name, because=f"worker cluster {name}", key=True)]


def _trace_remaining_field_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return [
        build_own_cause(f"gangplan writes it for every cluster ({place.body['kind']})"),
        *_trace_object_existence_causes(place),
    ]


def _trace_object_existence_causes(place: ClusterObjectContext) -> list[Cause]:
    """Return what decides whether an object of this kind exists at all."""
    kind = place.body["kind"]
    if kind in ("PrometheusRule", "ConfigMap"):
        return [place.cluster("monitoring").aside()]
    if kind == "ClusterRole":
        return [place.cluster("gitopsOnly").aside()]
    return [] if kind == "PriorityClass" else [place.gang()]


_META: tuple[CauseRow, ...] = (
    ("metadata labels *", "= gangplan writes it for every cluster"),
    ("metadata annotations gangplan.dev/source", "cluster: the cluster's file is {source}"),
    (
        "metadata annotations gangplan.dev/inputs",
        "= the exporters without which these rules say nothing | ~cluster.gang",
    ),
    ("metadata annotations *", "= the same for every cluster"),
)
_MANAGED: CauseRow = _META[0][0].replace("*", "app.kubernetes.io/managed-by"), _META[0][1]
_RULE_LABELS: tuple[CauseRow, ...] = (_MANAGED, ("metadata labels *", "cluster.monitoring.ruleLabels.{0}"))
_BOARD_LABELS: tuple[CauseRow, ...] = (
    _MANAGED,
    ("metadata labels *", "cluster.monitoring.dashboardLabels.{0}"),
)
_RIGHTS = (
    "= what a persona may do: the same for every cluster with these components | ~cluster.versions.trainer"
    " | ~cluster.versions.mpiOperator | ~cluster.versions.kueue | ~cluster.gang"
)
_DASHBOARD = (
    "= a dashboard: the same for every cluster with these components"
    " | ~cluster.monitoring | ~cluster.versions.kueue | ~cluster.gang"
)
_ANYTHING = (
    "= a flavor that says nothing would be refused | ~cluster.nodePools.{pool}.labels"
    " | ~cluster.nodePools.{pool}.taints | ~cluster.nodePools.{pool}.topology"
)
_NEVER = "= where Kueue decides, pods never preempt by themselves | ~cluster.gang"
_MONITORING = "cluster.monitoring.namespace | ~cluster.monitoring"
_QUOTAS = (
    ("spec resourceGroups 0 coveredResources *", _trace_covered_resource_causes),
    ("spec resourceGroups 0 flavors * name", _trace_quota_flavor_causes),
    ("spec resourceGroups 0 flavors * resources * nominalQuota", _trace_nominal_quota_causes),
    ("spec resourceGroups 0 flavors * resources * borrowingLimit", _trace_borrowing_limit_causes),
    ("spec resourceGroups 0 flavors * resources * lendingLimit", _trace_lending_limit_causes),
    ("spec resourceGroups **", _trace_covered_resource_causes),
)
_PRIORITY = CauseTable(
    ("metadata name", _trace_priority_causes),
    *_META,
    ("preemptionPolicy", _NEVER),
    ("**", _trace_priority_causes),
)
PLATFORM_TABLES: dict[str, CauseTable] = {
    "PriorityClass": _PRIORITY,
    "WorkloadPriorityClass": _PRIORITY,
    "ClusterRole": CauseTable(*_META, ("rules **", _RIGHTS), ("**", _trace_remaining_field_causes)),
    "Topology": CauseTable(
        ("metadata name", trace_topology_name_causes),
        *_META,
        ("spec levels * nodeLabel", trace_level_causes),
        ("**", _trace_remaining_field_causes),
    ),
    "ResourceFlavor": CauseTable(
        ("metadata name", trace_flavor_name_causes),
        *_META,
        ("spec nodeLabels *", "cluster.nodePools.{pool}.labels.{0}"),
        ("spec nodeTaints * *", "cluster.nodePools.{pool}.taints.{0}.{1}"),
        ("spec topologyName", trace_flavor_topology_causes),
        ("spec tolerations **", _ANYTHING),
        ("**", _trace_remaining_field_causes),
    ),
    "Cohort": CauseTable(
        ("metadata name", _trace_cohort_name_causes),
        *_META,
        ("spec parentName", "cluster.{holder}.parent"),
        ("spec fairSharing weight", "cluster.{holder}.weight"),
        *_QUOTAS,
        ("**", _trace_remaining_field_causes),
    ),
    "ClusterQueue": CauseTable(
        ("metadata name", "cluster.{holder}.clusterQueue | ~cluster.gang"),
        *_META,
        ("spec cohortName", "cluster.{holder}.cohort | ~cluster.cohorts"),
        ("spec namespaceSelector matchLabels *", _trace_namespace_causes),
        ("spec queueingStrategy", "cluster.{holder}.queueingStrategy"),
        ("spec admissionScope admissionMode", "cluster.{holder}.admissionMode"),
        ("spec concurrentAdmissionPolicy migration **", trace_concurrent_admission_causes),
        ("spec preemption * **", _trace_preemption_causes),
        ("spec fairSharing weight", "cluster.{holder}.weight"),
        ("spec admissionChecksStrategy admissionChecks **", trace_admission_checks_strategy_causes),
        *_QUOTAS,
        ("**", _trace_remaining_field_causes),
    ),
    "AdmissionCheck": CauseTable(
        *_META,
        ("metadata name", trace_admission_check_causes),
        ("spec **", trace_admission_check_causes),
        ("**", _trace_remaining_field_causes),
    ),
    "ProvisioningRequestConfig": CauseTable(
        *_META,
        ("metadata name", trace_admission_check_causes),
        ("spec provisioningClassName", "cluster.nodePools.{pool}.autoscale.provisioningClass"),
        ("spec parameters *", "cluster.nodePools.{pool}.autoscale.parameters.{0}"),
        ("spec managedResources *", "cluster.nodePools.{pool}.gpu.resource"),
        ("**", _trace_remaining_field_causes),
    ),
    "MultiKueueCluster": CauseTable(
        ("metadata name", _trace_worker_cluster_causes),
        *_META,
        ("spec clusterSource kubeConfig location", "cluster.multiKueue.clusters.{name}.kubeconfigSecret"),
        ("**", _trace_remaining_field_causes),
    ),
    "MultiKueueConfig": CauseTable(
        *_META,
        ("spec clusters *", _trace_worker_cluster_causes),
        ("metadata name", trace_admission_check_causes),
        ("**", _trace_remaining_field_causes),
    ),
    "PrometheusRule": CauseTable(
        ("metadata namespace", _MONITORING),
        _MANAGED,
        ("metadata labels *", "cluster.monitoring.ruleLabels.{0}"),
        *_META,
        ("spec groups **", rules),
        ("**", _trace_remaining_field_causes),
    ),
    "ConfigMap": CauseTable(
        ("metadata namespace", _MONITORING),
        _MANAGED,
        ("metadata labels *", "cluster.monitoring.dashboardLabels.{0}"),
        *_META,
        ("data *", _DASHBOARD),
        ("**", _trace_remaining_field_causes),
    ),
}
