"""What a run leaves of its team's quota, by what Git has: without a snapshot of the cluster.

The team's other runs are read from `rendered/`, so only committed runs of the same team on the same cluster
cost anything, and no other spec is expanded. Kueue's arithmetic says what each uses on an idle cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from heapq import nlargest

from gangplan.emit.earlier import EarlierRun, EarlierRuns
from gangplan.generators.common import LABEL_PREFIX
from gangplan.kueue.model import FlavorResource
from gangplan.kueue.units import NANO
from gangplan.model.backend import BACKEND_BY_KIND
from gangplan.model.quantity import Quantity
from gangplan.objects import Body
from gangplan.pipeline.request import Result
from gangplan.pipeline.worker import PlannedRun, WorkerState, build_cluster_world_before_runs
from gangplan.records import dataclass
from gangplan.resolve import resolve_site
from gangplan.resolve.counted import resolve_counted_site_quotas
from gangplan.source import ManifestError, load_objects
from gangplan.validate.gate import find_object_problems
from gangplan.validate.kueue.contention import sum_run_demand
from gangplan.validate.runs import is_applied
from gangplan.workspace import RENDERED


@dataclass(frozen=True, slots=True)
class _RunUsage:
    """What an active run uses; `sweep` is empty unless it is a trial."""

    usage: Mapping[FlavorResource, Fraction]
    sweep: str = ""


Usages = Mapping[str, _RunUsage]
_SWEEP = f"{LABEL_PREFIX}sweep"


@dataclass(frozen=True, slots=True)
class QuotaRoom:
    """A resource of a pool that a run uses: the team's own quota, what its other active runs use, and what
    this run asks for."""

    pool: str
    resource: str
    quota: Quantity
    used: Fraction
    asked: Fraction

    @property
    def left(self) -> Fraction:
        """The own quota that is left after the run; negative if it is not enough."""
        return Fraction(self.quota.nano, NANO) - self.used - self.asked


@dataclass(frozen=True, slots=True)
class TeamRoom:
    """What a run leaves of its team's quota.

    `runs` are those that the team has in Git with this one, ended and stopped ones included, of `most`.
    `asks_at` is the address at which people ask for quota, empty if the cluster's file has none.
    """

    rooms: tuple[QuotaRoom, ...]
    runs: int
    most: int
    asks_at: str = ""

    @property
    def is_short(self) -> bool:
        """Whether any resource is not enough."""
        return any(one.left < 0 for one in self.rooms)


def compute_quota_rooms(result: Result) -> dict[str, TeamRoom]:
    """Return what each active run under Kueue leaves of its team's quota, by the path of its file."""
    found: dict[str, TeamRoom] = {}
    earlier = EarlierRuns(result.workspace.root / RENDERED)
    quotas: dict[str, Mapping[tuple[str, str], Mapping[str, Quantity]]] = {}
    usages: dict[tuple[str, str], Usages] = {}
    for run in result.runs:
        job, cluster = run.unit.job, run.cluster
        if result.worker is None or run.verdict is None or not run.verdict.usage or not job.is_active:
            continue
        if cluster not in quotas:
            quotas[cluster] = _list_team_quotas(result, cluster)
        if (cluster, job.team) not in usages:
            usages[cluster, job.team] = dict(
                _list_active_run_usages(result.worker, earlier, cluster, job.team)
            )
        found[run.path] = _compute_team_room_after_run(
            result, run, quotas[cluster], usages[cluster, job.team]
        )
    return found


def _list_team_quotas(result: Result, cluster: str) -> dict[tuple[str, str], dict[str, Quantity]]:
    """Return the quota of each team for each flavor and resource, as it is rendered."""
    return {
        (queue.team, quota.flavor): {one.resource: one.nominal for one in quota.amounts}
        for queue in resolve_counted_site_quotas(resolve_site(result.workspace, cluster)).queues
        for quota in queue.quotas
    }


def _list_active_run_usages(
    worker: WorkerState, earlier: EarlierRuns, cluster: str, team: str
) -> Iterator[tuple[str, _RunUsage]]:
    """Yield the name and the usage of each active run that a team has in `rendered/`.

    A file that cannot be read as a run uses nothing here: `validate` reports it.
    """
    world = build_cluster_world_before_runs(worker, cluster)
    folder = f"{cluster}/runs/{team}"
    for job in earlier.jobs(folder):
        for name in earlier.names(f"{folder}/", job):
            file = earlier.read(f"{folder}/{name}.yaml")
            if file is None:
                continue
            bodies = [] if file.is_record else _load_run_objects(file)
            applied = (one for one in bodies if one.get("kind") in BACKEND_BY_KIND and is_applied(one))
            made = next(applied, None)
            if made is None:
                yield name, _RunUsage({})  # a record, archived, or a schedule's template: only an object
                continue
            demand = (
                None if any(find_object_problems(bodies, world.versions)) else sum_run_demand(world, bodies)
            )
            if demand is None:
                yield name, _RunUsage({})
            else:
                labels = made["metadata"].get("labels") or {}
                yield name, _RunUsage(demand.usage or {}, str(labels.get(_SWEEP, "")))


def _load_run_objects(file: EarlierRun) -> list[Body]:
    try:
        return load_objects(file.text)
    except ManifestError:
        return []


def _compute_team_room_after_run(
    result: Result,
    run: PlannedRun,
    quotas: Mapping[tuple[str, str], Mapping[str, Quantity]],
    usages: Usages,
) -> TeamRoom:
    """Return the room after one run.

    Earlier runs of its job are not counted: the new one replaces them in Git.
    """
    assert run.verdict is not None
    most = {
        one.name: one.sweep.max_concurrent
        for one in result.workspace.sweeps.values()
        if one.team == run.unit.job.team and one.sweep is not None
    }
    if run.unit.job.trial is not None:
        most[run.unit.job.trial.sweep] = run.unit.job.trial.at_once - 1  # it is one of them itself
    others = {name: usage for name, usage in usages.items() if name != run.name and name not in run.there}
    flavors = {one.name: one.pool for one in resolve_site(result.workspace, run.cluster).flavors}
    rooms = tuple(
        QuotaRoom(
            flavors.get(flavor, flavor),
            resource,
            quotas[run.unit.job.team, flavor][resource],
            _sum_usage_at_once(others.values(), (flavor, resource), most),
            asked,
        )
        for (flavor, resource), asked in (run.verdict.usage or {}).items()
        if resource in quotas.get((run.unit.job.team, flavor), {})
    )
    spec = result.workspace.clusters[run.cluster].spec
    return TeamRoom(rooms, len(others) + 1, spec.limits.objects.runs, spec.support.quota or "")


def _sum_usage_at_once(usages: Iterable[_RunUsage], key: FlavorResource, most: Mapping[str, int]) -> Fraction:
    """Return what runs use at the same time: of the trials of a sweep, only the largest `most` count."""
    found, trials = Fraction(0), dict[str, list[Fraction]]()
    for one in usages:
        amount = one.usage.get(key, Fraction(0))
        if one.sweep in most:
            trials.setdefault(one.sweep, []).append(amount)
        else:
            found += amount
    return found + sum((sum(nlargest(most[one], each)) for one, each in trials.items()), Fraction(0))
