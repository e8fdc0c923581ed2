"""Causes of the fields of a cluster's own objects (generators in PLATFORM_GENERATORS)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gangplan.trace import rails
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.files import own
from gangplan.trace.place import (
    StandingPlace,
    flavor_causes,
    flavor_name,
    level,
    pool_of,
    topology_name,
    topology_of,
)
from gangplan.trace.quotas import limit_causes, nominal_causes
from gangplan.trace.table import Row, Table


def holder_of(place: StandingPlace) -> Path:
    """Return the path of the team of a queue, or of the cohort of a Cohort."""
    return tuple(place.word("holder"))


def concurrent(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of spec.concurrentAdmissionPolicy of a ClusterQueue."""
    holder = (*holder_of(place), "concurrentAdmission")
    if stars[0] == "mode":
        return [place.cluster(*holder, "migration")]
    bounds = place.body["spec"]["concurrentAdmissionPolicy"]["migration"]["constraints"]
    pool = place.cluster(*holder, "lastAcceptablePool")
    return [pool, *asides(flavor_causes(place, bounds["lastAcceptableFlavorName"]))]


def checks(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of spec.admissionChecksStrategy of a ClusterQueue."""
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
    """Return the causes of name and spec of an AdmissionCheck, and of the name of its parameters."""
    name = place.body["metadata"]["name"]
    if place.files.has("cluster", "admissionChecks", name):
        if stars:
            return [place.cluster("admissionChecks", name, "controller")]
        return [place.cluster("admissionChecks", name, because=f"admission check {name}", key=True)]
    if name.startswith("provision-"):
        return [own("a check of this name asks for nodes of a pool that grows"), _autoscale(place).aside()]
    return [own("a check of this name hands runs to worker clusters"), place.cluster("multiKueue").aside()]


def rules(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of alerts and recording rules: files give the teams and a few numbers."""
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


def _priority(place: StandingPlace, stars: Path) -> list[Cause]:
    name = place.body["metadata"]["name"].removeprefix("training-")
    listed = place.value("cluster", "limits", "priorities") or []
    at = (listed.index(name),) if name in listed else ()
    words = "" if at else "the priorities that every cluster has unless it lists its own"
    return [place.cluster("limits", "priorities", *at, because=words), place.gang()]


def _cohort_name(place: StandingPlace, stars: Path) -> list[Cause]:
    name = place.body["metadata"]["name"]
    words = (
        ""
        if place.files.has("cluster", "cohorts")
        else "the one cohort that there is unless the file has its own"
    )
    return [place.cluster("cohorts", name, because=words or f"cohort {name}", key=True), place.gang()]


def _home(place: StandingPlace, stars: Path) -> list[Cause]:
    team = str(holder_of(place)[1])
    stated = place.team_of(team, "namespace")
    return [
        stated if stated.is_written else place.team_of(team, "namespace", because=f"named after team {team}")
    ]


def _preempt(place: StandingPlace, stars: Path) -> list[Cause]:
    field = "borrowWithinCohort" if stars[0] == "borrowWithinCohort" else str(stars[0])
    holder = holder_of(place)
    if place.files.has("cluster", *holder, "preemption"):
        return [place.cluster(*holder, "preemption", field), place.cluster("preemption", field).aside()]
    return [place.cluster("preemption", field), place.cluster(*holder, "preemption").aside()]


# Fields of a pool that add resources of their own.
OTHERS = ("disk", "hugePages", "devices")


def _covered(place: StandingPlace, stars: Path) -> list[Cause]:
    pools = place.value("cluster", "nodePools") or {}
    devices = [cause for one in pools for cause in rails.resources(place.files, one)]
    others = [place.cluster("nodePools", one, field).aside() for one in pools for field in OTHERS]
    settings = place.cluster("kueue", "resources").aside()
    return [own("every resource that some pool of the cluster offers"), *devices, *others, settings]


def _flavors_of(place: StandingPlace, stars: Path) -> tuple[str, str]:
    """Return flavor and resource of a quota's path."""
    flavor = place.body["spec"]["resourceGroups"][0]["flavors"][stars[0]]
    resource = flavor["resources"][stars[1]]["name"] if len(stars) > 1 else ""
    return flavor["name"], resource


def _quota_flavor(place: StandingPlace, stars: Path) -> list[Cause]:
    name, _ = _flavors_of(place, stars)
    quota = place.cluster(*holder_of(place), "quota").aside()
    return [*flavor_causes(place, name), quota]


def _amount(place: StandingPlace, stars: Path, field: str, causes: Callable[..., list[Cause]]) -> list[Cause]:
    """Return the causes of an amount of a quota, including resources that Kueue transforms into it."""
    name, resource = _flavors_of(place, stars)
    holder, pool, rules = holder_of(place), pool_of(place, name), place.site.manager.transformations
    made = [one.resource for one in rules if resource in dict(one.outputs)]
    if not made:
        return causes(place, holder, pool=pool, resource=resource)
    at: Path = ("kueue", "resources", "transformations")
    factors = [place.cluster(*at, one, "outputs", resource) for one in made]
    of_inputs = [cause for one in made for cause in causes(place, holder, pool=pool, resource=one)]
    item = place.body["spec"]["resourceGroups"][0]["flavors"][stars[0]]["resources"][stars[1]]
    if str(item.get(field)) == "0":
        factors = [own(f"{' and '.join(made)}, which it is counted for, are not there"), *asides(factors)]
    return [*factors, *asides(of_inputs), place.cluster("kueue", "resources").aside()]


def _nominal(place: StandingPlace, stars: Path) -> list[Cause]:
    return _amount(place, stars, "nominalQuota", nominal_causes)


def _borrow(place: StandingPlace, stars: Path) -> list[Cause]:
    return _amount(place, stars, "borrowingLimit", partial(limit_causes, kind="borrow"))


def _lend(place: StandingPlace, stars: Path) -> list[Cause]:
    return _amount(place, stars, "lendingLimit", partial(limit_causes, kind="lend"))


def _worker(place: StandingPlace, stars: Path) -> list[Cause]:
    if place.body["kind"] == "MultiKueueConfig" and stars:
        name = place.body["spec"]["clusters"][stars[0]]
    else:
        name = place.body["metadata"]["name"]
    return [place.cluster("multiKueue", "clusters", name, because=f"worker cluster {name}", key=True)]


def _rest(place: StandingPlace, stars: Path) -> list[Cause]:
    return [own(f"gangplan writes it for every cluster ({place.body['kind']})"), *_made(place)]


def _made(place: StandingPlace) -> list[Cause]:
    """Return what decides whether an object of this kind exists at all."""
    kind = place.body["kind"]
    if kind in ("PrometheusRule", "ConfigMap"):
        return [place.cluster("monitoring").aside()]
    if kind == "ClusterRole":
        return [place.cluster("gitopsOnly").aside()]
    return [] if kind == "PriorityClass" else [place.gang()]


_META: tuple[Row, ...] = (
    ("metadata labels *", "= gangplan writes it for every cluster"),
    ("metadata annotations gangplan.dev/source", "cluster: the cluster's file is {source}"),
    (
        "metadata annotations gangplan.dev/inputs",
        "= the exporters without which these rules say nothing | ~cluster.gang",
    ),
    ("metadata annotations *", "= the same for every cluster"),
)
_MANAGED: Row = _META[0][0].replace("*", "app.kubernetes.io/managed-by"), _META[0][1]
_RULE_LABELS: tuple[Row, ...] = (_MANAGED, ("metadata labels *", "cluster.monitoring.ruleLabels.{0}"))
_BOARD_LABELS: tuple[Row, ...] = (_MANAGED, ("metadata labels *", "cluster.monitoring.dashboardLabels.{0}"))
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
    ("spec resourceGroups 0 coveredResources *", _covered),
    ("spec resourceGroups 0 flavors * name", _quota_flavor),
    ("spec resourceGroups 0 flavors * resources * nominalQuota", _nominal),
    ("spec resourceGroups 0 flavors * resources * borrowingLimit", _borrow),
    ("spec resourceGroups 0 flavors * resources * lendingLimit", _lend),
    ("spec resourceGroups **", _covered),
)
_PRIORITY = Table(
    ("metadata name", _priority),
    *_META,
    ("preemptionPolicy", _NEVER),
    ("**", _priority),
)
PLATFORM: dict[str, Table] = {
    "PriorityClass": _PRIORITY,
    "WorkloadPriorityClass": _PRIORITY,
    "ClusterRole": Table(*_META, ("rules **", _RIGHTS), ("**", _rest)),
    "Topology": Table(
        ("metadata name", topology_name), *_META, ("spec levels * nodeLabel", level), ("**", _rest)
    ),
    "ResourceFlavor": Table(
        ("metadata name", flavor_name),
        *_META,
        ("spec nodeLabels *", "cluster.nodePools.{pool}.labels.{0}"),
        ("spec nodeTaints * *", "cluster.nodePools.{pool}.taints.{0}.{1}"),
        ("spec topologyName", topology_of),
        ("spec tolerations **", _ANYTHING),
        ("**", _rest),
    ),
    "Cohort": Table(
        ("metadata name", _cohort_name),
        *_META,
        ("spec parentName", "cluster.{holder}.parent"),
        ("spec fairSharing weight", "cluster.{holder}.weight"),
        *_QUOTAS,
        ("**", _rest),
    ),
    "ClusterQueue": Table(
        ("metadata name", "cluster.{holder}.clusterQueue | ~cluster.gang"),
        *_META,
        ("spec cohortName", "cluster.{holder}.cohort | ~cluster.cohorts"),
        ("spec namespaceSelector matchLabels *", _home),
        ("spec queueingStrategy", "cluster.{holder}.queueingStrategy"),
        ("spec admissionScope admissionMode", "cluster.{holder}.admissionMode"),
        ("spec concurrentAdmissionPolicy migration **", concurrent),
        ("spec preemption * **", _preempt),
        ("spec fairSharing weight", "cluster.{holder}.weight"),
        ("spec admissionChecksStrategy admissionChecks **", checks),
        *_QUOTAS,
        ("**", _rest),
    ),
    "AdmissionCheck": Table(*_META, ("metadata name", check), ("spec **", check), ("**", _rest)),
    "ProvisioningRequestConfig": Table(
        *_META,
        ("metadata name", check),
        ("spec provisioningClassName", "cluster.nodePools.{pool}.autoscale.provisioningClass"),
        ("spec parameters *", "cluster.nodePools.{pool}.autoscale.parameters.{0}"),
        ("spec managedResources *", "cluster.nodePools.{pool}.gpu.resource"),
        ("**", _rest),
    ),
    "MultiKueueCluster": Table(
        ("metadata name", _worker),
        *_META,
        ("spec clusterSource kubeConfig location", "cluster.multiKueue.clusters.{name}.kubeconfigSecret"),
        ("**", _rest),
    ),
    "MultiKueueConfig": Table(*_META, ("spec clusters *", _worker), ("metadata name", check), ("**", _rest)),
    "PrometheusRule": Table(
        ("metadata namespace", _MONITORING),
        _MANAGED,
        ("metadata labels *", "cluster.monitoring.ruleLabels.{0}"),
        *_META,
        ("spec groups **", rules),
        ("**", _rest),
    ),
    "ConfigMap": Table(
        ("metadata namespace", _MONITORING),
        _MANAGED,
        ("metadata labels *", "cluster.monitoring.dashboardLabels.{0}"),
        *_META,
        ("data *", _DASHBOARD),
        ("**", _rest),
    ),
}
