"""What an edit does to a run, compared with `rendered/`: the run starts, continues, ends, or is left
alone."""

from __future__ import annotations

from typing import Any

from gangplan.model.cost import describe_max_use
from gangplan.model.job import Job
from gangplan.pipeline.worker import PlannedRun


def format_planned_edit(run: PlannedRun) -> str:
    """Return `new run, at most 768 GPU-hours`, or what else a sync does with a run."""
    job = run.unit.job
    if job.is_archived:
        return "archived: left alone"
    if job.is_dated:
        from gangplan.report.schedule import format_schedule_edit_note  # few jobs have a schedule

        return format_schedule_edit_note(run)
    if job.is_stopped:
        return (
            "stopped: it ends, and its record starts nothing"
            if run.name in run.there
            else "stopped: a record"
        )
    if run.name in run.there:
        return "none: the run that is rendered stays as it is"
    price = describe_max_use(job)
    if run.is_retrained:
        return f"retrained, because the platform changed, {price}; keep: true {'below template:' if job.trial else 'in the spec'} or --keep-runs keeps it"
    old = [name for name in run.there if name not in job.retired]
    if old:
        return f"new run, {price}; {', '.join(old)} goes on until it is stopped (retired: in the spec)"
    return f"new run, {price}"


def describe_over_run(job: Job) -> str:
    """Return what happens to the run of a job that is archived or stopped."""
    if job.is_archived:
        return "archived, so nothing is applied; a run that is there goes on"
    if job.is_dated:
        return "stopped, so the schedule is suspended; a run that trains goes on to its end"
    return "stopped, so a run that is there ends; its record stays in rendered/"


def build_rare_plan_rows(job: Job, since: int | None) -> list[tuple[str, str]]:
    """Return the rows of a plan that few runs have: what the run is made from, when its runs start."""
    rows = []
    if job.template is not None:
        from gangplan.report.template import build_template_plan_rows

        rows += build_template_plan_rows(job.template, job.workers)
    if job.schedule is not None:
        from gangplan.report.schedule import format_schedule_with_next_starts

        rows.append(("schedule", format_schedule_with_next_starts(job, since)))
    if job.model is not None:
        follows = job.schedule.follows if job.schedule else ()
        before = " and ".join(one.name for one in job.after.jobs) if job.after else " and ".join(follows)
        before = before or "the jobs before it"
        rows.append(
            (
                "model",
                f"registers {job.model.name} {job.model.version}; if that fails, {before} stays complete",
            )
        )
    return rows


def build_rare_plan_json(job: Job, since: int | None) -> dict[str, Any]:
    """Return the same parts as data."""
    parts: dict[str, Any] = {}
    if job.template is not None:
        from gangplan.report.template import build_template_json

        parts["template"] = build_template_json(job.template, job.workers)
    if job.schedule is not None:
        from gangplan.report.schedule import build_schedule_json

        parts["schedule"] = build_schedule_json(job, since)
    if job.model is not None:
        parts["model"] = {"name": job.model.name, "version": job.model.version}
    return parts
