"""Runs whose pods are kept after a failure: where that is allowed, and what a given day means for it.

Resolving does not depend on the day: a note has the last day, and `judge_debug_note` judges it on a given day, as
waivers are.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace

from gangplan.findings import Finding
from gangplan.model.pods import DebugHold
from gangplan.resolve.context import JobResolution
from gangplan.rules.debug import DEBUG_IN_PROD, DEBUG_KEPT, DEBUG_OVER, DEBUG_TOO_LONG, DEBUG_UNUSABLE

# How far ahead the last day may be.
LONGEST = datetime.timedelta(days=14)


def resolve_debug(context: JobResolution, retries: int) -> DebugHold | None:
    """Return the spec's debug setting, and report where it cannot be used; None if the spec has none."""
    asked = context.spec.spec.debug
    if asked is None:
        return None
    wrong = list(_find_debug_problems(context, retries))
    for message, help in wrong:
        context.report(DEBUG_UNUSABLE, context.where("debug"), message, help)
    if context.cluster.spec.environment == "prod":
        context.report(
            DEBUG_IN_PROD,
            context.where("debug"),
            f"cluster {context.cluster.name} has environment: prod, where no failed run keeps its nodes",
            "Remove debug, or name a cluster whose environment is dev in clusters.",
        )
    elif context.spec.spec.state == "active" and not wrong:
        context.report(
            DEBUG_KEPT,
            context.where("debug", "until"),
            f"pods of a failed run are kept until {asked.until} (UTC) or the run's timeout, with their GPUs and quota",
            "Remove debug once the cause is known; state: stopped ends a run that is kept.",
            until=asked.until,
        )
    return DebugHold(asked.until, _end_s(asked.until))


def _find_debug_problems(context: JobResolution, retries: int) -> Iterator[tuple[str, str]]:
    if retries:
        message = f"retries is {retries}: a retry deletes the pods of the try that failed"
        yield message, "Write retries: 0, or remove debug."
    if context.spec.spec.elastic is not None:
        message = "an elastic run goes on without a failed worker, and its Job creates the worker's pod again"
        yield message, "Write workers instead of elastic, or remove debug."


def _end_s(until: str) -> int:
    day = datetime.date.fromisoformat(until) + datetime.timedelta(days=1)
    return int(datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC).timestamp())


def judge_debug_note(finding: Finding, today: datetime.date) -> Finding:
    """Return the note about kept pods as it applies on a day: over, too long, or still a note."""
    if finding.rule != DEBUG_KEPT or not finding.clue.until:
        return finding
    ends = datetime.date.fromisoformat(finding.clue.until)
    if ends < today:
        message = f"debug ended on {ends}, and today is {today}: pods of a failed run are not kept any more"
        return replace(finding, rule=DEBUG_OVER, message=message, help="Remove debug, or set a later day.")
    if ends - today > LONGEST:
        message = (
            f"pods of a failed run would be kept for {(ends - today).days} days; {LONGEST.days} are the most"
        )
        help = f"Write until: {today + LONGEST} or earlier."
        return replace(finding, rule=DEBUG_TOO_LONG, message=message, help=help)
    return finding
