"""What Prometheus measured for runs, read from a file: the answer of its HTTP API to the query of
docs/cost.md.

Instant vectors and ranges are accepted (Prometheus 3.5, querying/api). Values that are not finite numbers of
at least 0 are ignored, and so are series without the labels; gangplan does not guess missing values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from gangplan.errors import UserError, build_unreadable_file_error
from gangplan.records import dataclass

HELP = "Save the answer of /api/v1/query to the query of docs/cost.md."
# Values of the label `measured`: cores and bytes of the busiest worker, average utilisation of all GPUs in
# percent, and the hours in which any pod ran.
CPU, MEMORY, GPU, HOURS = "cpu", "memory", "gpu", "hours"
_MOST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What one run used: the most cores and bytes of any worker, the utilisation of its GPUs in percent, and
    the hours in which it had running pods."""

    cpu: Decimal | None = None
    memory: Decimal | None = None
    gpu: Decimal | None = None
    hours: Decimal | None = None


def read_measurements(path: Path) -> dict[tuple[str, str], MeasuredUse]:
    """Return the measurements by namespace and run.

    Raises UserError if the file is not an answer of Prometheus.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path} is larger than 256 MiB", "Query a shorter time, or instant values.")
        answer = json.loads(path.read_text(encoding="utf-8"), parse_constant=str)
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise build_unreadable_file_error(path, error, HELP) from None
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, dict) or data.get("resultType") not in ("vector", "matrix"):
        said = answer.get("error") if isinstance(answer, dict) else None
        raise UserError(
            f"{path} is not a vector or matrix of Prometheus" + (f": {said}" if said else ""), HELP
        )
    found: dict[tuple[str, str], dict[str, list[Decimal]]] = {}
    for labels, values in _iterate_prometheus_series(data.get("result")):
        what = labels.get("measured")
        name = labels.get("namespace"), labels.get("run")
        if what in (CPU, MEMORY, GPU, HOURS) and all(isinstance(one, str) and one for one in name) and values:
            found.setdefault(name, {}).setdefault(what, []).extend(values)  # type: ignore[arg-type]
    return {name: _compute_measured_use(kinds) for name, kinds in sorted(found.items())}


def _compute_measured_use(kinds: Mapping[str, list[Decimal]]) -> MeasuredUse:
    percent = kinds.get(GPU)
    return MeasuredUse(
        max(kinds[CPU]) if CPU in kinds else None,
        max(kinds[MEMORY]) if MEMORY in kinds else None,
        min(sum(percent, Decimal(0)) / len(percent), Decimal(100)) if percent else None,
        max(kinds[HOURS]) if HOURS in kinds else None,
    )


def _iterate_prometheus_series(result: Any) -> Iterator[tuple[Mapping[str, Any], list[Decimal]]]:
    for one in result if isinstance(result, list) else ():
        labels = one.get("metric") if isinstance(one, dict) else None
        if not isinstance(labels, dict):
            continue
        points = one.get("values") if isinstance(one.get("values"), list) else [one.get("value")]
        yield labels, [value for point in points if (value := _parse_prometheus_point(point)) is not None]


def _parse_prometheus_point(point: Any) -> Decimal | None:
    """Return the number in `[time, "1.5"]`."""
    if not (isinstance(point, list) and len(point) == 2 and isinstance(point[1], str) and len(point[1]) < 64):
        return None
    try:
        value = Decimal(point[1])
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value < Decimal("1e18") else None
