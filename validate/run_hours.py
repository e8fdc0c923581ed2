"""What a run takes at most, read from its own objects: its nodes, the GPUs or cores of each, its deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from gangplan.model.amounts import is_gpu
from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.cost import format_hours
from gangplan.objects import Body
from gangplan.validate.jobset import list_replicated_jobs

ObjectKey = tuple[str, str, str]  # kind, namespace, name
Bodies = Mapping[ObjectKey, Body]


def describe_run_hours(bodies: Bodies, key: ObjectKey) -> str:
    """Describe what a run takes: `at most 768 GPU-hours`."""
    hours, unit = compute_maximum_run_hours(bodies, key)
    return "without a limit of time" if hours is None else f"at most {format_hours(hours)} {unit}-hours"


def describe_total_run_hours(bodies: Bodies, keys: Iterable[ObjectKey]) -> str:
    """Describe what several runs take: `at most 768 GPU-hours and 12 CPU-hours`.

    Runs without a deadline count as 0.
    """
    amounts: dict[str, Decimal] = {}
    for key in keys:
        hours, unit = compute_maximum_run_hours(bodies, key)
        amounts[unit] = amounts.get(unit, Decimal(0)) + (hours or 0)
    told = (f"{format_hours(amounts[unit])} {unit}-hours" for unit in sorted(amounts, reverse=True))
    return f"at most {' and '.join(told)}"


def compute_maximum_run_hours(bodies: Bodies, key: ObjectKey) -> tuple[Decimal | None, str]:
    """Return the hours of GPUs or CPUs that a run takes at most, and which unit.

    The hours are None without a deadline.
    """
    return _AMOUNTS[key[0]](bodies, key)


def _compute_trainjob_hours(bodies: Bodies, key: ObjectKey) -> tuple[Decimal | None, str]:
    spec = bodies[key].get("spec") or {}
    nodes = (spec.get("trainer") or {}).get("numNodes") or 1
    runtime = bodies.get((RUNTIME_KIND, key[1], key[2]))
    jobs = [
        _read_job_deadline_and_resources(job) for job in (list_replicated_jobs(runtime) if runtime else ())
    ]
    gpus = max((count for _, count, _ in jobs), default=0)
    cores = max((cpu for _, _, cpu in jobs), default=Decimal(0))
    seconds = spec.get("activeDeadlineSeconds") or max((limit for limit, _, _ in jobs), default=0)
    amount, unit = (Decimal(gpus), "GPU") if gpus else (cores, "CPU")
    return (amount * nodes * seconds / 3600 if seconds else None), unit


def _compute_mpijob_hours(bodies: Bodies, key: ObjectKey) -> tuple[Decimal | None, str]:
    spec = bodies[key].get("spec") or {}
    worker = _read_nested_field(spec, "mpiReplicaSpecs", "Worker") or {}
    _, gpus, cores = _read_job_deadline_and_resources({"template": {"spec": worker}})
    nodes = int(worker.get("replicas") or 0) + bool(spec.get("runLauncherAsWorker"))
    seconds = int(_read_nested_field(spec, "runPolicy", "activeDeadlineSeconds") or 0)
    amount, unit = (Decimal(gpus), "GPU") if gpus else (cores, "CPU")
    return (amount * nodes * seconds / 3600 if seconds else None), unit


_AMOUNTS: Mapping[str, Callable[[Bodies, ObjectKey], tuple[Decimal | None, str]]] = {
    TRAINJOB.kind: _compute_trainjob_hours,
    MPIJOB.kind: _compute_mpijob_hours,
}


def _read_job_deadline_and_resources(job: Body) -> tuple[int, int, Decimal]:
    """Return a replicated job's deadline in seconds, and the GPUs and cores that one of its pods asks for."""
    spec = _read_nested_field(job, "template", "spec") or {}
    gpus, cores = 0, Decimal(0)
    for one in _read_nested_field(spec, "template", "spec", "containers") or ():
        limits = _read_nested_field(one, "resources", "limits") or {}
        gpus += sum(
            int(str(count)) for name, count in limits.items() if is_gpu(name) and str(count).isdigit()
        )
        cores += _parse_cpu_cores(str(limits.get("cpu", "0")))
    return int(spec.get("activeDeadlineSeconds") or 0), gpus, cores


def _parse_cpu_cores(text: str) -> Decimal:
    plain = text.removesuffix("m")
    if not plain.replace(".", "", 1).isdigit():
        return Decimal(0)
    return Decimal(plain) / (1000 if text.endswith("m") else 1)


def _read_nested_field(body: Any, *path: str) -> Any:
    for step in path:
        body = (body or {}).get(step) if isinstance(body, dict) else None
    return body
