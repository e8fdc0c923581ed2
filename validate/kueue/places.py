"""Queues without their names, so that runs in equivalent queues share one verdict.

Most runs request the same as others, but each team has its own namespace and queue. In an active queue that
takes the run, Kueue's verdict depends only on the pod sets and the `kind` of the `Place`: the bounds of the
namespace, the quotas, limits and rules of the queue, and its position in the tree of cohorts. If anything is
wrong with the namespace or the queue there is no `Place`, and each run is judged by itself.
"""

from __future__ import annotations

from dataclasses import astuple

from gangplan.model.support import KueueLine
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.kueue import refusals
from gangplan.validate.kueue.members import read_kueue_line
from gangplan.validate.kueue.model import NeverError
from gangplan.validate.kueue.request import RunRequest
from gangplan.validate.kueue.standing import KueueWorld, QueueState, read_kueue_world
from gangplan.validate.memo import Memo, digest_memo_key
from gangplan.validate.world import World


@dataclass(frozen=True, slots=True)
class Place:
    """An active queue that takes a run; `kind` is equal for queues with equal verdicts."""

    queue: str
    kind: bytes


class _Places:
    """The cached places of a world; for `World.once`."""

    def __init__(self, _: World) -> None:
        self.of_jobs: Memo[Place | None] = Memo()
        self.of_queues: dict[str, bytes | None] = {}


def find_admission_place_of_run(world: World, request: RunRequest) -> Place | None:
    """Return the place of a run, or None if its queue or namespace is invalid or the request has no key."""
    job, kueue = request.job, read_kueue_line(world)
    if job is None or kueue is None or request.pods_key is None:
        return None
    return world.once(_Places).of_jobs.answer(
        digest_memo_key(job), lambda: _compute_admission_place_of_job(world, job, kueue)
    )


def _compute_admission_place_of_job(world: World, job: Body, kueue: KueueLine) -> Place | None:
    standing = read_kueue_world(world)
    metadata = job["metadata"]
    namespace = metadata.get("namespace") or ""
    local = refusals.find_local_queue_name_of_job(job, standing)
    if not local or refusals.is_job_always_refused_by_kueue(job, standing, kueue):
        return None
    try:
        queue = refusals.find_cluster_queue_of_local_queue(job, local, standing)
        refusals.check_namespace_of_queued_run(job, queue, standing, kueue)
    except NeverError:
        return None
    if queue.inactive:
        return None
    known = world.once(_Places).of_queues
    if queue.name not in known:
        known[queue.name] = _digest_queue_state(standing, queue)
    has_priority = bool((metadata.get("labels") or {}).get(refusals.PRIORITY_LABEL))
    kind = digest_memo_key(job["kind"], has_priority, standing.ranges(namespace).items, known[queue.name])
    return None if kind is None or known[queue.name] is None else Place(queue.name, kind)


def _digest_queue_state(standing: KueueWorld, queue: QueueState) -> bytes | None:
    """Return a key of everything about a queue except its name.

    On an idle cluster only the quotas of other members of its tree matter. They are included in the numbers
    of the cohorts above, which queues of the same cohort share.
    """
    tree, own = standing.idle, queue.quotas
    at = tree.numbers[queue.name]
    rows = (tree.nominal, tree.limit, tree.local, tree.subtree, tree.potential)
    return digest_memo_key(
        tree.parent[at],
        [row[at] for row in rows],
        list(own.nominal.items()),
        list(own.borrowing.items()),
        list(own.lending.items()),
        own.weight,
        [astuple(group) for group in own.groups],
        own.is_strict,
        astuple(own.preemption),
        astuple(own.fungibility),
        queue.is_topology_only,
        queue.is_multikueue,
        [*queue.delayed],
        queue.is_concurrent,
    )
