"""Problems of the rules `plan-broken` and `plan-weakened`, and the words of their messages."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.rules.patches import PLAN_BROKEN, PLAN_WEAKENED
from gangplan.validate.problems import Problem


def report_broken_promise(path: FieldPath, message: str, help: str, field: str = "") -> Problem:
    """Return the problem that a run starts or ends differently from the plan.

    `field` is the spec's field (as in `Job.origins`).
    """
    return Problem(path, message, help, PLAN_BROKEN, field)


def report_weakened_plan(path: FieldPath, message: str, help: str) -> Problem:
    """Return the problem that a run starts as planned but has less than the plan."""
    return Problem(path, message, help, PLAN_WEAKENED)


def format_counted_noun(number: int, one: str, many: str = "") -> str:
    """Format a number with its noun: `1 worker`, `3 workers`."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
