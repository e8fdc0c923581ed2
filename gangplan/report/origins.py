"""The origins of a run's values, as a table."""

from __future__ import annotations

from gangplan.model.duration import format_duration
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.escape import escape_own_line


def render_value_origins_text(run: PlannedRun) -> str:
    """Return one line per value: name, value, layer, place."""
    job = run.unit.job
    values = {
        "image": job.image.name,
        "framework": job.image.framework,
        "workers": job.workers,
        "gpus": job.gpus,
        "slots": job.slots,
        "cpu": job.resources.cpu.canonical(),
        "memory": job.resources.memory.canonical(),
        "nodePool": job.worker_pool.name,
        "posture": job.posture,
        "priority": job.priority,
        "timeout": format_duration(job.timeout_s),
        "logRetention": format_duration(job.log_retention_s),
        "retries": job.retries,
    }
    rows = []
    for name, value in values.items():
        origin = job.origins[name]
        of_template = origin.layer == "spec" and origin.where and origin.where.file != job.source
        layer = f"template {job.template.label}" if of_template and job.template else origin.layer
        rows.append((name, str(value), layer, str(origin.where) if origin.where else ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        escape_own_line(
            f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {layer:<{widths[2]}}  {where}".rstrip()
        )
        for name, value, layer, where in rows
    ]
    return escape_own_line(f"{job.source} on {run.cluster}: {run.name}") + "\n" + "\n".join(lines) + "\n"
