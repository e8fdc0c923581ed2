"""`gangplan cost --elsewhere`: the cost and the waiting time of a job on each pool and cluster of its
team."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.commands.listing import format_terminal_table
from gangplan.commands.outfile import resolve_output_file_flag
from gangplan.commands.simulate import build_queued_runs_for_simulation
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.generators.schedules import unwrap_scheduled_run
from gangplan.kueue.model import KueueWorkload
from gangplan.model.bill import CostItem, build_cost_item
from gangplan.model.duration import format_duration
from gangplan.pipeline.elsewhere import ClusterPool, try_spec_on_other_pools
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.scope import select_work_scope
from gangplan.pipeline.standing import build_previewed_world
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.report.costs import format_cost_decimal, format_money
from gangplan.simulate import read_workload, simulate_runs
from gangplan.simulate.day import (
    DURATIONS_HELP,
    find_job_line,
    read_lines_of_simulated_day,
    simulated_duration_of,
)
from gangplan.simulate.outcome import compute_simulation_outcome
from gangplan.source import load_objects
from gangplan.validate.kueue.members import read_quota_setup_of_cluster
from gangplan.validate.world import World
from gangplan.workspace import SpecFile, Workspace, load_workspace

_FORMATS = ("table", "json")
_WIDEST = 72
# After all others, which are already waiting when it arrives.
_LATER_S = 0.001


@dataclass(frozen=True, slots=True)
class Offer:
    """A job at one place: `item` and `waits`, if it can run there.

    `waits` is in seconds; None if it never starts, or does not wait for Kueue. `refused` is what prevents it,
    empty if nothing does. `is_now`: its spec places it here.
    """

    place: ClusterPool
    item: CostItem | None
    waits: float | None
    refused: str
    is_now: bool


def print_cost_elsewhere(request: Request, durations: Path | None, format: str) -> Exit:
    """Print a table for each spec. Raises UserError for invalid flags, for sweeps, and if no spec is
    named."""
    name, equals, file = format.partition("=")
    if name not in _FORMATS:
        raise UserError(f"there is no format '{name}' with --elsewhere", f"Formats: {', '.join(_FORMATS)}.")
    if not request.specs:
        raise UserError("--elsewhere is about jobs", "Name specs: gangplan cost SPEC --elsewhere.")
    target = resolve_output_file_flag(file, request.root, "the costs") if equals else None
    workspace = load_workspace(request.root)
    _, files = select_work_scope(workspace, request.clusters, request.teams, request.specs, Path.cwd())
    now = preview_render(request, workspace)
    wrong = [one for one in now.findings if one.is_error and one.where.file not in now.files]
    if wrong:  # an error of the platform or a team applies to every place
        print_findings_to_stderr(sort_findings(wrong))
        return choose_exit_code(wrong)
    queue = _Queue(request, workspace, durations)
    found = {one: _list_pool_offers_for_elsewhere_flag(request, workspace, one, queue, now) for one in files}
    if name == "json":
        said = (
            json.dumps(
                {
                    "version": 1,
                    "jobs": [_build_offer_facts_for_elsewhere_flag(*one) for one in found.items()],
                },
                indent=2,
            )
            + "\n"
        )
    else:
        said = "\n".join(
            _format_offers_for_elsewhere_flag(one, offers, durations is not None)
            for one, offers in found.items()
        )
    if target is not None:
        target.write(said)
    else:
        sys.stdout.write(said)
    return Exit.CLEAN


class _Queue:
    """The other active runs of the workspace on each cluster, which have just arrived."""

    def __init__(self, request: Request, workspace: Workspace, durations: Path | None) -> None:
        self.lines = read_lines_of_simulated_day(durations, DURATIONS_HELP) if durations else {}
        self._request, self._workspace = replace(request, specs=(), teams=(), uses_cache=False), workspace
        self._known: dict[str, tuple[World, list[KueueWorkload]]] = {}

    def waits(self, run: PlannedRun, text: str) -> float | None:
        """Return how long a run would wait for its first admission, in seconds; None if it is never
        admitted."""
        world, others = self._of(run.cluster)
        job = run.unit.job
        title = f"{job.team}/{job.name}"
        lasts = simulated_duration_of(self.lines, title, job.timeout_s)
        bodies = unwrap_scheduled_run(load_objects(text))
        own = read_workload(world, bodies, title, duration=lasts, arrival=_LATER_S, team=job.team)
        if own is None or own.is_hopeless:
            return None
        runs = [*(one for one in others if one.name != title), own]
        return compute_simulation_outcome(
            simulate_runs(read_quota_setup_of_cluster(world), runs), runs
        ).waits.get(title)

    def _of(self, cluster: str) -> tuple[World, list[KueueWorkload]]:
        if cluster not in self._known:
            whole = replace(self._request, clusters=(cluster,))
            result = preview_render(whole, self._workspace)
            world = build_previewed_world(whole, cluster, result)
            self._known[cluster] = world, build_queued_runs_for_simulation(world, result, self.lines)[0]
        return self._known[cluster]


def _list_pool_offers_for_elsewhere_flag(
    request: Request, workspace: Workspace, file: SpecFile, queue: _Queue, as_is: Result
) -> list[Offer]:
    runs = [run for run in as_is.runs if run.unit.job.source == file.file]
    now = {(run.cluster, run.unit.job.worker_pool.name) for run in runs}
    offers = [
        _build_pool_offer_for_elsewhere_flag(
            place, file.file, result, queue, (place.cluster, place.pool) in now
        )
        for place, result in try_spec_on_other_pools(request, workspace, file, runs)
    ]
    return sorted(offers, key=_build_cost_offer_sort_key)


def _build_pool_offer_for_elsewhere_flag(
    place: ClusterPool, file: str, result: Result, queue: _Queue, is_now: bool
) -> Offer:
    errors = [one.message for one in result.findings if one.is_error]
    # Jobs that come after this one are looked at, too.
    run = next((one for one in result.runs if one.unit.job.source == file), None)
    if errors or run is None:
        return Offer(place, None, None, errors[0] if errors else "it has no run there", is_now)
    job = run.unit.job
    title = f"{job.team}/{job.name}"
    stated = find_job_line(queue.lines, title) is not None
    item = build_cost_item(
        job, run.name, simulated_duration_of(queue.lines, title, job.timeout_s) if stated else None
    )
    return Offer(place, item, queue.waits(run, result.texts[run.path]), "", is_now)


def _build_cost_offer_sort_key(offer: Offer) -> tuple[bool, bool, Decimal, float, str, str]:
    """Return a sort key: the cheapest offers first, then those without a price, then the impossible ones."""
    price = offer.item.expected or offer.item.cost if offer.item else None
    waits = float("inf") if offer.waits is None else offer.waits
    return (
        bool(offer.refused),
        price is None,
        price or Decimal(0),
        waits,
        offer.place.cluster,
        offer.place.pool,
    )


def _format_offers_for_elsewhere_flag(file: SpecFile, offers: Sequence[Offer], with_expected: bool) -> str:
    rows = [
        {
            "": "now" if one.is_now else None,
            "cluster": one.place.cluster,
            "pool": one.place.pool,
            "GPU": one.place.gpu or None,
            "at most": one.item and format_money(one.item.cost, one.item.currency),
            **(
                {"expected": one.item and format_money(one.item.expected, one.item.currency)}
                if with_expected
                else {}
            ),
            "waits": None if one.refused else _format_queue_wait(one.waits),
            "why not": one.refused or None,
        }
        for one in offers
    ]
    if not rows:
        return f"{file.file}: no cluster of team {file.team} has such a pool\n"
    return f"{file.file}\n{format_terminal_table(rows, widest=_WIDEST)}"


def _format_queue_wait(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    return format_duration(round(seconds)) if round(seconds) else "not at all"


def _build_offer_facts_for_elsewhere_flag(file: SpecFile, offers: Sequence[Offer]) -> dict[str, Any]:
    return {
        "file": file.file,
        "places": [
            {
                "cluster": one.place.cluster,
                "pool": one.place.pool,
                "gpu": one.place.gpu or None,
                "isNow": one.is_now,
                "most": format_cost_decimal(one.item.cost) if one.item else None,
                "expected": format_cost_decimal(one.item.expected) if one.item else None,
                "currency": one.item.currency if one.item and one.item.cost is not None else None,
                "waitSeconds": None if one.waits is None else round(one.waits),
                "refused": one.refused or None,
            }
            for one in offers
        ],
    }
