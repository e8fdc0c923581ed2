"""What only a whole cluster file shows: names that do not meet, sums that do not agree, cohorts in a cycle.

Kueue accepts almost all of this and then admits nothing, without a word to whoever waits.
"""

from __future__ import annotations

from gangplan.findings import Finding
from gangplan.resolve.checks import cohorts, outside, pools, quotas, rails, sums, teams, workers
from gangplan.resolve.checks.notes import Notes
from gangplan.rules.model import Severity
from gangplan.workspace import ClusterFile, Workspace


def check_site(workspace: Workspace, cluster: ClusterFile) -> list[Finding]:
    """Findings about one cluster, in the order of its file."""
    notes = Notes(cluster)
    pools.check(notes)
    rails.check(notes)
    teams.check(notes)
    outside.check(notes)
    quotas.check(notes)
    if cluster.spec.gang == "kueue":
        cohorts.check(notes)
        workers.check(notes, workspace)
    else:
        quotas.check_unused(notes)
    # Amounts mean something only where all names do.
    if not any(finding.severity is Severity.ERROR for finding in notes.findings):
        sums.check(notes, workspace)
    return notes.findings
