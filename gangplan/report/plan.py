"""Runs in, what they amount to out: as text for people, as data for machines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from gangplan.model.amounts import say
from gangplan.model.duration import format_duration
from gangplan.model.job import Resources
from gangplan.model.quantity import Quantity
from gangplan.pipeline.worker import PlannedRun
from gangplan.report.admission import admission_document, admission_words
from gangplan.report.cost import cost_document, cost_words
from gangplan.report.fabric import fabric_document, fabric_words
from gangplan.report.nodes import node_document, node_words

SHAPE = 1


def plan_text(runs: Sequence[PlannedRun]) -> str:
    """A block per run, then totals per cluster."""
    blocks = [_block(run) for run in runs]
    totals = [f"{cluster}: {_sentence(total)}" for cluster, total in _totals(runs).items()]
    return "\n".join([*blocks, "totals", *(f"  {line}" for line in totals), ""]) if runs else ""


def plan_document(runs: Sequence[PlannedRun]) -> dict[str, Any]:
    """The same as data. Quantities are canonical texts, times are seconds."""
    return {
        "version": SHAPE,
        "runs": [_run(run) for run in runs],
        "totals": {cluster: _as_text(total) for cluster, total in _totals(runs).items()},
    }


def _block(run: PlannedRun) -> str:
    job, layout, launch = run.unit.job, run.unit.layout, run.unit.launch
    launcher = ""
    if layout.launcher_pods:
        launcher = (
            " (the launcher is one of them)"
            if job.launcher_runs_ranks
            else f" + launcher ({_shape(job.launcher)})"
        )
    rows = [
        ("ranks", f"{layout.ranks} = {layout.workers} workers x {layout.slots} slots"),
        ("pods", f"{layout.pods} = {layout.workers} workers ({_shape(job.resources)} each){launcher}"),
        ("totals", _sentence(run_totals(run))),
        ("command", shlex.join(launch.argv)),
        ("image", job.image.reference),
        ("pool", job.worker_pool.name),
        (
            "queue",
            f"{job.queue or 'none'}, priority {job.priority}, timeout {format_duration(job.timeout_s)}, retries {job.retries}, grace period {format_duration(job.grace_s)}",
        ),
        ("admission", admission_words(run.verdict)),
        ("nodes", node_words(run.fit)),
        (
            "network",
            job.posture + (f", {job.worker_pool.gbps} Gbit/s per node" if job.worker_pool.gbps else ""),
        ),
        ("fabric", fabric_words(job.fabric)),
        ("cost", cost_words(run)),
    ]
    lines = "".join(f"  {name:<9} {value}\n" for name, value in rows if value)
    return f"{job.source} on {run.cluster}: {job.namespace}/{run.name}\n{lines}"


def _shape(resources: Resources) -> str:
    devices = {name: Quantity.of(count) for name, count in resources.devices}
    return _sentence({"cpu": resources.cpu, "memory": resources.memory, **devices})


def run_totals(run: PlannedRun) -> dict[str, Quantity]:
    """Requests of all pods of a run, by resource name."""
    job, layout = run.unit.job, run.unit.layout
    workers = layout.workers if not job.launcher_runs_ranks else layout.pods
    total = {"cpu": job.resources.cpu * workers, "memory": job.resources.memory * workers}
    for name, count in job.resources.devices:
        total[name] = Quantity.of(count * workers)
    if layout.launcher_pods and not job.launcher_runs_ranks:
        total["cpu"] += job.launcher.cpu
        total["memory"] += job.launcher.memory
    return total


def _totals(runs: Sequence[PlannedRun]) -> dict[str, dict[str, Quantity]]:
    totals: dict[str, dict[str, Quantity]] = {}
    for run in runs:
        total = totals.setdefault(run.cluster, {})
        for name, amount in run_totals(run).items():
            total[name] = total[name] + amount if name in total else amount
    return dict(sorted(totals.items()))


def _sentence(total: dict[str, Quantity]) -> str:
    """GPUs last: `16 CPU, 320 GiB of memory, 4 GPUs`."""
    names = sorted(total, key=lambda name: (name not in ("cpu", "memory"), name))
    return ", ".join(say(name, total[name]) for name in names)


def _as_text(total: dict[str, Quantity]) -> dict[str, str]:
    return {name: amount.canonical() for name, amount in sorted(total.items())}


def _run(run: PlannedRun) -> dict[str, Any]:
    job, layout, launch = run.unit.job, run.unit.layout, run.unit.launch
    return {
        "spec": job.source,
        "cluster": run.cluster,
        "namespace": job.namespace,
        "name": run.name,
        "file": run.path,
        "workers": layout.workers,
        "slots": layout.slots,
        "ranks": layout.ranks,
        "pods": {"node": layout.node_pods, "launcher": layout.launcher_pods},
        "worker": _resources(job.resources),
        "launcher": _resources(job.launcher) if layout.launcher_pods else None,
        "totals": _as_text(run_totals(run)),
        "command": list(launch.argv),
        "image": job.image.reference,
        "pool": job.worker_pool.name,
        "queue": job.queue,
        "priority": job.priority,
        "timeoutSeconds": job.timeout_s,
        "retries": job.retries,
        "gracePeriodSeconds": job.grace_s,
        "posture": job.posture,
        "fabric": fabric_document(job.fabric),
        "admission": admission_document(run.verdict),
        "nodes": node_document(run.fit),
        "cost": cost_document(run),
    }


def _resources(resources: Resources) -> dict[str, str]:
    return {
        "cpu": resources.cpu.canonical(),
        "memory": resources.memory.canonical(),
        **{name: str(count) for name, count in resources.devices},
    }
