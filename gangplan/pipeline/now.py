"""Runs against a snapshot of what is in use (`plan --usage`): admitted now, or pending, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.kueue.model import NEVER, ClusterQueue, Key
from gangplan.kueue.units import NANO
from gangplan.model.quantity import Quantity
from gangplan.model.usage import read_usage
from gangplan.pipeline.quota import holding_of, nearly_used
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.standing import built_world
from gangplan.records import dataclass
from gangplan.resolve import resolve_site
from gangplan.source import load_objects
from gangplan.validate.kueue import Usage, Verdict, judge
from gangplan.validate.kueue.members import members
from gangplan.validate.kueue.standing import read
from gangplan.validate.world import World


@dataclass(frozen=True, slots=True)
class Now:
    """One run now.

    `givers` are queues that would have to return what belongs to its queue; `left` is what its queue has left
    of its own quota, by flavor and resource.
    """

    name: str
    run: str
    verdict: Verdict
    givers: tuple[str, ...]
    left: Mapping[tuple[str, str], Quantity]


def against(request: Request, result: Result, snapshot: Path) -> tuple[list[Now], list[Finding]]:
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
    usage: Usage = {
        queue: {
            flavor: {name: Fraction(amount.nano, NANO) for name, amount in amounts.items()}
            for flavor, amounts in flavors.items()
        }
        for queue, flavors in snapped.items()
    }
    world = built_world(request, cluster, result)
    found = []
    for run in sorted(result.runs, key=lambda run: run.unit.job.source):
        if run.unit.job.is_active:
            bodies = list(load_objects(result.texts[run.path]))
            verdict, idle = judge(world, bodies, usage), judge(world, bodies)
            name = f"{run.unit.job.team}/{run.unit.job.name}"
            found.append(Now(name, run.name, verdict, *_givers(world, idle, verdict, usage)))
    file = workspace.clusters[cluster]
    site = resolve_site(workspace, cluster)
    near = nearly_used(file, holding_of(file, site, snapped)) if site.queues else []
    return found, near


def _givers(
    world: World, idle: Verdict, now: Verdict, usage: Usage
) -> tuple[tuple[str, ...], dict[Key, Quantity]]:
    """Return the queues that borrow what a run waits for, if it is its queue's own and can be reclaimed.

    Also return what its queue has left of its own, by flavor and resource.
    """
    if now.outcome != "queue":
        return (), {}
    standing = read(world)
    written = {one.name: one.nominal for one in members(world.standing) if isinstance(one, ClusterQueue)}
    wanted = idle.usage

    def used(queue: str, key: Key) -> Fraction:
        return usage.get(queue, {}).get(key[0], {}).get(key[1], Fraction(0))

    def own(queue: str, key: Key) -> Fraction:
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
