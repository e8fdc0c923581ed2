"""Checks of all schedules of a cluster: hours at which a queue cannot hold all runs that are due."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import takewhile

from gangplan.findings import Finding, Location, assign_cluster
from gangplan.kueue.model import FlavorResource
from gangplan.model.amounts import format_amount, format_with_unit
from gangplan.model.cron import DAY, iterate_cron_starts, parse_cron
from gangplan.model.run_facts import RunFacts
from gangplan.model.starts import FIRST_YEAR, NoZonesError, find_time_zone
from gangplan.records import dataclass
from gangplan.rules.schedules import SCHEDULE_CROWDED
from gangplan.validate.kueue.contention import RunDemand

# Starts are compared over five weeks, which have every day of a month and of a week; of very frequent starts,
# only the first ones.
DAYS, MOST_STARTS = 35, 500
_BEGIN = int(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()) - 1

# By cluster and TEAM/JOB: the place of the job, and the demand of one of its runs on Kueue.
Demands = Mapping[str, Mapping[str, tuple[Location, RunDemand]]]


@dataclass(frozen=True, slots=True)
class _Due:
    """A run that is due: its start, and its latest end; seconds since 1970."""

    at: int
    until: int
    job: str


def check_crowded_hours(facts: Iterable[RunFacts], demands: Demands) -> list[Finding]:
    """Report, for each queue and set of jobs, the first hour at which the runs that are due cannot all
    train at once."""
    queues: dict[tuple[str, str], list[RunFacts]] = {}
    for one in facts:
        found = demands.get(one.cluster, {}).get(f"{one.team}/{one.job}")
        if one.schedule and one.is_active and found is not None and found[1].usage:
            queues.setdefault((one.cluster, found[1].queue), []).append(one)
    return [
        finding
        for (cluster, queue), jobs in sorted(queues.items())
        if len(jobs) > 1
        for finding in assign_cluster(
            cluster, list(_check_crowded_hours_of_queue(queue, jobs, demands[cluster]))
        )
    ]


def _check_crowded_hours_of_queue(
    queue: str, jobs: Sequence[RunFacts], demands: Mapping[str, tuple[Location, RunDemand]]
) -> Iterator[Finding]:
    earlier = {f"{one.team}/{one.job}": {f"{one.team}/{name}" for name in one.after.split()} for one in jobs}
    longest = _compute_job_chain_seconds(jobs, earlier)
    due = sorted(
        (one for job in jobs for one in _list_scheduled_starts(job, longest)),
        key=lambda one: (one.at, one.job),
    )
    told, running = set[frozenset[str]](), dict[str, _Due]()
    for one in due:
        running = {name: other for name, other in running.items() if other.until > one.at}
        if one.job in running:
            continue  # forbid: the start is skipped
        running[one.job] = one
        together = frozenset(running)
        for some in _split_jobs_of_crowded_hour(together, earlier):
            clash = _find_queue_shortage_at_crowded_hour([demands[name][1] for name in sorted(some)])
            if clash is not None and not any(known <= some for known in told):
                told.add(some)
                late = one.job if one.job in some else max(some)
                yield _build_crowded_hour_finding(
                    queue, replace(one, job=late), sorted(some - {late}), demands, clash
                )


def _split_jobs_of_crowded_hour(
    together: frozenset[str], earlier: Mapping[str, set[str]]
) -> Iterator[frozenset[str]]:
    """Yield the sets of jobs that are due and can train at once: no job with one that follows it."""
    before = {name for one in together for name in earlier[one]}
    after = {one for one in together if earlier[one] & together}
    yield together - before
    if after:
        yield together - after


def _compute_job_chain_seconds(jobs: Sequence[RunFacts], earlier: Mapping[str, set[str]]) -> dict[str, int]:
    """Return how long the run of each start takes at most, with those that it follows, in seconds."""
    seconds = {f"{one.team}/{one.job}": one.seconds for one in jobs}
    found = dict(seconds)
    for _ in jobs:  # no chain is longer than the number of jobs
        before = dict(found)
        for name, own in seconds.items():
            found[name] = own + max((before[one] for one in earlier[name] if one in before), default=0)
        if found == before:
            break
    return found


def _build_crowded_hour_finding(
    queue: str,
    late: _Due,
    others: Sequence[str],
    demands: Mapping[str, tuple[Location, RunDemand]],
    clash: tuple[FlavorResource, Fraction, Fraction],
) -> Finding:
    (flavor, resource), wanted, most = clash
    at = datetime.fromtimestamp(late.at, UTC)
    message = (
        f"at {at:%a %H:%M} UTC (first on {at:%Y-%m-%d}) runs of {', '.join(others)} can still train in queue"
        f" {queue}: with this one they ask for {format_with_unit(resource, wanted)} of flavor {flavor}, and"
        f" the queue gets {format_amount(resource, most)} at most, so one of them waits"
    )
    help = "Start it at another hour, shorten timeout, or raise the team's quota."
    return Finding(SCHEDULE_CROWDED, demands[late.job][0], message, help)


def _list_scheduled_starts(one: RunFacts, longest: Mapping[str, int]) -> Iterator[_Due]:
    expression, _, name = one.schedule.rpartition(" ")
    try:
        cron, zone = parse_cron(expression), find_time_zone(name)
    except (KeyError, NoZonesError):
        return
    found = takewhile(lambda at: at < _BEGIN + DAYS * DAY, iterate_cron_starts(cron, _BEGIN, zone))
    for number, at in enumerate(found):
        if number == MOST_STARTS:
            return
        job = f"{one.team}/{one.job}"
        yield _Due(at, at + longest[job], job)


def _find_queue_shortage_at_crowded_hour(
    demands: Sequence[RunDemand],
) -> tuple[FlavorResource, Fraction, Fraction] | None:
    """Return what all together ask for and their queue can never have at once, unless one asks for all of
    it."""
    total: dict[FlavorResource, Fraction] = {}
    for one in demands:
        for key, amount in (one.usage or {}).items():
            total[key] = total.get(key, Fraction(0)) + amount
    for one in demands:
        for key, most in (one.most or {}).items():
            if total.get(key, Fraction(0)) > most and total[key] > (one.usage or {}).get(key, Fraction(0)):
                return key, total[key], most
    return None
