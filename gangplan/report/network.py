"""Allowed traffic of runs: a table per run for people, and data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangplan.pipeline.worker import PlannedRun
from gangplan.validate.network.flows import Flow

SHAPE = 1
_HEAD = ("from", "to", "ports", "verdict", "by")


def render_network_text(runs: Sequence[PlannedRun]) -> str:
    """Return a block per run: every pair that matters, open or closed, and the policies that decide it."""
    return "\n".join(_render_network_flow_table(run) for run in runs)


def build_network_json(runs: Sequence[PlannedRun]) -> dict[str, Any]:
    """Return the runs as data."""
    return {"version": SHAPE, "runs": [_build_network_flows_json(run) for run in runs]}


def _render_network_flow_table(run: PlannedRun) -> str:
    job = run.unit.job
    rows = [_HEAD, *(_build_network_flow_table_row(run, flow) for flow in run.flows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    lines = [
        "  " + "  ".join([*(row[at].ljust(width) for at, width in enumerate(widths)), row[-1]]).rstrip()
        for row in rows
    ]
    if not run.flows:
        lines = ["  not judged: see the findings"]
    head = f"{job.source} on {run.cluster}: {job.namespace}/{run.name} (*), posture {job.posture}"
    return "".join(f"{line}\n" for line in [head, *lines])


def _build_network_flow_table_row(run: PlannedRun, flow: Flow) -> tuple[str, ...]:
    sent, taken = (
        ", ".join(name.replace(run.unit.run_name, "*") for name in names)
        for names in (flow.sent_by, flow.taken_by)
    )
    by = "; ".join(part for part in (sent and f"out: {sent}", taken and f"in: {taken}", flow.note) if part)
    row = (flow.source, flow.target, flow.ports, flow.verdict, by)
    return tuple(text.replace(run.unit.run_name, run.name) for text in row)


def _build_network_flows_json(run: PlannedRun) -> dict[str, Any]:
    def named(texts: Sequence[str]) -> list[str]:
        return [text.replace(run.unit.run_name, run.name) for text in texts]

    return {
        "spec": run.unit.job.source,
        "cluster": run.cluster,
        "namespace": run.unit.job.namespace,
        "name": run.name,
        "posture": run.unit.job.posture,
        "flows": [
            {
                "from": flow.source,
                "to": flow.target,
                "ports": flow.ports,
                "verdict": flow.verdict,
                "sentBy": named(flow.sent_by),
                "takenBy": named(flow.taken_by),
                "note": flow.note,
            }
            for flow in run.flows
        ],
    }
