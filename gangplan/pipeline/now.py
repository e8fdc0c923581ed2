"""Runs against a snapshot of what is in use (`plan --usage`): admitted now, or pending, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.kueue.model import NEVER, ClusterQueue, FlavorResource
from gangplan.kueue.units import NANO
from gangplan.model.quantity import Quantity
from gangplan.model.usage import read_usage
from gangplan.pipeline.quota import build_cluster_holdings, check_nearly_used_team_quotas
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.standing import build_previewed_world
from gangplan.records import dataclass
from gangplan.resolve import resolve_site
from gangplan.source import load_objects
from gangplan.validate.kueue import AdmissionVerdict, FlavorUsage, judge_admission
from gangplan.validate.kueue.members import read_cohort_members
from gangplan.validate.kueue.standing import read_kueue_world
from gangplan.validate.world import World


@dataclass(frozen=True, slots=True)
class CurrentVerdict:
    """One run now.

    `givers` are queues that would have to return what belongs to its queue; `left` is what its queue has left
    of its own quota, by flavor and resource.
    """

    name: str
    run: str
    verdict: AdmissionVerdict
    givers: tuple[str, ...]
    left: Mapping[tuple[str, str], Quantity]


def compare_runs_with_usage_snapshot(
    request: Request, result: Result, snapshot: Path
) -> tuple[list[CurrentVerdict], list[Finding]]:
    """Return Kueue's verdict on each run now, each alone, and warnings for teams near their quota.

    Raises UserError if the snapshot cannot be read, or if the request is for several clusters.
    """
    workspace = result.workspace
    names = request.clusters or tuple(workspace.clusters)
    if len(names) != 1:
        raise UserError(
            f"a snapshot covers one cluster, but there are {len(names)}", "Name it with --cluster NAME."
        )
    cluster, snapped = names[0], read_usage(snapshot)
    usage: FlavorUsage = {
        queue: {
            flavor: {name: Fraction(amount.nano, NANO) for name, amount in amounts.items()}
            for flavor, amounts in flavors.items()
        }
        for queue, flavors in snapped.items()
    }
    world = build_previewed_world(request, cluster, result)
    found = []
    for run in sorted(result.runs, key=lambda run: run.unit.job.source):
        if run.unit.job.is_active:
            bodies = list(load_objects(result.texts[run.path]))
            verdict, idle = judge_admission(world, bodies, usage), judge_admission(world, bodies)
            name = f"{run.unit.job.team}/{run.unit.job.name}"
            found.append(
                CurrentVerdict(
                    name, run.name, verdict, *_find_reclaimable_queues(world, idle, verdict, usage)
                )
            )
    file = workspace.clusters[cluster]
    site = resolve_site(workspace, cluster)
    near = (
        check_nearly_used_team_quotas(file, build_cluster_holdings(file, site, snapped))
        if site.queues
        else []
    )
    return found, near


def _find_reclaimable_queues(
    world: World, idle: AdmissionVerdict, now: AdmissionVerdict, usage: FlavorUsage
) -> tuple[tuple[str, ...], dict[FlavorResource, Quantity]]:
    """Return the queues that borrow what a run waits for, if it is its queue's own and can be reclaimed.

    Also return what its queue has left of its own, by flavor and resource.
    """
    if now.outcome != "queue":
        return (), {}
    standing = read_kueue_world(world)
    written = {
        one.name: one.nominal for one in read_cohort_members(world.standing) if isinstance(one, ClusterQueue)
    }
    wanted = idle.usage

    def used(queue: str, key: FlavorResource) -> Fraction:
        return usage.get(queue, {}).get(key[0], {}).get(key[1], Fraction(0))

    def own(queue: str, key: FlavorResource) -> Fraction:
        return Fraction(written[queue].get(key, 0), NANO)

    left = {key: own(now.queue, key) - used(now.queue, key) for key in wanted}
    rest = {key: Quantity(int(max(amount, Fraction(0)) * NANO)) for key, amount in left.items()}
    policy = standing.quotas[now.queue].preemption.reclaim
    if policy == NEVER or any(left[key] < amount for key, amount in wanted.items()):
        return (), rest
    givers = [
        one.name
        for one in standing.others_of(now.queue)
        if any(used(one.name, key) > own(one.name, key) for key in wanted)
    ]
    return tuple(givers), rest
