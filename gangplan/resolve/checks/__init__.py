"""Checks of a whole cluster file: unknown names, sums that do not agree, cohorts in a cycle.

Kueue accepts almost all of these mistakes and then admits nothing, without an error.
"""

from __future__ import annotations

from gangplan.findings import Finding
from gangplan.resolve.checks import (
    cohorts,
    devices,
    outside,
    pools,
    queues,
    quotas,
    rails,
    sums,
    teams,
    workers,
)
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.rules.model import Severity
from gangplan.rules.policy import POLICIES_NONE, POLICIES_OPEN
from gangplan.spec.namespaces import namespace_of
from gangplan.workspace import ClusterFile, Workspace


def check_site(workspace: Workspace, cluster: ClusterFile) -> list[Finding]:
    """Check a cluster file; return its findings in the order of the checks."""
    notes = ClusterCheck(cluster)
    pools.check_cluster_file_pools(notes)
    rails.check_cluster_file_rails(notes)
    if cluster.spec.fabrics or any(pool.fabric for pool in cluster.spec.node_pools.values()):
        from gangplan.resolve.checks import fabrics  # few clusters have one

        fabrics.check_cluster_file_fabrics(notes)
    if cluster.spec.volumes:
        from gangplan.resolve.checks import volumes  # few clusters have one

        volumes.check_cluster_file_offered_volumes(notes)
    if any(pool.gpu and pool.gpu.device_class for pool in cluster.spec.node_pools.values()):
        from gangplan.resolve.checks import dra  # few clusters have one

        dra.check_cluster_file_device_classes(notes)
    if any(rail.device_class for pool in cluster.spec.node_pools.values() for rail in pool.rails):
        from gangplan.resolve.checks import claims  # few clusters have one

        claims.check_cluster_file_claimed_devices(notes)
    if any(one.persistent_volumes for one in cluster.spec.teams.values()):
        from gangplan.resolve.checks import persistent  # few clusters have one

        persistent.check_cluster_file_persistent_volumes(notes, workspace)
    if cluster.spec.schedules is not None:
        from gangplan.resolve.checks import schedules

        schedules.check_cluster_file_schedules(notes, workspace)
    if any(one.monthly_budget for one in cluster.spec.teams.values()):
        from gangplan.resolve.checks import budgets  # few clusters have one

        budgets.check_cluster_file_budgets(notes, workspace)
    devices.check_cluster_file_devices(notes)
    _check_production_cluster_has_policies(notes, workspace)
    _check_policy_controllers_of_teams(notes, workspace)
    teams.check_cluster_file_teams(notes)
    outside.check_cluster_file_outside(notes)
    quotas.check_cluster_file_quotas(notes)
    if cluster.spec.gang == "kueue":
        cohorts.check_cluster_file_cohorts(notes)
        queues.check_cluster_file_queues(notes)
        workers.check_cluster_file_worker_clusters(notes, workspace)
    else:
        quotas.check_quota_fields_unused_without_kueue(notes)
        queues.check_queue_fields_unused_without_kueue(notes)
    # Amounts are meaningful only if all names are known.
    if not any(finding.severity is Severity.ERROR for finding in notes.findings):
        sums.check_cluster_file_quota_sums(notes, workspace)
    return notes.findings


def _check_production_cluster_has_policies(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check that a cluster declared as production has policies; an undeclared one may be a trial."""
    is_stated = "environment" in notes.spec.model_fields_set and notes.spec.environment == "prod"
    if is_stated and not notes.spec.policies.packs and not workspace.policies.sources:
        notes.report(
            POLICIES_NONE,
            ("environment",),
            f"cluster {notes.cluster.name} is for production, and no policy holds there",
            "Add policies: {packs: [baseline, restricted, images, labels, lifecycle, priorities, network, data]},"
            " or write environment: dev.",
        )


def _check_policy_controllers_of_teams(notes: ClusterCheck, workspace: Workspace) -> None:
    """Check that policies leave no account alone that a team may use."""
    controllers = notes.spec.policies.controllers
    if not controllers:
        return
    owners = {
        namespace_of(notes.spec, team, workspace.teams[team].spec): team
        for team in notes.spec.teams
        if team in workspace.teams
    }
    for index, account in enumerate(controllers):
        namespace = account.partition("/")[0]
        if namespace in owners:
            message = (
                f"everybody who may create pods in namespace {namespace} of team '{owners[namespace]}' can act as"
                f" {account}, and so past every policy"
            )
            help = "Remove it, or run the controller in a namespace of its own."
            notes.report(POLICIES_OPEN, ("policies", "controllers", index), message, help)
