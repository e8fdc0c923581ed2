"""How long runs take and when they come: two small files, and what stands in for them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.model.duration import DurationError, parse_duration
from gangplan.source import ManifestError, load_objects

# A run without a stated duration takes half of its timeout: timeouts are set with room to spare.
PART_OF_TIMEOUT = 0.5
DURATIONS_HELP = "Write lines such as: nlp/pretrain: 6h, or cv/*: 90m"
ARRIVALS_HELP = "Write lines such as: nlp/pretrain: [0m, 6h], or cv/*: {every: 2h, times: 12}"


def read_lines(path: Path, help: str) -> Mapping[str, Any]:
    """A file of `team/job: value` lines (YAML), `*` standing for any text. Raises UserError."""
    try:
        documents = list(load_objects(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, ManifestError) as error:
        raise UserError(f"{path} cannot be read: {error}", help) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UserError(f"{path} is not a mapping", help)
    return documents[0]


def check_used(lines: Mapping[str, Any], names: Sequence[str], path: Path) -> None:
    """Every line must speak of some job. Raises UserError."""
    for pattern in lines:
        if not any(fnmatchcase(name, str(pattern)) for name in names):
            raise UserError(
                f"{path}: no job is called {pattern}", f"Jobs here: {', '.join(sorted(names)[:8])}"
            )


def line_for(lines: Mapping[str, Any], name: str) -> Any:
    """The value for a job: of its own line, else of the first pattern that fits; None where there is none."""
    if name in lines:
        return lines[name]
    return next((value for pattern, value in lines.items() if fnmatchcase(name, str(pattern))), None)


def sweep_line(lines: Mapping[str, Any] | None, name: str, sweep: str) -> str:
    """What to look a trial up by: its own name, or that of its sweep where only that has a line."""
    return sweep if lines and sweep in lines and name not in lines else name


def duration_of(lines: Mapping[str, Any], name: str, timeout: float) -> float:
    """How long a job runs, in seconds."""
    value = line_for(lines, name)
    return timeout * PART_OF_TIMEOUT if value is None else float(_seconds(value, name, DURATIONS_HELP))


def arrivals_of(lines: Mapping[str, Any] | None, name: str, seed: int) -> Iterator[float]:
    """When a job is submitted, in seconds from the start; once at the start where nothing is said.

    With a file, jobs that it does not name do not come. `{every: 2h, times: 12}` draws the gaps between
    arrivals (exponential, mean `every`) with a generator of the job's own, so that jobs do not disturb each
    other.
    """
    value = 0 if lines is None else line_for(lines, name)
    if value is None:
        return
    if isinstance(value, dict):
        if set(value) != {"every", "times"} or not isinstance(value["times"], int):
            raise UserError(f"arrivals of {name}: {value} is not understood", ARRIVALS_HELP)
        mean = _seconds(value["every"], name, ARRIVALS_HELP)
        chance, now = random.Random(f"{seed} {name}"), 0.0
        for _ in range(value["times"]):
            now += chance.expovariate(1 / mean)
            yield now
        return
    for one in value if isinstance(value, list) else [value]:
        yield float(_seconds(one, name, ARRIVALS_HELP))


def _seconds(value: Any, name: str, help: str) -> int:
    if value in (0, "0", "0s", "0m", "0h"):
        return 0
    try:
        return parse_duration(value)
    except DurationError as error:
        raise UserError(f"{name}: {error.message}", help) from None
