"""Sharing among the trials of a sweep: parts of their runs that are equal are kept in memory once.

A planned run takes 12 kB in addition to its text of 22 kB; a trial has less than 3 kB of that for itself.
"""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from gangplan.findings import Location
from gangplan.model.job import Job
from gangplan.model.run_facts import RunFacts
from gangplan.pipeline.worker import PlannedRun, TaskResult
from gangplan.records import dataclass
from gangplan.validate.kueue.contention import RunDemand

T = TypeVar("T")
# Fields in which trials may differ and still be equal for Kueue and for nodes.
_OWN = frozenset({"name", "command", "env", "spec_hash", "trial"})


@dataclass(slots=True)
class FirstTrials:
    """The first trial of a sweep on each cluster, with which the others share what they have in common.

    `is_brief`: the command needs neither texts nor the source files of runs.
    """

    is_brief: bool
    runs: dict[str, PlannedRun] = field(default_factory=dict)
    facts: dict[str, RunFacts] = field(default_factory=dict)
    demands: dict[str, tuple[str, str, Location, RunDemand]] = field(default_factory=dict)

    def share(self, part: TaskResult) -> None:
        """Let the runs of a trial share what they can."""
        part.facts = [share_equal_parts(one, self.facts.setdefault(one.cluster, one)) for one in part.facts]
        part.demands = [share_equal_parts(one, self.demands.setdefault(one[0], one)) for one in part.demands]
        if self.is_brief:
            part.runs = [self._run(one, part.texts) for one in part.runs]

    def _run(self, run: PlannedRun, texts: dict[str, str]) -> PlannedRun:
        run = replace(run, unit=replace(run.unit, sources=None))
        first = self.runs.setdefault(run.cluster, run)
        if run is first:
            return run
        run = share_equal_parts(run, first)
        if not _matches_first_sweep_trial(run, first):
            return run
        texts[run.path] = ""
        return replace(run, alike=first.path)


def _matches_first_sweep_trial(run: PlannedRun, first: PlannedRun) -> bool:
    """Return whether a run, which shares what it can with the first one, is equal to it for Kueue and for
    nodes."""
    if run.verdict is not first.verdict or run.unit.layout is not first.unit.layout:
        return False
    mine, its = run.unit.job, first.unit.job
    return all(
        getattr(mine, name) is getattr(its, name) for name in _list_dataclass_fields(Job) if name not in _OWN
    )


def share_equal_parts(one: T, first: T) -> T:
    """Return an equal value that uses the parts of the first one wherever they are equal."""
    if one is first or type(one) is not type(first):
        return one
    if one == first and repr(one) == repr(first):  # 1 and True are equal, and so are 1.0 and 1.00
        return first
    mine: Any = one
    its: Any = first
    if type(mine) is tuple:
        mine = (*map(share_equal_parts, mine, its), *mine[len(its) :])
    elif is_dataclass(one):
        parts = {
            name: share_equal_parts(getattr(mine, name), getattr(its, name))
            for name in _list_dataclass_fields(mine.__class__)
        }
        mine = replace(mine, **parts)
    shared: T = mine
    return shared


@cache
def _list_dataclass_fields(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))
