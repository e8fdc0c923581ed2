"""Checks of cohorts: every name is declared, and no cohort is its own ancestor."""

from __future__ import annotations

from gangplan.kueue.hierarchy import find_cohort_cycle
from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.quota import cohort_of
from gangplan.rules.quotas import (
    COHORT_CYCLE,
    COHORT_EMPTY,
    COHORT_MISSING,
    COHORT_ROOT_LIMIT,
    COHORT_UNKNOWN,
)


def check_cluster_file_cohorts(notes: ClusterCheck) -> None:
    """Check cohorts and their members."""
    cohorts = notes.spec.cohorts
    for name, cohort in cohorts.items():
        path = ("cohorts", name)
        if cohort.parent is not None and cohort.parent not in cohorts:
            notes.unknown(COHORT_UNKNOWN, (*path, "parent"), "cohort", cohort.parent, cohorts)
        for field in ("borrow", "lend"):
            if cohort.parent is None and getattr(cohort, field) is not None:
                notes.report(
                    COHORT_ROOT_LIMIT,
                    (*path, field),
                    f"cohort '{name}' has no parent to {field} {'from' if field == 'borrow' else 'to'}",
                    f"Remove {field}, or name a parent.",
                    key=True,
                )
    _check_cluster_file_cohort_cycles(notes)
    _check_cluster_file_cohort_members(notes)


def _check_cluster_file_cohort_cycles(notes: ClusterCheck) -> None:
    """Report cycles of cohorts: Kueue accepts a cycle and then makes every queue in it inactive."""
    parents = {name: cohort.parent or "" for name, cohort in notes.spec.cohorts.items()}
    told: set[str] = set()
    for start in parents:
        way = find_cohort_cycle(parents, start)
        if not way or told & set(way):
            continue
        told |= set(way)
        notes.report(
            COHORT_CYCLE,
            ("cohorts", start, "parent"),
            f"the parents of cohorts form a cycle: {' -> '.join(way)}",
            "Make one of them a root: remove its parent.",
        )


def _check_cluster_file_cohort_members(notes: ClusterCheck) -> None:
    cohorts, teams = notes.spec.cohorts, notes.spec.teams
    for name, team in teams.items():
        if team.cohort is None and len(cohorts) > 1:
            notes.report(
                COHORT_MISSING,
                ("teams", name),
                f"team '{name}' is in no cohort, and the cluster has several",
                f"Add cohort: with one of {', '.join(sorted(cohorts))}.",
                key=True,
            )
        if team.cohort is not None and team.cohort not in cohorts:
            notes.unknown(COHORT_UNKNOWN, ("teams", name, "cohort"), "cohort", team.cohort, cohorts)
    used = {cohort_of(notes.spec, team) for team in teams.values()}
    used |= {cohort.parent for cohort in cohorts.values() if cohort.parent}
    for name in cohorts:
        if name not in used:
            notes.report(
                COHORT_EMPTY,
                ("cohorts", name),
                f"no team and no cohort is in cohort '{name}'",
                "Remove it, or name it in a team.",
                key=True,
            )
