"""What the trials of sweeps amount to together: waves, hours, GPU-hours, money; as text and as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from gangplan.model.bill import CostItem, build_cost_item
from gangplan.model.cost import compute_max_seconds, count_step_gpus, format_hours, gpus_of
from gangplan.model.duration import format_duration
from gangplan.model.trial import Trial
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.validate.kueue import format_admission

# How many trials are listed; JSON has all.
_LISTED = 64
BlockFormatter = Callable[[PlannedRun], str]


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The trials of a sweep on one cluster, and what they amount to.

    `at_once` is how many of them run at the same time: as many as the sweep says and the team's quota holds;
    0 if that is not known, because a trial is never admitted. Times are seconds, at most.
    """

    name: str
    runs: tuple[PlannedRun, ...]
    active: int
    at_once: int
    waves: int
    seconds: int
    gpu_hours: Decimal
    gpus_at_once: int
    cost: Decimal | None
    currency: str

    @property
    def first(self) -> PlannedRun:
        """A trial that represents the others."""
        return next((run for run in self.runs if run.unit.job.is_active), self.runs[0])

    @property
    def trial(self) -> Trial:
        """The trial that `first` runs: its sweep, name and values."""
        trial = self.first.unit.job.trial
        assert trial is not None
        return trial


def split_off_sweeps(runs: Sequence[PlannedRun]) -> tuple[list[PlannedRun], list[SweepPlan]]:
    """Return the runs that are not trials, and sweeps by cluster."""
    plain = [run for run in runs if run.unit.job.trial is None]
    trials = [run for run in runs if run.unit.job.trial is not None]
    groups = groupby(trials, key=lambda run: (run.unit.job.source, run.cluster))
    return plain, [_build_sweep_plan(tuple(group)) for _, group in groups]


def _build_sweep_plan(runs: tuple[PlannedRun, ...]) -> SweepPlan:
    job = runs[0].unit.job
    assert job.trial is not None
    active = [run for run in runs if run.unit.job.is_active]
    at_once = min((run.at_once for run in active), default=0)
    waves = -(-len(active) // at_once) if at_once else 0
    longest = max((compute_max_seconds(run.unit.job) for run in active), default=0)
    items = [build_cost_item(run.unit.job, run.name, None) for run in active]
    gpus = max((gpus_of(run.unit.job) + count_step_gpus(run.unit.job) for run in active), default=0)
    return SweepPlan(
        job.trial.sweep,
        runs,
        len(active),
        min(at_once, len(active)),
        waves,
        waves * longest,
        sum((one.gpu_hours for one in items), Decimal(0)),
        min(at_once, len(active)) * gpus,
        None if any(one.cost is None for one in items) else _sum_trial_costs(items),
        job.platform.currency,
    )


def _sum_trial_costs(items: Sequence[CostItem]) -> Decimal:
    return sum((one.cost for one in items if one.cost is not None), Decimal(0))


def format_sweep_plan_block(plan: SweepPlan, block: BlockFormatter) -> str:
    """Return what the trials amount to, then one of them, then all by name and values."""
    job = plan.first.unit.job
    over = len(plan.runs) - plan.active
    rows = [
        ("trials", f"{len(plan.runs)}" + (f", {over} of them over" if over else "")),
        ("at once", _describe_concurrent_trials(plan)),
        ("time", _describe_sweep_duration(plan)),
        ("totals", f"at most {format_hours(plan.gpu_hours)} GPU-hours" if plan.gpu_hours else ""),
        ("cost", f"at most {plan.cost} {plan.currency}" if plan.cost is not None else ""),
        ("admission", _format_trial_admission(plan)),
    ]
    lines = "".join(f"  {name:<9} {value}\n" for name, value in rows if value)
    head = f"{job.source} on {plan.first.cluster}: sweep {plan.name} of {job.namespace}\n"
    listed = "".join(f"    {_format_trial_line(run)}\n" for run in plan.runs[:_LISTED])
    more = len(plan.runs) - _LISTED
    listed += f"    and {more} more; --format json has all\n" if more > 0 else ""
    return f"{head}{lines}  each trial, by its values\n{listed}\none of them: {block(plan.first)}"


def _format_trial_admission(plan: SweepPlan) -> str:
    """Return what happens to all trials in their queue."""
    active = [run for run in plan.runs if run.unit.job.is_active]
    never = [run for run in active if run.verdict is None or run.verdict.outcome != "admit"]
    if not active:
        return ""
    if never:
        return (
            f"{len(never)} of {len(active)} trials are never admitted: {format_admission(never[0].verdict)}"
        )
    queue = active[0].verdict.queue if active[0].verdict else ""
    return f"every trial in its turn, by queue {queue}, which never admits more than {plan.trial.at_once}"


def format_sweep_plan_line(plan: SweepPlan) -> str:
    """Return a sweep in one line: `on lab: 48 trials, 10 at once, at most 20h, 768 GPU-hours, 1200.00
    USD`."""
    words = [f"{len(plan.runs)} trials"]
    words += [f"{plan.at_once} at once, at most {format_duration(plan.seconds)}"] if plan.waves else []
    words += [f"{format_hours(plan.gpu_hours)} GPU-hours"] if plan.gpu_hours else []
    words += [f"{plan.cost} {plan.currency}"] if plan.cost is not None else []
    return f"on {plan.first.cluster}: {', '.join(words)}"


def _describe_concurrent_trials(plan: SweepPlan) -> str:
    if not plan.at_once:
        return ""
    gpus = f": {plan.gpus_at_once} GPUs" if plan.gpus_at_once else ""
    asked = plan.trial.at_once
    held = min(asked, plan.active)
    short = f"; maxConcurrent is {asked}, but quota holds no more" if plan.at_once < held else ""
    return f"{plan.at_once} trial{'' if plan.at_once == 1 else 's'}{gpus}{short}"


def _describe_sweep_duration(plan: SweepPlan) -> str:
    if not plan.waves:
        return ""
    each = format_duration(plan.seconds // plan.waves)
    waves = f"{plan.waves} wave{'' if plan.waves == 1 else 's'}"
    return f"at most {format_duration(plan.seconds)}: {waves} of {each}"


def _format_trial_line(run: PlannedRun) -> str:
    trial = run.unit.job.trial
    assert trial is not None
    state = "" if run.unit.job.is_active else " (over)"
    return f"{trial.name}  {' '.join(f'{name}={text}' for name, text in trial.values)}{state}"


def build_sweep_plan_json(plan: SweepPlan) -> dict[str, Any]:
    """Return the sweep as data."""
    job = plan.first.unit.job
    return {
        "spec": job.source,
        "cluster": plan.first.cluster,
        "name": plan.name,
        "trials": len(plan.runs),
        "active": plan.active,
        "maxConcurrent": plan.trial.at_once,
        "atOnce": plan.at_once,
        "waves": plan.waves,
        "seconds": plan.seconds,
        "gpuHours": f"{plan.gpu_hours:f}",
        "gpusAtOnce": plan.gpus_at_once,
        "cost": None if plan.cost is None else {"most": str(plan.cost), "currency": plan.currency},
    }
