"""Durations and arrivals of runs: two small files, and defaults without them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.model.duration import DurationError, parse_spec_duration
from gangplan.source import ManifestError, load_objects

# A run without a stated duration takes half of its timeout, because timeouts are generous.
PART_OF_TIMEOUT = 0.5
DURATIONS_HELP = "Write lines such as: nlp/pretrain: 6h, or cv/*: 90m"
ARRIVALS_HELP = "Write lines such as: nlp/pretrain: [0m, 6h], or cv/*: {every: 2h, times: 12}"
AT_ONCE_HELP = "For arrivals at the same time, write each: nlp/pretrain: [0m, 0m]"


def read_lines(path: Path, help: str) -> Mapping[str, Any]:
    """Read a YAML file of `team/job: value` lines, in which `*` matches any text. Raises UserError."""
    try:
        documents = list(load_objects(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, ManifestError) as error:
        raise UserError(f"{path} cannot be read: {error}", help) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UserError(f"{path} is not a mapping", help)
    return documents[0]


def check_lines_used(lines: Mapping[str, Any], names: Sequence[str], path: Path) -> None:
    """Check that every line matches some job. Raises UserError."""
    for pattern in lines:
        if not any(fnmatchcase(name, str(pattern)) for name in names):
            raise UserError(
                f"{path}: no job is called {pattern}", f"Jobs here: {', '.join(sorted(names)[:8])}"
            )


def find_job_line(lines: Mapping[str, Any], name: str) -> Any:
    """Return the value for a job: of its own line, else of the first matching pattern, else None."""
    if name in lines:
        return lines[name]
    return next((value for pattern, value in lines.items() if fnmatchcase(name, str(pattern))), None)


def choose_line_name(lines: Mapping[str, Any] | None, name: str, sweep: str) -> str:
    """Return the name to look a trial up by: its own, or its sweep's if only the sweep has a line."""
    return sweep if lines and sweep in lines and name not in lines else name


def duration_of(lines: Mapping[str, Any], name: str, timeout: float) -> float:
    """Return how long a job runs, in seconds."""
    value = find_job_line(lines, name)
    return (
        timeout * PART_OF_TIMEOUT
        if value is None
        else float(_parse_duration_seconds(value, name, DURATIONS_HELP))
    )


def arrivals_of(lines: Mapping[str, Any] | None, name: str, seed: int) -> Iterator[float]:
    """Yield when a job is submitted, in seconds from the start; without a file once at the start.

    Jobs without a line in the file are not submitted. `{every: 2h, times: 12}` draws the gaps between
    arrivals (exponential, mean `every`) from a random generator per job, so that jobs do not affect each
    other. Raises UserError.
    """
    value = 0 if lines is None else find_job_line(lines, name)
    if value is None:
        return
    if isinstance(value, dict):
        if set(value) != {"every", "times"} or type(value["times"]) is not int or value["times"] < 1:
            raise UserError(f"arrivals of {name}: {value} is not understood", ARRIVALS_HELP)
        mean = _parse_duration_seconds(value["every"], name, ARRIVALS_HELP)
        if not mean:
            raise UserError(f"arrivals of {name}: every is no time at all", AT_ONCE_HELP)
        chance, now = random.Random(f"{seed} {name}"), 0.0
        for _ in range(value["times"]):
            now += chance.expovariate(1 / mean)
            yield now
        return
    for one in value if isinstance(value, list) else [value]:
        yield float(_parse_duration_seconds(one, name, ARRIVALS_HELP))


def _parse_duration_seconds(value: Any, name: str, help: str) -> int:
    if value in (0, "0", "0s", "0m", "0h"):
        return 0
    try:
        return parse_spec_duration(value)
    except DurationError as error:
        raise UserError(f"{name}: {error.message}", help) from None
