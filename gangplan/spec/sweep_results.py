"""The results of a sweep: the trials that are over, according to a CSV file in Git."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path as File

from gangplan.findings import FieldPath, Finding, Location
from gangplan.rules.sweeps import SWEEP_RESULTS
from gangplan.source import Document
from gangplan.spec.files import read_files_mounted_by_spec, resolve_spec_file
from gangplan.spec.near import suggest_nearest
from gangplan.spec.sweep import Results, Sweep
from gangplan.spec.trials import format_trial_name, list_sweep_trial_settings

TRIAL, RUNG = "trial", "rung"
# The rung that a trial reached, and its value there; smaller is better.
Rank = tuple[float, float]


class _Named(Document):
    """A document in which every place is that of the file's name."""

    __slots__ = ("_base",)

    def __init__(self, base: Document) -> None:
        super().__init__(base.file, base.value, "")
        self._base = base

    def where(self, path: FieldPath, key: bool = False) -> Location:
        """Return the place of the file's name."""
        return self._base.where(("results", "file"))


def find_losing_trials_in_results_file(
    root: File, spec: str, sweep: Sweep, document: Document
) -> tuple[frozenset[str], list[Finding]]:
    """Return the trials that have a result and are not among the best, or the findings about the file.

    A trial on a higher rung is better than any on a lower one. If several lines are about a trial, the one
    with its highest rung counts, and of several such lines the last.
    """
    asked = sweep.results
    if asked is None:
        return frozenset(), []
    data, findings = read_files_mounted_by_spec(root, spec, {asked.file: ""}, _Named(document))
    if findings:
        return frozenset(), findings
    file = resolve_spec_file(spec, asked.file)
    try:
        text = data[asked.file].decode("utf-8-sig")
    except UnicodeDecodeError:
        return frozenset(), [_report_results_error(file, 1, "the file is not UTF-8", "Save it as UTF-8.")]
    known = {format_trial_name(one) for one in list_sweep_trial_settings(sweep, document)}
    ranks: dict[str, Rank] = {}
    for found in _parse_trials_of_sweep_results_file(text, file, asked, known):
        if isinstance(found, Finding):
            findings.append(found)
        elif found[0] not in ranks or found[1][0] <= ranks[found[0]][0]:
            ranks[found[0]] = found[1]
    if findings:
        return frozenset(), findings
    order = sorted(ranks, key=lambda trial: (ranks[trial], trial))
    return frozenset(order[asked.keep :]), []


def _parse_trials_of_sweep_results_file(
    text: str, file: str, asked: Results, known: set[str]
) -> Iterator[tuple[str, Rank] | Finding]:
    """Yield each line as a trial and its rank, or as a finding about it."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    columns = [name.strip() for name in rows.fieldnames or ()]
    rows.fieldnames, sign = columns, 1 if asked.goal == "minimize" else -1
    for name in (TRIAL, asked.metric):
        if name not in columns:
            help = f"The first line names the columns: {TRIAL},{asked.metric}."
            yield _report_results_error(file, 1, f"there is no column '{name}'", help)
            return
    for row in rows:
        trial, line = (row[TRIAL] or "").strip(), rows.line_num
        if trial not in known:
            help = f"{suggest_nearest(trial, known)} gangplan plan lists the trials."
            yield _report_results_error(file, line, f"the sweep has no trial '{trial}'", help)
            continue
        value, rung = (
            _parse_number_in_sweep_results_file(row[asked.metric]),
            _parse_number_in_sweep_results_file(row.get(RUNG) or "0"),
        )
        if value is None or rung is None:
            said = row[asked.metric] if value is None else row[RUNG]
            yield _report_results_error(
                file, line, f"'{said}' is not a number", "Write a number, or leave the line out."
            )
            continue
        yield trial, (-rung, sign * value)


def _parse_number_in_sweep_results_file(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _report_results_error(file: str, line: int, message: str, help: str) -> Finding:
    return Finding(SWEEP_RESULTS, Location(file, line, 1), message, help)
