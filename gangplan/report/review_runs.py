"""What a change does to runs, for people: a row for each, or for all trials of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gangplan.model.cost import format_hours
from gangplan.model.run_facts import RunFacts
from gangplan.model.starts import NoZonesError
from gangplan.report.section import ARROW, Section, SectionRow, format_count
from gangplan.review.edits import STARTING_EDITS, EditKind, RunEdit
from gangplan.review.retrained import describe_hours_and_cost
from gangplan.review.totals import Total, sum_active_runs_of_side

# Edits by which another run, or another template of runs, replaces one.
_REPLACING = (EditKind.CHANGED, EditKind.RETRAINED, EditKind.SCHEDULED)
# For how many runs the steps that keep them are listed: a comment has no room for many.
_MOST_KEPT = 2
# A word in the spec, and to render again.
_FEWEST_STEPS = 2
_ENDING = (EditKind.STOPPED, EditKind.REMOVED, EditKind.ARCHIVED)


def build_run_edits_section(edits: Sequence[RunEdit]) -> Section:
    """Return what happens to each run; the trials of a sweep are one row."""
    columns = ("edit", "job", "cluster", "run", "continues", "GPUs", "at most", "cost", "admission", "cause")
    again = [one for one in edits if one.edit is EditKind.RETRAINED]
    reasons = {one.why for one in again}
    common = reasons.pop() if len(again) > 1 and len(reasons) == 1 else ""
    below = _format_retraining_note(again, common) if again else ""
    if any(one.goes_on for one in edits if one.edit is not EditKind.REMOVED):
        below = (
            f"{below} A run that continues goes on until it is over; retired: in the spec ends it.".strip()
        )
    if any(one.goes_on for one in edits if one.edit is EditKind.REMOVED):
        below = f"{below} A run whose spec is removed goes on until it is over; to end it, keep the spec with state: stopped, which ends it on all of its clusters.".strip()
    if any(one.edit is EditKind.SCHEDULED for one in edits):
        below = f"{below} What is scheduled holds from the next start on.{_describe_monthly_starts(edits)}".strip()
    if any(one.edit in (EditKind.WAITS, EditKind.RELEASED) for one in edits):
        below = f"{below} What waits or is released goes on where it was created before.".strip()
    if any(one.before and one.before.schedule and one.edit in _ENDING for one in edits):
        below = f"{below} Runs that a schedule created go on when it ends.".strip()
    return Section(
        "Runs",
        columns,
        [_build_edit_group_row(group, common) for group in _group_sweep_edits(edits)],
        "run",
        below,
    )


def build_keep_runs_section(edits: Sequence[RunEdit]) -> Section | None:
    """Return the steps that keep runs instead of training them again, where it takes more than a word in
    the spec."""
    needed = [one for one in edits if len(one.keeping) > _FEWEST_STEPS]
    rows = [
        (f"{one.facts.team}/{one.before.name if one.before else one.run}" if not number else "", step)
        for one in needed[:_MOST_KEPT]
        for number, step in enumerate(one.keeping)
    ]
    if not rows:
        return None
    more = len(needed) - _MOST_KEPT
    below = f"{format_count(more, 'other run')} likewise: --format json has the steps." if more > 0 else ""
    return Section("Steps that keep a run", ("run", "step"), rows, "step", below, is_detail=True)


def _format_retraining_note(again: Sequence[RunEdit], why: str) -> str:
    """Return that runs train again although their specs are the same, `why` all of them do, what that takes,
    and how to keep them."""
    total = describe_hours_and_cost(
        sum_active_runs_of_side(one.after for one in again if one.after is not None)
    )
    train, their = ("run trains", "its spec") if len(again) == 1 else ("runs train", "their specs")
    words = f"Warning: {len(again)} {train} again although {their} did not change, {total}"
    words += f", {why}." if why else "."
    if any(len(one.keeping) > _FEWEST_STEPS for one in again):
        return words
    return f"{words} To keep a run instead of retraining it, write keep: true in its spec (in a sweep: below template:), or keepRuns: true in the file of its cluster."


def _group_sweep_edits(edits: Sequence[RunEdit]) -> list[list[RunEdit]]:
    """Group edits of trials of a sweep: those of one file and cluster with several jobs. Others stay
    alone."""
    groups: dict[tuple[str, str, EditKind], list[RunEdit]] = {}
    for one in edits:
        groups.setdefault((one.facts.source, one.facts.cluster, one.edit), []).append(one)
    found = []
    for group in groups.values():
        is_sweep = len({one.facts.job for one in group}) > 1
        found += [group] if is_sweep else [[one] for one in group]
    return found


def _build_edit_group_row(group: Sequence[RunEdit], common: str) -> SectionRow:
    """Return a row for an edit, or for those of many trials: what they take is added up. The `common` cause
    of all is not repeated."""
    first = group[0]
    if len(group) == 1:
        return _build_run_edit_row(first, common)
    facts, total = first.facts, sum_active_runs_of_side(one.after for one in group if one.after is not None)
    name = facts.source.rpartition("/")[2].removesuffix(".yaml")
    going = sum(bool(one.goes_on) for one in group)
    head = (
        first.edit.value,
        f"{facts.team}/{name}: {len(group)} trials",
        facts.cluster,
        f"{first.run or facts.name} and {len(group) - 1} more",
        format_count(going, "run") if going else "",
    )
    if first.edit not in STARTING_EDITS:
        return (*head, "", "", "", "", "")
    hours = f"{format_hours(total.gpu_hours)} GPU-hours"
    if not total.gpus:
        hours = f"{format_hours(total.cpu_hours)} CPU-hours"
    verdicts = {one.facts.verdict for one in group}
    verdict = verdicts.pop() if len(verdicts) == 1 else "not the same for all"
    reasons = {one.why for one in group}
    why = reasons.pop() if len(reasons) == 1 else "not the same for all"
    why = "" if why == common else why
    return (*head, f"{facts.gpus} each" if facts.gpus else "", hours, format_total_cost(total), verdict, why)


def _build_run_edit_row(one: RunEdit, common: str) -> SectionRow:
    facts, edit = one.facts, one.edit
    name = one.run or facts.name
    if edit in _REPLACING and one.before is not None and one.before.name != facts.name:
        name = f"{one.before.name} {ARROW} {name}"
    if edit is EditKind.SCHEDULED:
        name = f"{name}, {facts.schedule}"
    if one.waits:
        name = f"{name}, after {' and '.join(one.waits)}"
    job = (edit.value, f"{facts.team}/{facts.job}", facts.cluster, name, one.goes_on)
    if edit in (*STARTING_EDITS, EditKind.SCHEDULED, EditKind.WAITS, EditKind.RELEASED):
        hours = f"{format_hours(facts.gpu_hours)} GPU-hours"
        if not facts.gpus:
            hours = f"{format_hours(facts.cpu_hours)} CPU-hours"
        takes = (str(facts.gpus or ""), hours, f"{facts.cost} {facts.currency}".strip())
        return (*job, *takes, facts.verdict, "" if one.why == common else one.why)
    words = "not known: the workspace has errors" if edit is EditKind.BROKEN else ""
    return (*job, "", "", "", words, "")


def _describe_monthly_starts(edits: Sequence[RunEdit]) -> str:
    """Return ` A month has at most 31 starts of nlp/nightly: 496 GPU-hours, 748.96 EUR.`"""
    found = (one.after for one in edits if one.edit is EditKind.SCHEDULED and one.after is not None)
    return "".join(f" {words}" for one in found for words in _format_busiest_month_of_run(one))


def _format_busiest_month_of_run(run: RunFacts) -> Iterator[str]:
    from gangplan.model.months import (
        compute_schedule_cost,
        count_busy_seconds,
        find_month_with_most_cron_starts,
    )  # few jobs have a schedule

    expression, _, zone = run.repeats.rpartition(" ")
    try:
        starts, month = find_month_with_most_cron_starts(expression, zone)
    except (KeyError, NoZonesError):  # reported by schedule-zone
        return
    unit, hours = ("GPU", run.gpu_hours) if run.gpus else ("CPU", run.cpu_hours)
    words = f"{format_hours(hours * count_busy_seconds(starts, run.seconds, month.seconds) / run.seconds)} {unit}-hours"
    if run.cost:
        words += (
            f", {compute_schedule_cost(Decimal(run.cost), starts, run.seconds, month.seconds)} {run.currency}"
        )
    yield f"A month has at most {format_count(starts, 'start')} of {run.team}/{run.job}: {words}."


def format_total_cost(total: Total) -> str:
    """Return `1200.00 EUR + 10.00 USD`; empty without prices."""
    return " + ".join(f"{amount} {currency}" for currency, amount in total.cost.items())
