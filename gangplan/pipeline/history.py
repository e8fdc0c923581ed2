"""Runs that Git had in `rendered/`: from which commit to which, and what they cost at most.

Git knows when the branch got a run, and when its file became a record or was removed. It does not know when a
run was admitted, nor when it ended by itself. So a run is assumed to last until its deadline; if it became a
record, which ends it, no longer than the time between the commits. Removing a file without a record stops
nothing (engines do not prune runs), so it limits nothing either. Prices are those of the commit that added
the run. Dated runs of schedules are never in Git: only measurements know them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from gangplan.emit.earlier import EarlierRun
from gangplan.generators.schedules import unwrap_scheduled_run
from gangplan.model.backend import TRAINJOB
from gangplan.model.bill import ZERO_COST, CostItem
from gangplan.model.cost import CENT, SECONDS_PER_HOUR
from gangplan.model.syncing import build_archived_annotations
from gangplan.objects import Body
from gangplan.pipeline.past_pools import (
    compute_pool_hourly_price,
    find_nested_value,
    find_pool_of_past_pod,
    sum_resources_of_past_pod,
)
from gangplan.plan.names import DATED_SUFFIX
from gangplan.records import dataclass
from gangplan.source import ManifestError, load_objects
from gangplan.tools.git_log import FileChange, list_file_changes_in_git_log
from gangplan.tools.revisions import read_git_blobs_by_id
from gangplan.workspace import OVERLAYS, RENDERED

_RUN = re.compile(rf"{RENDERED}/([^/]+)/runs/([^/]+)/([^/.]+)\.yaml")
_CLUSTER = re.compile(rf"{OVERLAYS}/([^/]+)/cluster\.yaml")
_DATED = re.compile(r"(.+)-([0-9]{8}-[0-9]{4})")
_ARCHIVED = tuple(f"    {key}: {value}\n" for key, value in build_archived_annotations().items())
# A run whose objects state no deadline is not known to end.
_NEVER = 0


@dataclass(frozen=True, slots=True)
class RunInHistory:
    """A run in `rendered/`: the change that added it, and the one that ended it, if any.

    `is_ended`: it became a record; otherwise its file was removed as it was. `cluster_file` is the blob of
    the cluster's file at that commit, empty if there was none.
    """

    cluster: str
    team: str
    run: str
    entered: FileChange
    left: FileChange | None = None
    is_ended: bool = False
    cluster_file: str = ""


@dataclass(frozen=True, slots=True)
class StayCost:
    """A stay with its figures at most, and with those of the hours that were measured, if any."""

    stay: RunInHistory
    most: CostItem
    used: CostItem | None = None
    hours: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """The stays since a moment, and the number of schedules whose runs are not known."""

    items: Sequence[StayCost] = field(default_factory=tuple)
    schedules: int = 0


def read_run_history(
    root: Path,
    since: int,
    clusters: Sequence[str] = (),
    teams: Sequence[str] = (),
    lasted: Mapping[tuple[str, str], Decimal] | None = None,
    until: int | None = None,
) -> Told:
    """Return the runs that the branch had at any time from `since` on (seconds since 1970), in a stable
    order.

    With `until`, those that it got from `since` on and before then, so that periods add up: each run, and
    each measured start of a schedule, belongs to one.
    `lasted` are the hours that runs were measured to last, by namespace and run. Raises UserError for a
    shallow clone, ToolError outside a repository.
    """
    changes = list(list_file_changes_in_git_log(root, RENDERED, OVERLAYS))
    wanted = [one for one in changes if _RUN.fullmatch(one.path) or _CLUSTER.fullmatch(one.path)]
    held = read_git_blobs_by_id(root, [one.blob for one in wanted if one.blob])
    stays = [
        one
        for one in _iterate_run_stays_in_git_history(wanted, held)
        if (one.left is None or one.left.time_s > since)
        and (until is None or one.entered.time_s < until)
        and (not clusters or one.cluster in clusters)
        and (not teams or one.team in teams)
    ]
    pools: dict[str, tuple[Mapping[str, Any], str]] = {"": ({}, "")}
    items, schedules, counted = [], 0, set()
    lasted = lasted or {}
    dated = _group_dated_runs(lasted)
    for one in stays:
        if one.cluster_file not in pools:
            pools[one.cluster_file] = _read_pools_of_past_cluster_file(held[one.cluster_file])
        bodies = _load_rendered_objects(held[one.entered.blob])
        runs = [one]
        kinds = {body.get("kind") for body in bodies}
        if kinds & {"CronJob", "Job"}:  # a schedule, or a Job that waits for runs before it, has a template
            bodies = unwrap_scheduled_run(bodies)
        if "CronJob" in kinds:
            runs = _list_dated_stays(one, bodies, dated, since, until)
            schedules += not runs
        elif until is not None and one.entered.time_s < since:
            continue  # of an earlier period
        for run in runs:
            name = _find_namespace(bodies), run.run
            # Hours of a run whose file came back are those of both stays: they count once.
            hours = None if (one.cluster, name) in counted else lasted.get(name)
            counted.add((one.cluster, name))
            items.append(_build_stay_cost(run, bodies, *pools[one.cluster_file], since, hours))
    key = lambda one: (one.stay.entered.time_s, one.stay.cluster, one.stay.team, one.stay.run)  # noqa: E731
    return Told(sorted(items, key=key), schedules)


def _find_namespace(bodies: Sequence[Body]) -> str:
    return next((str(find_nested_value(body, "metadata", "namespace")) for body in bodies), "")


def _group_dated_runs(lasted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[tuple[float, str]]]:
    """Return the runs that schedules started, with their starts, by namespace and job."""
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for namespace, run in sorted(lasted):
        one = _DATED.fullmatch(run)
        if one is None:
            continue
        try:  # dates in names are UTC
            start = datetime.strptime(one[2], "%Y%m%d-%H%M").replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
        found.setdefault((namespace, one[1]), []).append((start, run))
    return found


def _list_dated_stays(
    stay: RunInHistory,
    bodies: Sequence[Body],
    dated: Mapping[tuple[str, str], Sequence[tuple[float, str]]],
    since: int,
    until: int | None,
) -> list[RunInHistory]:
    """Return a stay for each measured run that a schedule started, from `since` on and before `until`, while
    its file was as it is here."""
    run = next((body for body in bodies if body.get("kind") == TRAINJOB.kind), {})
    name = str(find_nested_value(run, "metadata", "name") or "")
    if not name.endswith(f"-{DATED_SUFFIX}"):
        return []
    ends = [one for one in (stay.left.time_s if stay.left else None, until) if one is not None]
    first, last = max(stay.entered.time_s, since), min(ends, default=None)
    return [
        replace(stay, run=measured, left=None, is_ended=False)
        for start, measured in dated.get((_find_namespace(bodies), name.removesuffix(f"-{DATED_SUFFIX}")), ())
        if start >= first and (last is None or start < last)
    ]


def _build_stay_cost(
    stay: RunInHistory,
    bodies: Sequence[Body],
    pools: Mapping[str, Any],
    currency: str,
    since: int,
    hours: Decimal | None,
) -> StayCost:
    seconds = _compute_max_seconds_of_past_run(bodies)
    is_known = seconds != _NEVER
    if stay.left is not None and stay.is_ended:
        time = max(stay.left.time_s - max(stay.entered.time_s, since), 0)
        seconds, is_known = min(seconds, time) if is_known else time, True
    most = _build_cost_item_of_past_run(stay, bodies, pools, currency, Decimal(seconds) if is_known else None)
    if hours is None:
        return StayCost(stay, most)
    used = _build_cost_item_of_past_run(stay, bodies, pools, currency, hours * SECONDS_PER_HOUR)
    return StayCost(stay, most, used, hours)


def _iterate_run_stays_in_git_history(
    changes: Iterable[FileChange], held: Mapping[str, bytes]
) -> Iterator[RunInHistory]:
    """Yield each stay of each run, from changes in their order."""
    files: dict[str, str] = {}
    open_: dict[str, RunInHistory] = {}
    # The files of a commit are sorted by name, so overlays come before rendered.
    for one in changes:
        cluster = _CLUSTER.fullmatch(one.path)
        if cluster:
            files[cluster[1]] = one.blob
            continue
        found = _RUN.fullmatch(one.path)
        assert found is not None
        text = _decode_git_blob(held[one.blob]) if one.blob else ""
        is_active = bool(one.blob) and not EarlierRun(one.path, text).is_record
        stay = open_.get(one.path)
        # No engine applies an archived run; one that is archived later goes on.
        if is_active and stay is None and not any(line in text for line in _ARCHIVED):
            open_[one.path] = RunInHistory(
                found[1], found[2], found[3], one, cluster_file=files.get(found[1], "")
            )
        elif not is_active and stay is not None:
            del open_[one.path]
            yield RunInHistory(
                stay.cluster, stay.team, stay.run, stay.entered, one, bool(one.blob), stay.cluster_file
            )
    yield from open_.values()


def _decode_git_blob(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _load_rendered_objects(data: bytes) -> list[Body]:
    """Return the objects of a file; empty if it cannot be read."""
    try:
        return [body for body in load_objects(_decode_git_blob(data)) if isinstance(body, dict)]
    except ManifestError:
        return []


def _read_pools_of_past_cluster_file(data: bytes) -> tuple[Mapping[str, Any], str]:
    """Return the pools and the currency of a cluster's file, for any version of gangplan."""
    for body in _load_rendered_objects(data):
        pools = body.get("nodePools")
        if isinstance(pools, dict):
            known = {name: pool for name, pool in pools.items() if isinstance(pool, dict)}
            return known, str(body.get("currency") or "USD")
    return {}, ""


def _build_cost_item_of_past_run(
    stay: RunInHistory,
    bodies: Sequence[Body],
    pools: Mapping[str, Any],
    currency: str,
    seconds: Decimal | None,
) -> CostItem:
    """Return the figures of a run that lasts so long; None is not known."""
    lasts = ZERO_COST if seconds is None else seconds
    gpus, cpu, per_hour, cost, first, without = ZERO_COST, ZERO_COST, ZERO_COST, ZERO_COST, "", set()
    for count, pod, limit in _list_pods_of_past_run(bodies):
        name = find_pool_of_past_pod(pod, pools)
        asked, cores = sum_resources_of_past_pod(pod, pools.get(name, {}))
        there = lasts if limit is None else min(lasts, Decimal(limit))
        gpus, cpu = gpus + asked * count * there, cpu + cores * count * there
        first = first if limit is not None or (first and not asked) else name
        price = compute_pool_hourly_price(pools.get(name, {}))
        if price is None:
            without.add(name)
            continue
        hourly = price * count * (asked if pools[name].get("gpu") else cores)
        per_hour, cost = per_hour + (hourly if limit is None else ZERO_COST), cost + hourly * there
    is_priced = bool(first) and first not in without and seconds is not None
    labels = next((body["metadata"].get("labels") or {} for body in bodies if "metadata" in body), {})
    return CostItem(
        stay.cluster,
        stay.team,
        str(labels.get("gangplan.dev/job", "")),
        stay.run,
        first,
        gpus / SECONDS_PER_HOUR,
        cpu / SECONDS_PER_HOUR,
        per_hour if is_priced else None,
        (cost / SECONDS_PER_HOUR).quantize(CENT) if is_priced else None,
        None,
        currency,
        without=tuple(sorted(name for name in without if name)),
    )


def _list_pods_of_past_run(bodies: Sequence[Body]) -> Iterator[tuple[int, Mapping[str, Any], int | None]]:
    """Yield the pods of a run: how many of each, their spec, and for steps how long they last, in seconds."""
    nodes = next(
        (find_nested_value(one, *TRAINJOB.workers) for one in bodies if one.get("kind") == TRAINJOB.kind), 1
    )
    for body in bodies:
        steps = _list_step_deadlines_of_past_run(body)
        for job in find_nested_value(body, "spec", "template", "spec", "replicatedJobs") or ():
            pod = find_nested_value(job, "template", "spec", "template")
            is_worker = find_nested_value(pod, "metadata", "labels", "gangplan.dev/role") == "worker"
            count = nodes if is_worker else find_nested_value(job, "replicas")
            limit = steps.get(str(find_nested_value(job, "name")))
            yield (
                _read_count_or_one(count),
                find_nested_value(pod, "spec") or {},
                None if limit is None else limit * _count_run_attempts(body),
            )
        for replica in (find_nested_value(body, "spec", "mpiReplicaSpecs") or {}).values():
            yield (
                _read_count_or_one(find_nested_value(replica, "replicas")),
                find_nested_value(replica, "template", "spec") or {},
                None,
            )


def _list_step_deadlines_of_past_run(body: Body) -> dict[str, int]:
    """Return the jobs of a runtime that others wait for until they are complete, with deadlines in
    seconds."""
    jobs = find_nested_value(body, "spec", "template", "spec", "replicatedJobs") or ()
    waits = [one for job in jobs for one in find_nested_value(job, "dependsOn") or ()]
    before = {
        str(find_nested_value(one, "name")) for one in waits if find_nested_value(one, "status") == "Complete"
    }
    limits = {
        str(find_nested_value(job, "name")): find_nested_value(
            job, "template", "spec", "activeDeadlineSeconds"
        )
        for job in jobs
    }
    return {name: limit for name, limit in limits.items() if name in before and isinstance(limit, int)}


def _count_run_attempts(body: Body) -> int:
    return 1 + _read_count_or_one(
        find_nested_value(body, "spec", "template", "spec", "failurePolicy", "maxRestarts") or 0
    )


def _read_count_or_one(value: Any) -> int:
    return value if isinstance(value, int) else 1


def _compute_max_seconds_of_past_run(bodies: Sequence[Body]) -> int:
    """Return how long a run lasts at most, in seconds: all attempts together where each has a deadline."""
    whole = [
        find_nested_value(one, "spec", "activeDeadlineSeconds")
        for one in bodies
        if one.get("kind") == TRAINJOB.kind
    ]
    whole += [find_nested_value(one, "spec", "runPolicy", "activeDeadlineSeconds") for one in bodies]
    if stated := [one for one in whole if isinstance(one, int)]:
        return max(stated)
    attempts, before, each = 1, 0, [_NEVER]
    for body in bodies:
        steps = _list_step_deadlines_of_past_run(body)
        attempts, before = max(attempts, _count_run_attempts(body)), before + sum(steps.values())
        for job in find_nested_value(body, "spec", "template", "spec", "replicatedJobs") or ():
            if str(find_nested_value(job, "name")) not in steps:
                each.append(find_nested_value(job, "template", "spec", "activeDeadlineSeconds"))
    most = max(one for one in each if isinstance(one, int))
    return attempts * (before + most) if most != _NEVER else _NEVER
