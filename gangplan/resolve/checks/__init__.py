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
from gangplan.resolve.checks.notes import Notes
from gangplan.rules.model import Severity
from gangplan.rules.policy import POLICIES_NONE
from gangplan.workspace import ClusterFile, Workspace


def check_site(workspace: Workspace, cluster: ClusterFile) -> list[Finding]:
    """Check a cluster file; return its findings in the order of the checks."""
    notes = Notes(cluster)
    pools.check(notes)
    rails.check(notes)
    if cluster.spec.fabrics or any(pool.fabric for pool in cluster.spec.node_pools.values()):
        from gangplan.resolve.checks import fabrics  # few clusters have one

        fabrics.check(notes)
    if cluster.spec.volumes:
        from gangplan.resolve.checks import volumes  # few clusters have one

        volumes.check(notes)
    if any(pool.gpu and pool.gpu.device_class for pool in cluster.spec.node_pools.values()):
        from gangplan.resolve.checks import dra  # few clusters have one

        dra.check(notes)
    if any(one.persistent_volumes for one in cluster.spec.teams.values()):
        from gangplan.resolve.checks import persistent  # few clusters have one

        persistent.check(notes, workspace)
    if cluster.spec.schedules is not None:
        from gangplan.resolve.checks import schedules

        schedules.check(notes, workspace)
    if any(one.monthly_budget for one in cluster.spec.teams.values()):
        from gangplan.resolve.checks import budgets  # few clusters have one

        budgets.check(notes, workspace)
    devices.check(notes)
    _check_policies(notes, workspace)
    teams.check(notes)
    outside.check(notes)
    quotas.check(notes)
    if cluster.spec.gang == "kueue":
        cohorts.check(notes)
        queues.check(notes)
        workers.check(notes, workspace)
    else:
        quotas.check_unused(notes)
        queues.check_unused(notes)
    # Amounts are meaningful only if all names are known.
    if not any(finding.severity is Severity.ERROR for finding in notes.findings):
        sums.check(notes, workspace)
    return notes.findings


def _check_policies(notes: Notes, workspace: Workspace) -> None:
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
