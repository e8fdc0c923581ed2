"""Queues of sweeps: each has a ClusterQueue that limits its trials and uses its team's quota.

A sweep's queue has no quota of its own except one of pods: those of `maxConcurrent` trials, which no other
queue may lend or borrow. Kueue counts pods if a queue covers them (flavorassigner.go, v0.15.2 to v0.19.2).
Everything else it borrows within a cohort of the team. The cohort has the team's own limits on borrowing and
lending, so that team and sweeps together get what the team alone would, and the guarantees of others remain
(decision 0031).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gangplan.kueue.units import KUEUE_PODS
from gangplan.model.job import Job
from gangplan.model.quantity import ZERO, Quantity
from gangplan.model.site import FlavorQuota, QuotaAmount, Site, SiteCohort, SiteQueue, Tenant, TenantQueue
from gangplan.model.trial import TrialPods
from gangplan.resolve.job import resolve_job, resolve_target_clusters
from gangplan.resolve.quota import DEFAULT_WEIGHT
from gangplan.spec.sweep_files import (
    SweepFile,
    TrialJob,
    build_sweep_pod_shape_key,
    build_sweep_trial_jobs,
    find_shaping_fields,
)
from gangplan.spec.templates import TemplateSet
from gangplan.spec.trials import count_trials
from gangplan.workspace import Spec, SpecFile, Workspace


def queue_name(queue: SiteQueue, sweep: SweepFile) -> str:
    """Return the name of a sweep's ClusterQueue; unlike those of teams it has a dot."""
    return f"{queue.name}.{sweep.queue}"


def cohort_name(queue: SiteQueue) -> str:
    """Return the name of the cohort of a team that has sweeps."""
    return f"{queue.name}.team"


def resolve_site_with_sweeps(site: Site, workspace: Workspace, cluster: str) -> Site:
    """Return the site with the queues of sweeps, and with a cohort for each team that has some."""
    if not site.queues:
        return site
    queues, sweeps, cohorts = [], [], []
    for queue in site.queues:
        own = [
            (sweep, pods)
            for sweep, pods in _resolve_cluster_sweeps(workspace, cluster)
            if sweep.team == queue.team
        ]
        if not own:
            queues.append(queue)
            continue
        cohort = cohort_name(queue)
        queues.append(replace(queue, cohort=cohort, quotas=tuple(map(_remove_lending_limits, queue.quotas))))
        cohorts.append(_resolve_team_cohort(queue))
        sweeps += [_resolve_sweep_queue(site, queue, sweep, pods) for sweep, pods in own]
    return replace(site, queues=tuple(queues), sweeps=tuple(sweeps), cohorts=(*site.cohorts, *cohorts))


def add_sweeps_to_tenants(tenants: Iterable[Tenant], workspace: Workspace, cluster: str) -> list[Tenant]:
    """Return the tenants with the LocalQueues of their sweeps."""
    found = []
    for tenant in tenants:
        own = tuple(
            TenantQueue(sweep.queue, None, f"{tenant.cluster_queue}.{sweep.queue}")
            for sweep, _ in _resolve_cluster_sweeps(workspace, cluster)
            if sweep.team == tenant.team and tenant.queues
        )
        found.append(replace(tenant, queues=(*tenant.queues, *own)) if own else tenant)
    return found


def _resolve_cluster_sweeps(workspace: Workspace, cluster: str) -> list[tuple[SweepFile, list[TrialPods]]]:
    """Return the sweeps on a cluster with the pods of their trials, one entry for each shape; cached."""
    memo = workspace.clusters[cluster].memo
    marks = {name: one.mark for name, one in workspace.sweeps.items()}
    if memo.sweeps != marks:
        shapes = {
            name: _resolve_sweep_trial_pod_shapes(workspace, one, cluster)
            for name, one in workspace.sweeps.items()
        }
        memo.sweeps, memo.trials = marks, shapes
    return [(one, memo.trials[name]) for name, one in workspace.sweeps.items() if memo.trials[name]]


def _resolve_sweep_trial_pod_shapes(workspace: Workspace, sweep: SweepFile, cluster: str) -> list[TrialPods]:
    """Return the pods of a sweep's trials by pool, each shape once; none if it is not on the cluster."""
    found: list[TrialPods] = []
    if sweep.sweep is None or count_trials(sweep.sweep) > workspace.clusters[cluster].spec.limits.trials:
        return found
    for one in _find_distinct_sweep_trials(sweep, workspace.templates):
        if one.spec is None:
            continue
        spec = Spec(SpecFile(sweep.file, sweep.team), one.spec, one.document, "", {}, one.trial, one.template)
        if cluster in resolve_target_clusters(workspace, spec)[0]:
            job, _ = resolve_job(workspace, spec, cluster)
            if job is not None and (pods := _count_sweep_trial_pods(job)) not in found:
                found.append(pods)
    return found


def _find_distinct_sweep_trials(sweep: SweepFile, templates: TemplateSet | None) -> Iterator[TrialJob]:
    """Yield a trial of each shape: only the first, unless values decide more than what the program sees."""
    assert sweep.document is not None
    fields = find_shaping_fields(sweep.document.value["template"])
    seen = set()
    for one in build_sweep_trial_jobs(sweep, templates):
        key = build_sweep_pod_shape_key(one, fields)
        if key not in seen:
            seen.add(key)
            yield one
        if not fields:
            return


def _count_sweep_trial_pods(job: Job) -> TrialPods:
    """Return the pods of a trial, and how many of them last as long as the trial.

    A run ends with its launcher, or with its workers if it has none: earlier steps and other roles may end
    sooner, and Kueue reclaims the quota of ended pods at once (`ReclaimablePods` of
    pkg/controller/jobs/trainjob, v0.15.2 to v0.19.2).
    """
    found = Counter({job.worker_pool.name: job.workers})
    if job.uses_mpi and not job.launcher_runs_ranks:
        found[job.launcher_pool.name] += 1
    lasting = found.total()
    for role in job.others:
        found[role.pool.name] += role.workers
    return TrialPods(tuple(sorted(found.items())), lasting)


def _compute_sweep_trial_room(
    shapes: Sequence[TrialPods], pools: Sequence[str], at_once: int
) -> dict[str, int]:
    """Return the number of pods that may be admitted in each pool.

    It is enough for `at_once` trials, but less if some pods end before their trial, so that the quota they
    free does not admit one more trial: when the last one comes, the others hold at least their lasting pods.
    """
    counts = {pool: [dict(shape.by_pool).get(pool, 0) for shape in shapes] for pool in pools}
    room = {pool: max(min(found) * at_once, *found) for pool, found in counts.items()}
    most = min(at_once * shape.lasting + shape.count - 1 for shape in shapes)
    over = sum(room.values()) - most
    for pool in sorted(pools, key=lambda pool: (-room[pool], pool)):
        if over > 0:
            less = min(over, room[pool] - max(counts[pool]))
            room[pool] -= less
            over -= less
    return room


def _resolve_sweep_queue(
    site: Site, queue: SiteQueue, sweep: SweepFile, shapes: list[TrialPods]
) -> SiteQueue:
    """Return the ClusterQueue of a sweep: the flavors of its pools, each with the pods of so many trials."""
    assert sweep.sweep is not None
    pools = {flavor.name: flavor.pool for flavor in site.flavors}
    used = {pool for shape in shapes for pool, _ in shape.by_pool}
    room = _compute_sweep_trial_room(
        shapes,
        [pools[one.flavor] for one in queue.quotas if pools[one.flavor] in used],
        sweep.sweep.max_concurrent,
    )
    quotas = []
    for quota in queue.quotas:
        if most := room.get(pools[quota.flavor]):
            nothing = tuple(QuotaAmount(one.resource, ZERO) for one in quota.amounts)
            pods = QuotaAmount(KUEUE_PODS, Quantity.of(most), ZERO, ZERO)
            quotas.append(FlavorQuota(quota.flavor, (*nothing, pods)))
    named = {quota.flavor for quota in quotas}
    checks = tuple(
        replace(check, flavors=tuple(one for one in check.flavors if one in named))
        for check in queue.checks
        if not check.flavors or named & set(check.flavors)
    )
    return SiteQueue(
        queue_name(queue, sweep),
        queue.team,
        queue.namespace,
        sweep.queue,
        cohort_name(queue),
        DEFAULT_WEIGHT,
        tuple(quotas),
        queue.preempt,
        checks,
        covered=(*site.covered, KUEUE_PODS),
    )


def _resolve_team_cohort(queue: SiteQueue) -> SiteCohort:
    """Return the cohort of a team among other teams: its limits and weight, but no quota of its own."""
    quotas = tuple(
        FlavorQuota(
            quota.flavor,
            tuple(QuotaAmount(one.resource, ZERO, one.borrow, one.lend) for one in quota.amounts),
        )
        for quota in queue.quotas
    )
    has_limits = any(
        one.borrow is not None or one.lend is not None for quota in quotas for one in quota.amounts
    )
    return SiteCohort(cohort_name(queue), queue.cohort, queue.weight, quotas if has_limits else ())


def _remove_lending_limits(quota: FlavorQuota) -> FlavorQuota:
    """Return the quota of a team's queue within the team's cohort, which has the limit on lending."""
    return replace(quota, amounts=tuple(replace(one, lend=None) for one in quota.amounts))
