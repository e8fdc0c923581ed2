"""`gangplan cost --measured`: what runs requested, compared with what Prometheus measured."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.commands.listing import format_terminal_table
from gangplan.commands.outfile import resolve_output_file_flag
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.model.bill import build_cost_item
from gangplan.model.cost import NANOS_PER_UNIT
from gangplan.model.job import Job
from gangplan.model.measured import MeasuredUse, read_measurements
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.costs import CostRow, format_exact_price, render_cost_rows_csv

_FORMATS = ("table", "csv", "json")
_WIDEST = 63
# The headroom that a worker keeps above its peak use, in percent; saving less than WORTH percent is not worth
# an edit.
HEADROOM, WORTH = 30, 10
_GIB = Decimal(2**30)


def print_measured_cost(request: Request, path: Path, format: str) -> Exit:
    """Print what each measured run requested and used, with the edit that would fit it.

    Raises UserError for invalid flags, for a file that is not an export, and if it has none of the runs.
    """
    name, equals, file = format.partition("=")
    if name not in _FORMATS:
        raise UserError(f"there is no format '{name}'", f"Formats: {', '.join(_FORMATS)}.")
    target = resolve_output_file_flag(file, request.root, "the comparison") if equals else None
    measured = read_measurements(path)
    result = preview_render(request)
    if result.has_errors:
        print_findings_to_stderr(sort_findings([one for one in result.findings if one.is_error]))
        return choose_exit_code(result.findings)
    rows = [
        _build_cost_row_for_measured_flag(run, found)
        for run in sorted(result.runs, key=lambda one: (one.cluster, one.unit.job.team, one.name))
        if (found := _find_run_use_for_measured_flag(measured, run)) is not None
    ]
    if not rows:
        raise UserError(
            f"{path} has none of these runs", "Export those of this cluster, by namespace and run."
        )
    said = _format_costs_for_measured_flag(rows, name)
    if target is not None:
        target.write(said)
    else:
        sys.stdout.write(said)
    return Exit.CLEAN


def _find_run_use_for_measured_flag(
    measured: dict[tuple[str, str], MeasuredUse], run: PlannedRun
) -> MeasuredUse | None:
    """Return what was measured for a run; for a schedule, combine all of its dated runs: peaks, and mean GPU
    use."""
    job = run.unit.job
    if not job.is_dated:
        return measured.get((job.namespace, run.name))
    dated = re.compile(rf"{re.escape(job.name)}-[0-9]{{8}}-[0-9]{{4}}")
    found = [
        one for (space, name), one in measured.items() if space == job.namespace and dated.fullmatch(name)
    ]
    if not found:
        return None
    busy = [one.gpu for one in found if one.gpu is not None]
    return MeasuredUse(
        max((one.cpu for one in found if one.cpu is not None), default=None),
        max((one.memory for one in found if one.memory is not None), default=None),
        sum(busy, Decimal(0)) / len(busy) if busy else None,
    )


def _build_cost_row_for_measured_flag(run: PlannedRun, found: MeasuredUse) -> CostRow:
    job = run.unit.job
    cpu, memory = (
        Decimal(job.worker_pod.cpu.nano) / NANOS_PER_UNIT,
        Decimal(job.worker_pod.memory.nano) / NANOS_PER_UNIT,
    )
    new_cpu, new_memory = (
        _compute_sufficient_amount(cpu, found.cpu, Decimal(1)),
        _compute_sufficient_amount(memory, found.memory, _GIB),
    )
    edits = [f"cpu: {new_cpu:f}"] if new_cpu is not None else []
    edits += [f"memory: {new_memory / _GIB:f}Gi"] if new_memory is not None else []
    idle = None if found.gpu is None or not job.gpus else 100 - found.gpu
    item = build_cost_item(job, run.name, None)
    return {
        "cluster": run.cluster,
        "team": job.team,
        "run": run.name,
        "file": job.source,
        "gpus": job.gpus,
        "cpu": format_exact_price(cpu),
        "cpuUsed": _format_rounded_decimal(found.cpu),
        "memoryGi": _format_rounded_decimal(memory / _GIB),
        "memoryUsedGi": _format_rounded_decimal(found.memory / _GIB) if found.memory is not None else None,
        "gpuIdlePercent": _format_rounded_decimal(idle),
        "idleCost": _format_rounded_decimal(item.cost * idle / 100)
        if item.cost is not None and idle is not None
        else None,
        "edit": ", ".join(edits) or None,
        "saves": _compute_saved_money(job, cpu, new_cpu),
        "currency": item.currency if item.cost is not None else None,
    }


def _compute_sufficient_amount(asked: Decimal, used: Decimal | None, unit: Decimal) -> Decimal | None:
    """Return a sufficient amount, in whole units; None if nothing was measured, or too little would be
    saved."""
    if used is None:
        return None
    wanted = (used * (100 + HEADROOM) / 100 / unit).to_integral_value(ROUND_CEILING) * unit
    wanted = max(wanted, unit)
    return wanted if wanted * 100 <= asked * (100 - WORTH) else None


def _compute_saved_money(job: Job, cpu: Decimal, wanted: Decimal | None) -> str | None:
    """Return the money saved on pools without GPUs, where cores are paid for; None if an edit frees only
    cores."""
    price = job.worker_pool.per_cpu_hour
    if wanted is None or job.worker_pool.gpu or price is None:
        return None
    hours = Decimal(job.timeout_s) / 3600
    return f"{((cpu - wanted) * job.workers * price * hours).quantize(Decimal('0.01')):f}"


def _format_rounded_decimal(value: Decimal | None) -> str | None:
    return None if value is None else f"{value.quantize(Decimal('0.01')):f}"


def _format_costs_for_measured_flag(rows: Sequence[CostRow], format: str) -> str:
    if format == "csv":
        return render_cost_rows_csv(rows)
    if format == "json":
        return json.dumps({"version": 1, "runs": list(rows)}, indent=2, ensure_ascii=False) + "\n"
    shown: list[CostRow] = [
        {
            "run": one["run"],
            "cluster": one["cluster"],
            "cpu": _format_use_of_request(one["cpuUsed"], one["cpu"], ""),
            "memory": _format_use_of_request(one["memoryUsedGi"], one["memoryGi"], "Gi"),
            "GPUs idle": f"{one['gpuIdlePercent']}%" if one["gpuIdlePercent"] is not None else None,
            "idle at most": f"{one['idleCost']} {one['currency']}" if one["idleCost"] is not None else None,
            "edit": one["edit"],
            "saves": f"{one['saves']} {one['currency']}" if one["saves"] is not None else None,
        }
        for one in rows
    ]
    text = format_terminal_table(shown, widest=_WIDEST)
    return (
        text + f"\nof a worker: used at most, of what it asks for; edits keep {HEADROOM} percent above that."
        " Why GPUs are idle, no figure here tells.\n"
    )


def _format_use_of_request(used: object, asked: object, unit: str) -> str | None:
    return None if used is None else f"{used}{unit} of {asked}{unit}"
