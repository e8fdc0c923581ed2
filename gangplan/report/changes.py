"""Findings in, the changes that resolve most of them out: what to do first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gangplan.findings import Finding, Location
from gangplan.report.model import is_waived
from gangplan.rules.model import Severity
from gangplan.rules.specs import RUN_RENAMED

# How many are worth a line of their own.
MOST = 5
# What helps here is a decision of the user: the finding stays until it is made, so that no change is offered.
_CHOICES = frozenset((RUN_RENAMED,))
# A command is run once for all places.
_COMMAND = re.compile(r"\bgangplan (?:render|validate)\b")
# A list of what there is tells nobody what to write.
_LIST = re.compile(r"(?:Known|Offered|None is declared)\b")
# An example is no change that is right in several places: each needs a value of its own.
_EXAMPLE = re.compile(r"\bfor example\b|\bsuch as\b|\bexample\.(?:com|org)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SuggestedChange:
    """One change, made in one place or the same way in several, and how many findings it resolves."""

    rule: str
    help: str
    places: tuple[Location, ...]
    findings: int
    errors: int

    @property
    def words(self) -> str:
        """`1 change resolves 14 findings`, `1 command ...` or `the same change in 3 places resolves 3 findings`."""
        first = f"the same change in {len(self.places)} places"
        if len(self.places) == 1:
            first = "1 change"
        if _COMMAND.search(self.help):
            first = "1 command"
        return f"{first} resolves {self.findings} findings"


def changes(findings: Iterable[Finding], most: int = MOST) -> list[SuggestedChange]:
    """The changes that resolve two findings or more: those with most errors first, then with most findings.

    Findings of one rule at one place with one help are one change, such as a patch that breaks every object of
    a cluster; the same help of one rule at several places is one change made there, unless it only gives an
    example; a command counts once. Waived findings count nothing.
    """
    at: dict[tuple[str, str, Location], list[Finding]] = {}
    for finding in findings:
        if finding.help and not is_waived(finding) and finding.rule not in _CHOICES:
            at.setdefault((finding.rule, finding.help, finding.where), []).append(finding)
    single, alike = [], dict[tuple[str, str], list[Finding]]()
    for (rule, help, where), same in at.items():
        is_command = _COMMAND.search(help) is not None
        if len(same) > 1 and not is_command:
            single.append(_change(rule, help, {where}, same))
        elif is_command or not (_EXAMPLE.search(help) or _LIST.match(help)):
            alike.setdefault((rule, help), []).extend(same)
    many = [
        _change(rule, help, {finding.where for finding in same}, same)
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


def _change(rule: str, help: str, places: Iterable[Location], same: list[Finding]) -> SuggestedChange:
    errors = sum(finding.severity is Severity.ERROR for finding in same)
    return SuggestedChange(rule, help, tuple(sorted(places)), len(same), errors)
