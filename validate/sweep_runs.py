"""What happens to the trials of a sweep, reported once for all trials with the same change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gangplan.findings import Clue
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.lifecycle import RUN_REMOVED, RUN_REPLACED
from gangplan.rules.model import Rule
from gangplan.rules.runs import RUN_RESUMED, RUN_RETIRED, RUN_STARTED, RUN_STOPPED
from gangplan.validate.problems import Problem
from gangplan.validate.run_hours import Bodies, ObjectKey, describe_total_run_hours

SWEEP_NAME_LABEL = "gangplan.dev/sweep"
SWEEP_ENDING_HELP = "Put the sweep back with state: stopped, and remove it in a later change."
# What happens to several runs of a sweep: {n} is their number, {such} one of them, {hours} what all take at
# most.
_WORDS: dict[Rule, str] = {
    RUN_STARTED: "{n} runs of sweep {sweep} are new, such as {such}: they join its queue when this is synced,"
    " {hours} together",
    RUN_STOPPED: "{n} runs of sweep {sweep} are stopped, such as {such}: they end whether they wait or train"
    " (they could have taken {hours})",
    RUN_RESUMED: "{n} runs of sweep {sweep} were stopped and start again, such as {such}, {hours} together",
    RUN_RETIRED: "the records of {n} runs of sweep {sweep} are removed, such as {such}: the engine deletes"
    " them from the cluster",
    RUN_REMOVED: "{n} runs of sweep {sweep} are removed from Git but not stopped, such as {such}: those that"
    " are not over continue unseen",
    RUN_REPLACED: "{n} runs of sweep {sweep} are replaced in Git, such as {such} ({why}, {hours} together);"
    " old ones that are not over train next to the new ones",
}
_RETIRED = "To end the old ones: gangplan retire --write lists them in retired:."
_KEEP = "To keep them, write template: {keep: true} in the sweep. "


def build_replacement_problem(message: str, run: str, rule: Rule) -> Problem:
    """Return the problem that another run replaces one in Git; its clue has that one, and how to end it."""
    ending = f"To end the old one, add to the spec: retired: [{run}]."
    return Problem((), message, ending, rule, clue=Clue(kind="run", given=(run, ending)))


@dataclass(frozen=True, slots=True)
class RunChange:
    """What happens to a run: its key, the problem, its object, and the key of the run that replaces it.

    `why` is the reason for a replacement.
    """

    key: ObjectKey
    problem: Problem
    body: Body
    heir: ObjectKey | None = None
    why: str = ""


def merge_run_changes_of_sweep_trials(
    changes: Iterable[RunChange], new: Bodies
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield the changes, with equal ones of several runs of a sweep merged at the first of these runs."""
    groups: dict[object, list[RunChange]] = {}
    for one in changes:
        sweep = read_sweep_label(one.body)
        kind = (one.key[1], sweep, one.problem.rule, one.problem.level) if sweep else one.key
        groups.setdefault(kind, []).append(one)
    there = {(key[1], read_sweep_label(body)) for key, body in new.items()} if groups else set()
    for first, *rest in groups.values():
        sweep = read_sweep_label(first.body)
        is_there = (first.key[1], sweep) in there
        if rest:
            yield first.key, _merge_trial_problems(sweep, [first, *rest], new, is_there)
        elif sweep and first.problem.rule is RUN_REMOVED:
            yield first.key, replace(first.problem, help=_describe_trial_ending([first], is_there))
        else:
            yield first.key, first.problem


def _merge_trial_problems(sweep: str, changes: list[RunChange], new: Bodies, is_there: bool) -> Problem:
    first = changes[0]
    keys = [one.heir or one.key for one in changes]
    message = _WORDS[first.problem.rule].format(
        n=len(changes),
        sweep=sweep,
        such=first.key[2] + (f" by {first.heir[2]}" if first.heir else ""),
        hours=describe_total_run_hours(new, [key for key in keys if key in new]),
        why=first.why,
    )
    help = first.problem.help
    if first.problem.rule is RUN_REMOVED:
        help = _describe_trial_ending(changes, is_there)
    elif first.problem.rule is RUN_REPLACED:
        help = (_KEEP if first.problem.level is not None else "") + _RETIRED
    return replace(first.problem, message=message, help=help, clue=Clue(kind="trials", given=("", _RETIRED)))


def _describe_trial_ending(changes: list[RunChange], is_there: bool) -> str:
    """Return how to end trials that left Git, with their sweep or without it."""
    if not is_there:
        return SWEEP_ENDING_HELP
    trials = [one.key[2].split("-")[-2] for one in changes]
    names = ", ".join(trials)
    return (
        f"To end them, put their values back and write stopped: [{names}]; removed: comes in a later change."
    )


def read_sweep_label(body: Body) -> str:
    """Return the name of the sweep that a run belongs to, or an empty text."""
    return str(((body.get("metadata") or {}).get("labels") or {}).get(SWEEP_NAME_LABEL, ""))
