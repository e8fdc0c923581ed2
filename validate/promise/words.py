"""How a broken promise is told: what the run would be, what was planned, and where to change it rightly."""

from __future__ import annotations

from gangplan.rules.patches import PLAN_BROKEN, PLAN_WEAKENED
from gangplan.validate.apiserver.forms import Path
from gangplan.validate.problems import Problem


def broken(path: Path, message: str, help: str, field: str = "") -> Problem:
    """What starts, or ends, is not what was planned. `field` is the spec's field (as in `Job.origins`)."""
    return Problem(path, message, help, PLAN_BROKEN, field)


def weakened(path: Path, message: str, help: str) -> Problem:
    """The run starts as planned and has less than the plan says."""
    return Problem(path, message, help, PLAN_WEAKENED)


def counted(number: int, one: str, many: str = "") -> str:
    """`1 worker`, `3 workers`."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
