"""Durations and arrivals of runs: two small files, and defaults without them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.model.duration import DurationError, parse_duration_to_seconds
from gangplan.source import Document, load_document

# A run without a stated duration takes half of its timeout, because timeouts are generous.
PART_OF_TIMEOUT = 0.5
DURATIONS_HELP = "Write lines such as: nlp/pretrain: 6h, or cv/*: 90m"
ARRIVALS_HELP = "Write lines such as: nlp/pretrain: [0m, 6h], or cv/*: {every: 2h, times: 12}"
AT_ONCE_HELP = "For arrivals at the same time, write each: nlp/pretrain: [0m, 0m]"


class JobLines(dict[str, Any]):
    """The lines of a file by their names, which may be patterns; each knows its place."""

    def __init__(self, document: Document) -> None:
        super().__init__(document.value)
        self._document = document

    def place(self, pattern: str) -> str:
        """Return the file, line and column of a value."""
        return str(self._document.where((pattern,)))


def read_lines_of_simulated_day(path: Path, help: str) -> JobLines:
    """Read a YAML file of `team/job: value` lines, in which `*` matches any text. Raises UserError."""
    try:
        document, findings = load_document(path.read_bytes(), path.as_posix())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", help) from None
    if document is None:
        raise UserError("; ".join(f"{one.where}: {one.message}" for one in findings), help)
    if not isinstance(document.value, dict):
        raise UserError(f"{path} is not a mapping", help)
    return JobLines(document)


def check_simulation_lines_match_jobs(lines: JobLines, names: Sequence[str]) -> None:
    """Check that every line matches some job. Raises UserError."""
    unused = [one for one in lines if not any(fnmatchcase(name, str(one)) for name in names)]
    if unused:
        message = "; ".join(f"{lines.place(one)}: no job is called {one}" for one in unused)
        raise UserError(message, f"Jobs here: {', '.join(sorted(names)[:8])}")


def find_job_line(lines: Mapping[str, Any], name: str) -> Any:
    """Return the value for a job: of its own line, else of the first matching pattern, else None."""
    pattern = _find_line_name(lines, name)
    return None if pattern is None else lines[pattern]


def _find_line_name(lines: Mapping[str, Any], name: str) -> str | None:
    if name in lines:
        return name
    return next((one for one in lines if fnmatchcase(name, str(one))), None)


def _find_line_place(lines: Mapping[str, Any], name: str) -> str:
    """Return the place of the line of a job; its name if there is no file."""
    pattern = _find_line_name(lines, name)
    return lines.place(pattern) if isinstance(lines, JobLines) and pattern is not None else name


def choose_line_name(lines: Mapping[str, Any] | None, name: str, sweep: str) -> str:
    """Return the name to look a trial up by: its own, or its sweep's if only the sweep has a line."""
    return sweep if lines and sweep in lines and name not in lines else name


def simulated_duration_of(lines: Mapping[str, Any], name: str, timeout: float) -> float:
    """Return how long a job runs, in seconds."""
    value = find_job_line(lines, name)
    return (
        timeout * PART_OF_TIMEOUT
        if value is None
        else float(_parse_simulation_duration_seconds(value, _find_line_place(lines, name), DURATIONS_HELP))
    )


def simulated_arrivals_of(lines: Mapping[str, Any] | None, name: str, seed: int) -> Iterator[float]:
    """Yield when a job is submitted, in seconds from the start; without a file once at the start.

    Jobs without a line in the file are not submitted. `{every: 2h, times: 12}` draws the gaps between
    arrivals (exponential, mean `every`) from a random generator per job, so that jobs do not affect each
    other. Raises UserError.
    """
    value = 0 if lines is None else find_job_line(lines, name)
    if value is None:
        return
    place = _find_line_place(lines or {}, name)
    if isinstance(value, dict):
        if set(value) != {"every", "times"} or type(value["times"]) is not int or value["times"] < 1:
            raise UserError(f"{place}: {value} is not understood", ARRIVALS_HELP)
        mean = _parse_simulation_duration_seconds(value["every"], place, ARRIVALS_HELP)
        if not mean:
            raise UserError(f"{place}: every is zero", AT_ONCE_HELP)
        chance, now = random.Random(f"{seed} {name}"), 0.0
        for _ in range(value["times"]):
            now += chance.expovariate(1 / mean)
            yield now
        return
    for one in value if isinstance(value, list) else [value]:
        yield float(_parse_simulation_duration_seconds(one, place, ARRIVALS_HELP))


def _parse_simulation_duration_seconds(value: Any, place: str, help: str) -> int:
    if value in (0, "0", "0s", "0m", "0h"):
        return 0
    try:
        return parse_duration_to_seconds(value)
    except DurationError as error:
        raise UserError(f"{place}: {error.message}", help) from None
