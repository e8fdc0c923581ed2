"""What a run can cost at most (model/cost.py), for people and machines."""

from __future__ import annotations

from decimal import Decimal

from gangplan.model.cost import compute_max_cost, compute_max_seconds, list_cost_parts
from gangplan.model.duration import format_duration
from gangplan.model.job import Job
from gangplan.model.starts import NoZonesError
from gangplan.pipeline.worker import PlannedRun


def describe_run_cost(run: PlannedRun) -> str:
    """Return the cost of a run: `at most 1200.00 EUR (32 GPUs x 1.5625 x 24h)`; empty without a price.

    Steps count for their own time.
    """
    job = run.unit.job
    parts, cost = list_cost_parts(job), compute_max_cost(job)
    if parts is None or cost is None:
        return ""
    whole = [part for part in parts if not part.is_step]
    priced = " + ".join(part.words for part in whole)
    priced = f"({priced})" if len(whole) > 1 else priced
    priced += f" x {format_duration(compute_max_seconds(job))}"
    priced += "".join(f" + {part.words} x {format_duration(part.seconds)}" for part in parts if part.is_step)
    words = f"at most {cost} {job.platform.currency} ({priced})"
    return words + _describe_monthly_cost(job, cost) if job.schedule else words


def _describe_monthly_cost(job: Job, cost: Decimal) -> str:
    """Return `; 7750.00 EUR in a month with 31 starts`; empty if nothing starts or the zone is not known."""
    from gangplan.model.months import (
        compute_schedule_cost,
        find_month_with_most_cron_starts,
    )  # few jobs have a schedule

    assert job.schedule is not None
    try:
        starts, month = find_month_with_most_cron_starts(job.schedule.cron, job.schedule.time_zone)
    except (KeyError, NoZonesError):
        return ""
    if not starts:
        return ""
    money = compute_schedule_cost(cost, starts, compute_max_seconds(job), month.seconds)
    counted = f"{starts} start{'' if starts == 1 else 's'}"
    return f"; {money} {job.platform.currency} in a month with {counted}"


def build_cost_json(run: PlannedRun) -> dict[str, str] | None:
    """Return the cost of a run as data; None without a price."""
    cost = compute_max_cost(run.unit.job)
    return None if cost is None else {"most": str(cost), "currency": run.unit.job.platform.currency}
