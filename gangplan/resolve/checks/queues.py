"""Checks of LocalQueues, admission checks and concurrent admission: whether Kueue accepts and uses them."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model.duration import format_duration
from gangplan.model.support import has_reached_kueue_patch, look_up_kueue_line
from gangplan.model.version import parse_version
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.quota import list_team_pools
from gangplan.rules.clusters import KUEUE_FIELD_UNUSED
from gangplan.rules.queues import (
    ADMISSION_CHECK_NOBODY,
    ADMISSION_CHECK_OWNER,
    CONCURRENT_ADMISSION_REFUSED,
    CONCURRENT_ADMISSION_VERSION,
    PODS_READY_EARLY,
    QUEUE_WEIGHTLESS_FIRST,
    USAGE_SHARING_OFF,
)
from gangplan.rules.specs import POOL_UNKNOWN
from gangplan.spec.admission import AdmissionCheck, ConcurrentAdmission
from gangplan.spec.queues import TeamQueue

BY_USAGE = "UsageBasedAdmissionFairSharing"
# Fields of a team that only Kueue reads, in addition to those of `quotas`.
_OF_TEAM = {
    "queueing_strategy": "queueingStrategy",
    "local_queues": "localQueues",
    "admission_mode": "admissionMode",
    "concurrent_admission": "concurrentAdmission",
}
_OF_CLUSTER = {"kueue": "kueue", "admission_checks": "admissionChecks"}
# Controllers inside Kueue, and the fields that create checks with them.
_OWN_CONTROLLERS = {
    "kueue.x-k8s.io/provisioning-request": "autoscale of a node pool",
    "kueue.x-k8s.io/multikueue": "multiKueue",
}
# validateConcurrentAdmissionPolicy, pkg/webhooks/clusterqueue_webhook.go; same in Kueue v0.18.2 and v0.19.2.
_MOST_POOLS = 16
# What pods need at least to become ready, and on a node that comes only when they wait for it, in seconds.
_LEAST_READY_S, _LEAST_NODE_S = 60, 300


def check_cluster_file_queues(notes: ClusterCheck) -> None:
    """Check the queues of teams on a cluster where Kueue starts the runs."""
    for name, team in notes.spec.teams.items():
        _check_cluster_file_local_queue_weights(notes, ("teams", name), team)
        if team.concurrent_admission is not None:
            _check_cluster_file_concurrent_admission(notes, name, team, team.concurrent_admission)
    if notes.spec.kueue.resources is not None or notes.spec.kueue.admission_fair_sharing is not None:
        from gangplan.resolve.checks import counting  # few clusters configure this

        if notes.spec.kueue.resources is not None:
            counting.check_cluster_file_counted_resources(notes, notes.spec.kueue.resources)
        if notes.spec.kueue.admission_fair_sharing is not None:
            counting.check_cluster_file_usage_weights(notes, notes.spec.kueue.admission_fair_sharing)
    for name, check in notes.spec.admission_checks.items():
        _check_cluster_file_admission_check(notes, name, check)
    _check_cluster_file_pods_ready_timeout(notes)


def _check_cluster_file_pods_ready_timeout(notes: ClusterCheck) -> None:
    """Check that pods can be ready before Kueue takes the run's quota away."""
    timeout, grown = notes.spec.pods_ready_timeout, None
    if timeout < _LEAST_NODE_S:
        pools = notes.spec.node_pools.items()
        grown = next((name for name, pool in pools if pool.autoscale and not pool.is_asked_for), None)
    if timeout >= _LEAST_READY_S and grown is None:
        return
    reason = "an image alone can take longer to pull"
    if grown is not None:
        reason = f"nodes of pool '{grown}', which come only when pods wait for them, take longer"
    notes.report(
        PODS_READY_EARLY,
        ("podsReadyTimeout",),
        f"after {format_duration(timeout)} a run whose pods are not ready goes back to the queue, and {reason}",
        "Write podsReadyTimeout: 30m.",
    )


def _check_cluster_file_local_queue_weights(notes: ClusterCheck, path: FieldPath, team: TeamQueue) -> None:
    """Check that weights of LocalQueues have an effect.

    Kueue reads them in queues that share by usage, and only if its manager does (`ResourceWeights` of
    pkg/util/admissionfairsharing, the same in Kueue v0.15.2 to v0.19.2).
    """
    if team.admission_mode == BY_USAGE:
        if notes.spec.kueue.admission_fair_sharing is None:
            notes.report(
                USAGE_SHARING_OFF,
                (*path, "admissionMode"),
                "Kueue's manager shares nothing by usage on this cluster, so priority and time alone decide",
                "Add kueue: {admissionFairSharing: {usageHalfLifeTime: 7d}} at the top level, and configure the manager as"
                " `gangplan cluster kueue-config` prints it; or remove admissionMode.",
            )
        else:
            _check_cluster_file_weightless_queues(notes, path, team)
        return
    for queue, stated in team.local_queues.items():
        if stated.weight is not None:
            notes.report(
                USAGE_SHARING_OFF,
                (*path, "localQueues", queue, "weight"),
                f"the queues of this team do not share by usage, so nothing reads the weight of '{queue}'",
                f"Add admissionMode: {BY_USAGE} to the team, or remove the weight.",
            )


def _check_cluster_file_weightless_queues(notes: ClusterCheck, path: FieldPath, team: TeamQueue) -> None:
    """Check that a queue of weight 0 next to others waits for them, which older Kueues do the other way round."""
    kueue = notes.spec.versions.kueue
    if kueue is None or len({team.queue, *team.local_queues}) < 2:
        return
    version = parse_version(kueue)
    if has_reached_kueue_patch(version, look_up_kueue_line(version.line).weightless_last_from):
        return
    for queue, stated in team.local_queues.items():
        if stated.weight is not None and not stated.weight.nano:
            notes.report(
                QUEUE_WEIGHTLESS_FIRST,
                (*path, "localQueues", queue, "weight"),
                f"Kueue {kueue} may let runs of '{queue}' overtake all others of the team whenever it was idle, because its weight is 0",
                "Move the cluster to Kueue 0.18.5, 0.19.1 or later, or write a small weight: 0.001.",
            )


def _check_cluster_file_concurrent_admission(
    notes: ClusterCheck, name: str, team: TeamQueue, stated: ConcurrentAdmission
) -> None:
    path: FieldPath = ("teams", name, "concurrentAdmission")
    kueue, pools = notes.spec.versions.kueue, list_team_pools(notes.spec, name)
    if kueue is not None and not look_up_kueue_line(parse_version(kueue).line).has_concurrent_admission:
        notes.report(
            CONCURRENT_ADMISSION_VERSION,
            path,
            f"Kueue {kueue} cannot ask for several pools at once: that came with 0.18",
            "Remove it, or move the cluster to Kueue 0.18 or later.",
            key=True,
        )
    last = stated.last_acceptable_pool
    said = ""
    if team.queueing_strategy == "StrictFIFO":
        said, help = (
            "Kueue refuses concurrentAdmission with StrictFIFO",
            "Write queueingStrategy: BestEffortFIFO, or remove it.",
        )
    elif len(pools) > _MOST_POOLS:
        said = f"the team may use {len(pools)} pools, and Kueue takes at most {_MOST_POOLS} with it"
        help = "State a quota of fewer pools for the team, or remove it."
    elif last is not None and stated.migration == "RetainFirstAdmission":
        said, help = "runs that stay where they start never change pools", "Remove lastAcceptablePool."
    elif last is not None and last not in pools:
        said = f"pool '{last}' is not one of the team's"
        help = f"It may use {', '.join(pools)}."
    if said:
        notes.report(CONCURRENT_ADMISSION_REFUSED, path, said, help, key=True)


def _check_cluster_file_admission_check(notes: ClusterCheck, name: str, check: AdmissionCheck) -> None:
    path: FieldPath = ("admissionChecks", name)
    spec = notes.spec
    for index, pool in enumerate(check.pools or ()):
        if pool not in spec.node_pools:
            notes.unknown(POOL_UNKNOWN, (*path, "pools", index), "pool", pool, spec.node_pools)
    for index, team in enumerate(check.teams or ()):
        if team not in spec.teams:
            notes.unknown(ADMISSION_CHECK_NOBODY, (*path, "teams", index), "team", team, spec.teams)
    own = {"multikueue", *(f"provision-{pool}" for pool, one in spec.node_pools.items() if one.is_asked_for)}
    if check.external == bool(check.controller):
        said = "is both external and made here" if check.external else "names no controller"
        help = "Write controller: with the name that its controller answers to, or external: true."
    elif check.controller in _OWN_CONTROLLERS:
        said = "has a controller of Kueue's own, which needs parameters"
        help = f"Remove it: {_OWN_CONTROLLERS[check.controller]} makes such a check."
    elif name in own:
        said, help = "has the name of a check that gangplan makes", "Give it another name."
    else:
        return
    notes.report(ADMISSION_CHECK_OWNER, path, f"admission check '{name}' {said}", help, key=True)


def check_queue_fields_unused_without_kueue(notes: ClusterCheck) -> None:
    """Report fields that only Kueue reads, on a cluster where Kueue does not start the runs."""
    said = f"gang is {notes.spec.gang}, so nothing reads this"
    help = "Remove it, or set gang: kueue."
    for field, alias in _OF_CLUSTER.items():
        if field in notes.spec.model_fields_set:
            notes.report(KUEUE_FIELD_UNUSED, (alias,), said, help, key=True)
    for name, team in notes.spec.teams.items():
        for field, alias in _OF_TEAM.items():
            if field in team.model_fields_set:
                notes.report(KUEUE_FIELD_UNUSED, ("teams", name, alias), said, help, key=True)
