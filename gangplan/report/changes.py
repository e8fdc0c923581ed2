"""The changes that resolve the most findings: what to do first."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gangplan.findings import Finding, Location
from gangplan.records import dataclass
from gangplan.report.model import is_waived
from gangplan.rules.model import Severity
from gangplan.rules.specs import RUN_KEPT, RUN_RENAMED

# How many changes get a line of their own.
MOST = 5
# Here the user has to decide: the finding stays until then, or says what was decided.
_CHOICES = frozenset((RUN_KEPT, RUN_RENAMED))
# A command is run once for all places.
_COMMAND = re.compile(r"\bgangplan (?:render|validate)\b")
# A list of what exists does not say what to write.
_LIST = re.compile(r"(?:Known|Offered|None is declared)\b")
# An example is not one change for several places: each needs a value of its own.
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
        """Such as `1 change resolves 14 findings`, `1 command ...` or `the same change in 3 places
        resolves 3 findings`."""
        first = f"the same change in {len(self.places)} places"
        if len(self.places) == 1:
            first = "1 change"
        if _COMMAND.search(self.help):
            first = "1 command"
        return f"{first} resolves {self.findings} findings"


def suggest_first_changes_for_findings(
    findings: Iterable[Finding], most: int = MOST
) -> list[SuggestedChange]:
    """Return the changes that resolve two findings or more: those with most errors first, then with most
    findings.

    Findings of one rule at one place with one help are one change, such as a patch that breaks every object
    of a cluster; the same help of one rule at several places is one change made there, unless it only gives
    an example; a command counts once. Waived findings do not count.
    """
    at: dict[tuple[str, str, str, int, int], list[Finding]] = {}  # by place, which costs less than its hash
    for finding in findings:
        if finding.help and not is_waived(finding) and finding.rule not in _CHOICES:
            where = finding.where
            key = finding.rule, finding.help, where.file, where.line, where.column
            at.setdefault(key, []).append(finding)
    alike: dict[tuple[str, str], list[list[Finding]]] = {}  # by rule and help: the findings of each place
    for (rule, help, *_), same in at.items():
        alike.setdefault((rule, help), []).append(same)
    found = [
        _build_suggested_change(rule, help, same)
        for (rule, help), places in alike.items()
        for same in _group_findings_by_suggested_change(help, places)
        if len(same) > 1
    ]
    ranked = sorted(
        found,
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


def _group_findings_by_suggested_change(help: str, places: list[list[Finding]]) -> Iterable[list[Finding]]:
    """Yield the findings of all places together, or of each place if the help does not say what to write
    there."""
    if _COMMAND.search(help) is None and (_EXAMPLE.search(help) or _LIST.match(help)):
        return places
    return [[finding for same in places for finding in same]]


def _build_suggested_change(rule: str, help: str, same: list[Finding]) -> SuggestedChange:
    errors = sum(finding.severity is Severity.ERROR for finding in same)
    at = {(one.where.file, one.where.line, one.where.column): one.where for one in reversed(same)}
    places = tuple(at[key] for key in sorted(at))
    return SuggestedChange(rule, help, places, len(same), errors)
