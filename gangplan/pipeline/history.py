"""Runs that Git had in `rendered/`: from which commit to which, and what they cost at most.

Git knows when the branch got a run, and when its file became a record or was removed. It does not know when a
run was admitted, nor when it ended by itself. So a run is assumed to last until its deadline; if it became a
record, which ends it, no longer than the time between the commits. Removing a file without a record stops
nothing (engines do not prune runs), so it limits nothing either. Prices are those of the commit that added
the run. Dated runs of schedules are never in Git.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from gangplan.emit.earlier import EarlierRun
from gangplan.model.backend import TRAINJOB
from gangplan.model.bill import ZERO, Item
from gangplan.model.cost import CENT, NANO, SECONDS
from gangplan.model.quantity import QuantityError, parse
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.source import ManifestError, load_objects
from gangplan.tools.git_log import FileChange, changes_of
from gangplan.tools.revisions import blobs
from gangplan.workspace import OVERLAYS, RENDERED

_RUN = re.compile(rf"{RENDERED}/([^/]+)/runs/([^/]+)/([^/.]+)\.yaml")
_CLUSTER = re.compile(rf"{OVERLAYS}/([^/]+)/cluster\.yaml")
_GPU = "nvidia.com/gpu"
# A run whose objects state no deadline is not known to end.
_NEVER = 0


@dataclass(frozen=True, slots=True)
class Stay:
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
class Told:
    """The stays since a moment, each with its figures, and the number of those that were schedules."""

    items: Sequence[tuple[Stay, Item]] = field(default_factory=tuple)
    schedules: int = 0


def history(root: Path, since: int, clusters: Sequence[str] = (), teams: Sequence[str] = ()) -> Told:
    """Return the runs that the branch had at any time from `since` on (seconds since 1970), in a stable
    order.

    Raises UserError for a shallow clone, ToolError outside a repository.
    """
    changes = list(changes_of(root, RENDERED, OVERLAYS))
    wanted = [one for one in changes if _RUN.fullmatch(one.path) or _CLUSTER.fullmatch(one.path)]
    held = blobs(root, [one.blob for one in wanted if one.blob])
    stays = [
        one
        for one in _stays(wanted, held)
        if (one.left is None or one.left.time_s > since)
        and (not clusters or one.cluster in clusters)
        and (not teams or one.team in teams)
    ]
    pools: dict[str, tuple[Mapping[str, Any], str]] = {"": ({}, "")}
    items, schedules = [], 0
    for one in stays:
        if one.cluster_file not in pools:
            pools[one.cluster_file] = _pools(held[one.cluster_file])
        bodies = _bodies(held[one.entered.blob])
        if any(body.get("kind") == "CronJob" for body in bodies):
            schedules += 1
            continue
        items.append((one, _item(one, bodies, *pools[one.cluster_file], since)))
    key = lambda pair: (pair[0].entered.time_s, pair[0].cluster, pair[0].team, pair[0].run)  # noqa: E731
    return Told(sorted(items, key=key), schedules)


def _stays(changes: Iterable[FileChange], held: Mapping[str, bytes]) -> Iterator[Stay]:
    """Yield each stay of each run, from changes in their order."""
    files: dict[str, str] = {}
    open_: dict[str, Stay] = {}
    # The files of a commit are sorted by name, so overlays come before rendered.
    for one in changes:
        cluster = _CLUSTER.fullmatch(one.path)
        if cluster:
            files[cluster[1]] = one.blob
            continue
        found = _RUN.fullmatch(one.path)
        assert found is not None
        is_active = bool(one.blob) and not EarlierRun(one.path, _text(held[one.blob])).is_record
        stay = open_.get(one.path)
        if is_active and stay is None:
            open_[one.path] = Stay(found[1], found[2], found[3], one, cluster_file=files.get(found[1], ""))
        elif not is_active and stay is not None:
            del open_[one.path]
            yield Stay(
                stay.cluster, stay.team, stay.run, stay.entered, one, bool(one.blob), stay.cluster_file
            )
    yield from open_.values()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _bodies(data: bytes) -> list[Body]:
    """Return the objects of a file; empty if it cannot be read."""
    try:
        return [body for body in load_objects(_text(data)) if isinstance(body, dict)]
    except ManifestError:
        return []


def _pools(data: bytes) -> tuple[Mapping[str, Any], str]:
    """Return the pools and the currency of a cluster's file, for any version of gangplan."""
    for body in _bodies(data):
        pools = body.get("nodePools")
        if isinstance(pools, dict):
            known = {name: pool for name, pool in pools.items() if isinstance(pool, dict)}
            return known, str(body.get("currency") or "USD")
    return {}, ""


def _item(stay: Stay, bodies: Sequence[Body], pools: Mapping[str, Any], currency: str, since: int) -> Item:
    seconds = _deadline(bodies)
    if stay.left is not None and stay.is_ended:
        time = stay.left.time_s - max(stay.entered.time_s, since)
        seconds = min(seconds, max(time, 0)) if seconds else max(time, 0)
    gpus, cpu, per_hour, cost, first, without = ZERO, ZERO, ZERO, ZERO, "", set()
    for count, pod, limit in _pods(bodies):
        name = _pool_of(pod, pools)
        asked, cores = _asked(pod, pools.get(name, {}))
        there = seconds if limit is None else min(seconds, limit)
        gpus, cpu = gpus + asked * count * there, cpu + cores * count * there
        first = first if limit is not None or (first and not asked) else name
        price = _price(pools.get(name, {}))
        if price is None:
            without.add(name)
            continue
        hourly = price * count * (asked if pools[name].get("gpu") else cores)
        per_hour, cost = per_hour + (hourly if limit is None else ZERO), cost + hourly * there
    is_priced = bool(first) and first not in without and seconds != _NEVER
    labels = next((body["metadata"].get("labels") or {} for body in bodies if "metadata" in body), {})
    return Item(
        stay.cluster,
        stay.team,
        str(labels.get("gangplan.dev/job", "")),
        stay.run,
        first,
        gpus / SECONDS,
        cpu / SECONDS,
        per_hour if is_priced else None,
        (cost / SECONDS).quantize(CENT) if is_priced else None,
        None,
        currency,
        without=tuple(sorted(name for name in without if name)),
    )


def _dig(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _pods(bodies: Sequence[Body]) -> Iterator[tuple[int, Mapping[str, Any], int | None]]:
    """Yield the pods of a run: how many of each, their spec, and for steps how long they last, in seconds."""
    nodes = next((_dig(one, *TRAINJOB.workers) for one in bodies if one.get("kind") == TRAINJOB.kind), 1)
    for body in bodies:
        steps = _steps(body)
        for job in _dig(body, "spec", "template", "spec", "replicatedJobs") or ():
            pod = _dig(job, "template", "spec", "template")
            is_worker = _dig(pod, "metadata", "labels", "gangplan.dev/role") == "worker"
            count = nodes if is_worker else _dig(job, "replicas")
            limit = steps.get(str(_dig(job, "name")))
            yield _count(count), _dig(pod, "spec") or {}, None if limit is None else limit * _attempts(body)
        for replica in (_dig(body, "spec", "mpiReplicaSpecs") or {}).values():
            yield _count(_dig(replica, "replicas")), _dig(replica, "template", "spec") or {}, None


def _steps(body: Body) -> dict[str, int]:
    """Return the jobs of a runtime that others wait for until they are complete, with deadlines in
    seconds."""
    jobs = _dig(body, "spec", "template", "spec", "replicatedJobs") or ()
    waits = [one for job in jobs for one in _dig(job, "dependsOn") or ()]
    before = {str(_dig(one, "name")) for one in waits if _dig(one, "status") == "Complete"}
    limits = {str(_dig(job, "name")): _dig(job, "template", "spec", "activeDeadlineSeconds") for job in jobs}
    return {name: limit for name, limit in limits.items() if name in before and isinstance(limit, int)}


def _attempts(body: Body) -> int:
    return 1 + _count(_dig(body, "spec", "template", "spec", "failurePolicy", "maxRestarts") or 0)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 1


def _deadline(bodies: Sequence[Body]) -> int:
    """Return how long a run lasts at most, in seconds: all attempts together where each has a deadline."""
    whole = [_dig(one, "spec", "activeDeadlineSeconds") for one in bodies if one.get("kind") == TRAINJOB.kind]
    whole += [_dig(one, "spec", "runPolicy", "activeDeadlineSeconds") for one in bodies]
    if stated := [one for one in whole if isinstance(one, int)]:
        return max(stated)
    attempts, before, each = 1, 0, [_NEVER]
    for body in bodies:
        steps = _steps(body)
        attempts, before = max(attempts, _attempts(body)), before + sum(steps.values())
        for job in _dig(body, "spec", "template", "spec", "replicatedJobs") or ():
            if str(_dig(job, "name")) not in steps:
                each.append(_dig(job, "template", "spec", "activeDeadlineSeconds"))
    most = max(one for one in each if isinstance(one, int))
    return attempts * (before + most) if most != _NEVER else _NEVER


def _pool_of(pod: Mapping[str, Any], pools: Mapping[str, Any]) -> str:
    """Return the pool whose labels the pod selects: of several, the one with most labels; empty if none
    fits."""
    asked = _dig(pod, "nodeSelector") or {}
    fits = [
        (len(labels), name)
        for name, pool in pools.items()
        if (labels := pool.get("labels") or {})
        and all(asked.get(key) == str(value) for key, value in labels.items())
    ]
    return max(fits)[1] if fits else ""


def _asked(pod: Mapping[str, Any], pool: Mapping[str, Any]) -> tuple[Decimal, Decimal]:
    """Return the GPUs and cores of one pod."""
    resource = _dig(pool, "gpu", "resource") or _GPU
    found = {resource: ZERO, "cpu": ZERO}
    for container in _dig(pod, "containers") or ():
        for name in found:
            amount = _dig(container, "resources", "requests", name) or _dig(
                container, "resources", "limits", name
            )
            try:
                found[name] += Decimal(parse(str(amount)).nano) / NANO if amount is not None else ZERO
            except QuantityError:
                continue
    return found[resource], found["cpu"]


def _price(pool: Mapping[str, Any]) -> Decimal | None:
    """Return the hourly price of a pool's GPU or core, less its discount; None if none can be read."""
    stated = _dig(pool, "price", "perGpuHour" if pool.get("gpu") else "perCpuHour")
    try:
        price, off = Decimal(str(stated)), Decimal(str(_dig(pool, "price", "discount") or 0))
    except InvalidOperation:
        return None
    is_sound = price.is_finite() and off.is_finite() and price >= 0 and 0 <= off <= 100
    return price * (100 - off).scaleb(-2) if is_sound and stated is not None else None
