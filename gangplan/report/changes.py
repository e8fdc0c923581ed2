"""Findings in, the changes that resolve most of them out: what to do first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gangplan.findings import Finding, Location, Severity
from gangplan.report.model import is_waived

# How many are worth a line of their own.
MOST = 5


@dataclass(frozen=True, slots=True)
class Change:
    """One change, made in one place or the same way in several, and how many findings it resolves."""

    rule: str
    help: str
    places: tuple[Location, ...]
    findings: int
    errors: int

    @property
    def words(self) -> str:
        """`1 change resolves 14 findings` or `the same change in 3 places resolves 3 findings`."""
        first = (
            "1 change resolves"
            if len(self.places) == 1
            else f"the same change in {len(self.places)} places resolves"
        )
        return f"{first} {self.findings} findings"


def changes(findings: Iterable[Finding], most: int = MOST) -> list[Change]:
    """The changes that resolve two findings or more: those with most errors first, then with most findings.

    Findings of one rule at one place with one help are one change, such as a patch that breaks every object of
    a cluster; the same help of one rule at several places is one change made there. Waived findings count
    nothing.
    """
    at: dict[tuple[str, str, Location], list[Finding]] = {}
    for finding in findings:
        if finding.help and not is_waived(finding):
            at.setdefault((finding.rule, finding.help, finding.where), []).append(finding)
    single = [_change(rule, help, [where], same) for (rule, help, where), same in at.items() if len(same) > 1]
    alike: dict[tuple[str, str], list[Finding]] = {}
    for (rule, help, _), same in at.items():
        if len(same) == 1:
            alike.setdefault((rule, help), []).extend(same)
    many = [
        _change(rule, help, [finding.where for finding in same], same)
        for (rule, help), same in alike.items()
        if len(same) > 1
    ]
    ranked = sorted(
        [*single, *many],
        key=lambda change: (
            -change.errors,
            -change.findings,
            len(change.places),
            change.places,
            change.rule,
            change.help,
        ),
    )
    return ranked[:most]


def _change(rule: str, help: str, places: list[Location], same: list[Finding]) -> Change:
    errors = sum(finding.severity is Severity.ERROR for finding in same)
    return Change(rule, help, tuple(sorted(places)), len(same), errors)
