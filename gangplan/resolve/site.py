"""The site of a cluster file: flavors, topology, cohorts and queues, as Kueue gets them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from gangplan.model.job import Platform
from gangplan.model.site import (
    Monitor,
    NodeTaint,
    Provisioning,
    QueueCheck,
    QueueConcurrency,
    QueuePreemption,
    RemoteCluster,
    Site,
    SiteCohort,
    SiteFlavor,
    SiteQueue,
    SiteTopology,
)
from gangplan.objects import dump_object_as_block_yaml
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.resolve.quota import (
    DEFAULT_COHORT,
    DEFAULT_WEIGHT,
    ResourceQuantities,
    cohort_of,
    compute_team_quota_shares,
    resolve_cohort_quotas,
    resolve_team_quotas,
    weight_of,
)
from gangplan.resolve.shares import list_resources_of_cluster_pools
from gangplan.resolve.tree import resolve_queue_maximum_by_flavor, sum_site_quotas_over_flavors
from gangplan.spec.cluster import Cluster
from gangplan.spec.manager import manager_settings_of
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.nodes import NodePool
from gangplan.spec.queues import Preemption, TeamQueue
from gangplan.workspace import ClusterFile, TeamFile, Workspace

MULTIKUEUE = "multikueue"


def resolve_site_without_sweeps(workspace: Workspace, cluster_name: str) -> Site:
    """Return the site of a cluster whose file has passed its checks (`check_site`)."""
    return _build_cluster_site(workspace.clusters[cluster_name], workspace.teams)


def _build_cluster_site(cluster: ClusterFile, teams: Mapping[str, TeamFile]) -> Site:
    spec, platform = cluster.spec, resolve_platform_of_cluster_file(cluster)
    source = cluster.document.file
    monitor = _build_site_monitor(spec)
    if spec.gang != "kueue" or platform.kueue is None:
        return Site(
            source,
            platform,
            spec.limits.priorities,
            monitor=monitor,
            is_gitops_only=spec.gitops_only,
            has_cronjobs=has_cronjobs(spec),
        )
    flavors = _resolve_site_flavors(spec, platform)
    names = {flavor.pool: flavor.name for flavor in flavors}
    namespaces = {name: namespace_of(spec, name, team.spec) for name, team in teams.items()}
    return Site(
        source,
        platform,
        spec.limits.priorities,
        covered=list_resources_of_cluster_pools(spec),
        topology=_build_site_topology(spec),
        flavors=flavors,
        cohorts=_resolve_site_cohorts(spec, names),
        queues=_list_cluster_queues(spec, names, namespaces),
        fair_sharing=spec.fair_sharing,
        provisioning=_list_provisioning_pools(spec),
        manager=manager_settings_of(spec),
        controllers=tuple(
            (name, check.controller)
            for name, check in sorted(spec.admission_checks.items())
            if check.controller and not check.external
        ),
        workers=_list_multikueue_workers(spec),
        monitor=monitor,
        is_gitops_only=spec.gitops_only,
        has_cronjobs=has_cronjobs(spec),
    )


def has_cronjobs(spec: Cluster) -> bool:
    """Return whether CronJobs of the cluster start scheduled runs."""
    return spec.schedules is not None and spec.schedules.starter(spec.gitops_only) == "cronjob"


def _build_site_monitor(spec: Cluster) -> Monitor | None:
    wanted = spec.monitoring
    if wanted is None:
        return None
    labels = tuple(sorted(wanted.rule_labels.items()))
    return Monitor(wanted.namespace, labels, tuple(sorted(wanted.dashboard_labels.items())), wanted.pending)


def _build_site_topology(spec: Cluster) -> SiteTopology | None:
    """Return the topology, if some pool uses it. Its levels are immutable, so its name has their hash."""
    levels = tuple(level.label for level in spec.topology)
    if not any(pool.topology for pool in spec.node_pools.values()):
        return None
    return SiteTopology(f"levels-{_compute_short_hash(list(levels))}", levels)


def _resolve_site_flavors(spec: Cluster, platform: Platform) -> tuple[SiteFlavor, ...]:
    topology = _build_site_topology(spec)
    return tuple(
        _resolve_resource_flavor(name, pool, topology.name if pool.topology and topology else "", platform)
        for name, pool in spec.node_pools.items()
    )


def _resolve_resource_flavor(name: str, pool: NodePool, topology: str, platform: Platform) -> SiteFlavor:
    """Return a pool's flavor. With a topology it is immutable, so its name has a hash of what it contains.

    Kueue fixes nodeLabels, tolerations and topologyName, up to 0.16 nodeTaints too (ResourceFlavor CRD).
    """
    labels = tuple(sorted(pool.labels.items()))
    taints = tuple(NodeTaint(taint.key, taint.value or "", taint.effect) for taint in pool.taints)
    if not topology:
        return SiteFlavor(name, name, labels, taints)
    fixed: list[object] = [dict(labels), topology]
    # Without taints, the name is the same before and after Kueue lets them change.
    if taints and platform.kueue_line is not None and platform.kueue_line.is_flavor_frozen:
        fixed.append([f"{taint.key}={taint.value}:{taint.effect}" for taint in taints])
    return SiteFlavor(f"{name}-{_compute_short_hash(fixed)}", name, labels, taints, topology)


def _compute_short_hash(content: object) -> str:
    return hashlib.sha256(dump_object_as_block_yaml({"content": content}).encode()).hexdigest()[:6]


def _resolve_site_cohorts(spec: Cluster, flavors: Mapping[str, str]) -> tuple[SiteCohort, ...]:
    if not spec.cohorts:
        return (SiteCohort(DEFAULT_COHORT, "", DEFAULT_WEIGHT, ()),)
    return tuple(
        SiteCohort(
            name,
            cohort.parent or "",
            DEFAULT_WEIGHT if cohort.weight is None else cohort.weight,
            resolve_cohort_quotas(spec, name, flavors),
        )
        for name, cohort in sorted(spec.cohorts.items())
    )


def _list_cluster_queues(
    spec: Cluster, flavors: Mapping[str, str], namespaces: Mapping[str, str]
) -> tuple[SiteQueue, ...]:
    """Return one queue for each team whose file could be read, by team."""
    shares = compute_team_quota_shares(spec)
    queues = []
    for team, queue in sorted(spec.teams.items()):
        if team not in namespaces:
            continue
        queues.append(
            SiteQueue(
                name=queue.cluster_queue or team,
                team=team,
                namespace=namespaces[team],
                local_queue=queue.queue,
                cohort=cohort_of(spec, queue),
                weight=weight_of(queue),
                quotas=resolve_team_quotas(spec, team, shares[team], flavors),
                preempt=_build_queue_preemption(queue.preemption or spec.preemption),
                checks=(
                    *_resolve_generated_admission_checks(spec, flavors, shares[team]),
                    *_resolve_stated_admission_checks(spec, flavors, team, shares[team]),
                ),
                concurrent=_build_queue_concurrency(queue, flavors),
                queueing_strategy=queue.queueing_strategy,
                admission_mode=queue.admission_mode or "",
            )
        )
    return tuple(queues)


def _build_queue_preemption(rule: Preemption) -> QueuePreemption:
    return QueuePreemption(rule.within_cluster_queue, rule.reclaim_within_cohort, rule.borrow_within_cohort)


def _resolve_generated_admission_checks(
    spec: Cluster, flavors: Mapping[str, str], pools: Mapping[str, object]
) -> tuple[QueueCheck, ...]:
    """Return the admission checks of a queue that has these pools."""
    if spec.multi_kueue is not None:
        # For all flavors: Kueue refuses MultiKueue for only some of them.
        return (QueueCheck(MULTIKUEUE),)
    growing = [name for name, pool in spec.node_pools.items() if pool.is_asked_for and name in pools]
    return tuple(QueueCheck(f"provision-{name}", (flavors[name],)) for name in growing)


def _resolve_stated_admission_checks(
    spec: Cluster, flavors: Mapping[str, str], team: str, pools: Mapping[str, object]
) -> list[QueueCheck]:
    """Return the checks in the cluster's file that apply to the team and a pool that it has."""
    found = []
    for name, check in sorted(spec.admission_checks.items()):
        named = [pool for pool in pools if check.pools is None or pool in check.pools]
        if named and (check.teams is None or team in check.teams):
            only = tuple(flavors[pool] for pool in named) if check.pools is not None else ()
            found.append(QueueCheck(name, only))
    return found


def _build_queue_concurrency(queue: TeamQueue, flavors: Mapping[str, str]) -> QueueConcurrency | None:
    stated = queue.concurrent_admission
    if stated is None:
        return None
    last = stated.last_acceptable_pool
    return QueueConcurrency(stated.migration, flavors.get(last, "") if last else "")


def _list_provisioning_pools(spec: Cluster) -> tuple[Provisioning, ...]:
    """Return the pools for which Kueue requests nodes.

    Kueue manages the GPUs of such a pool; without GPUs, no resources are listed as managed.
    """
    found = []
    for name, pool in spec.node_pools.items():
        if pool.autoscale and pool.autoscale.provisioning_class:
            devices = [pool.gpu.resource] if pool.gpu else []
            parameters = tuple(sorted(pool.autoscale.parameters.items()))
            found.append(
                Provisioning(
                    f"provision-{name}", pool.autoscale.provisioning_class, parameters, tuple(devices)
                )
            )
    return tuple(found)


def _list_multikueue_workers(spec: Cluster) -> tuple[RemoteCluster, ...]:
    if spec.multi_kueue is None:
        return ()
    return tuple(
        RemoteCluster(name, worker.kubeconfig_secret)
        for name, worker in sorted(spec.multi_kueue.clusters.items())
    )


def compute_team_maximum_by_pool(
    cluster: ClusterFile, teams: Mapping[str, TeamFile]
) -> dict[str, dict[str, ResourceQuantities]]:
    """Return the most that each team can ever hold: team -> pool -> resource -> amount; empty without Kueue.

    Every run that may choose among pools needs it, so it is computed once per cluster file.
    """
    if cluster.memo.most is None:
        site = _build_cluster_site(cluster, teams)
        pools = {flavor.name: flavor.pool for flavor in site.flavors}
        most = resolve_queue_maximum_by_flavor(site)
        cluster.memo.most = {
            queue.team: {pools[flavor]: amounts for flavor, amounts in most[queue.name].items()}
            for queue in site.queues
        }
    return cluster.memo.most


def compute_team_maximum_by_resource(
    workspace: Workspace, cluster_name: str
) -> dict[str, ResourceQuantities]:
    """Return the most that each team can ever hold at once, by resource; without Kueue that is its quota."""
    site = resolve_site_without_sweeps(workspace, cluster_name)
    if site.queues:
        most = resolve_queue_maximum_by_flavor(site)
        return {queue.team: sum_site_quotas_over_flavors(most[queue.name]) for queue in site.queues}
    return {
        team: sum_site_quotas_over_flavors(shares)
        for team, shares in compute_team_quota_shares(workspace.clusters[cluster_name].spec).items()
    }
