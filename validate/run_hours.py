"""What a run takes at most, read from its own objects: all of its pods and their deadlines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gangplan.kueue.units import KUEUE_CPU, convert_from_kueue_count
from gangplan.model.amounts import is_gpu
from gangplan.model.backend import RUNTIME_KIND, TRAINJOB
from gangplan.model.cost import SECONDS_PER_HOUR, format_hours
from gangplan.objects import Body
from gangplan.validate.expand import EXPANDERS, ExpandedPods
from gangplan.validate.kueue.requests import LimitRanges, adjust_workload_pod_spec, requests_of

ObjectKey = tuple[str, str, str]  # kind, namespace, name
Bodies = Mapping[ObjectKey, Body]


def describe_run_hours(bodies: Bodies, key: ObjectKey) -> str:
    """Describe what a run takes: `at most 768 GPU-hours`."""
    hours, unit = compute_maximum_run_hours(bodies, key)
    if not unit:
        return "for a time that its objects do not say"
    return "without a limit of time" if hours is None else f"at most {format_hours(hours)} {unit}-hours"


def describe_total_run_hours(bodies: Bodies, keys: Iterable[ObjectKey]) -> str:
    """Describe what several runs take: `at most 768 GPU-hours and 12 CPU-hours`.

    Runs without a deadline count as 0.
    """
    amounts: dict[str, Decimal] = {}
    for key in keys:
        hours, unit = compute_maximum_run_hours(bodies, key)
        amounts[unit or "CPU"] = amounts.get(unit or "CPU", Decimal(0)) + (hours or 0)
    told = (f"{format_hours(amounts[unit])} {unit}-hours" for unit in sorted(amounts, reverse=True))
    return f"at most {' and '.join(told)}"


def compute_maximum_run_hours(bodies: Bodies, key: ObjectKey) -> tuple[Decimal | None, str]:
    """Return the hours of GPUs or CPUs that all pods of a run take at most, and which unit.

    The hours are None without a deadline, and the unit is empty for objects that cannot be read.
    """
    try:
        return _sum_pod_hours(bodies, key)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None, ""


def _sum_pod_hours(bodies: Bodies, key: ObjectKey) -> tuple[Decimal | None, str]:
    """Return the hours of all pods, as gangplan.model.cost counts those of a plan.

    Steps end at their own deadlines, and each attempt begins with the first of them; all other pods are there
    as long as the run.
    """
    job = bodies[key]
    holder = bodies.get((RUNTIME_KIND, key[1], key[2])) if key[0] == TRAINJOB.kind else job
    if holder is None:
        return None, ""
    pods = EXPANDERS[key[0]](job, holder, 0)
    names = {name for one in pods for name in _list_completed_before(one)}
    steps = {one.name: _read_job_deadline(one) for one in pods if one.name in names}
    attempts = 1 + int(
        _read_nested_field(holder, "spec", "template", "spec", "failurePolicy", "maxRestarts") or 0
    )
    whole = _read_run_deadline(job)
    if not whole:
        longest = max((_read_job_deadline(one) for one in pods if one.name not in names), default=0)
        whole = (sum(steps.values()) + longest) * attempts if longest else 0
    gpus = cores = Fraction(0)
    for one in pods:
        hours = Fraction(min(steps.get(one.name, 0) * attempts or whole, whole) * one.count, SECONDS_PER_HOUR)
        asked = requests_of(adjust_workload_pod_spec(one.template["spec"], LimitRanges([]), {}))
        for name, count in asked.items():
            amount = convert_from_kueue_count(name, count) * hours
            gpus += amount if is_gpu(name) else 0
            cores += amount if name == KUEUE_CPU else 0
    amount, unit = (gpus, "GPU") if gpus else (cores, "CPU")
    return (Decimal(amount.numerator) / amount.denominator if whole else None), unit


def _list_completed_before(pods: ExpandedPods) -> list[str]:
    """Return the jobs that are complete before these pods start: steps of the run."""
    needed = pods.entry.get("dependsOn") or ()
    return [one["name"] for one in needed if one.get("status") == "Complete"]


def _read_job_deadline(pods: ExpandedPods) -> int:
    return int(_read_nested_field(pods.entry, "template", "spec", "activeDeadlineSeconds") or 0)


def _read_run_deadline(job: Body) -> int:
    own = _read_nested_field(job, "spec", "activeDeadlineSeconds")
    return int(own or _read_nested_field(job, "spec", "runPolicy", "activeDeadlineSeconds") or 0)


def _read_nested_field(body: Any, *path: str) -> Any:
    for step in path:
        body = (body or {}).get(step) if isinstance(body, dict) else None
    return body
