"""One node: how many pods it takes for their resources, host ports, number, and what must not share a host.

Source: pkg/scheduler/framework/plugins/{noderesources,nodeports,interpodaffinity} of Kubernetes v1.34.4.
"""

from __future__ import annotations

from gangplan.validate.scheduler.model import HOST, Question

Content = tuple[int, ...]  # pods of each kind


def empty(question: Question) -> Content:
    """A node without pods."""
    return (0,) * len(question.kinds)


def strangers(question: Question, kind: int) -> frozenset[int]:
    """The kinds that cannot be on a node with this one: host ports, and anti-affinity of either side."""
    one = question.kinds[kind]
    mine = {other for key, kinds in one.apart if key == HOST for other in kinds}
    theirs = {
        at
        for at, other in enumerate(question.kinds)
        for key, kinds in other.apart
        if key == HOST and kind in kinds
    }
    return one.clashes | mine | theirs


def is_roomy(question: Question, pool: int) -> bool:
    """Whether a node takes all that may come to it at once, so that kinds never take room from each other."""
    content = tuple(
        min(kind.count, capacity(question, pool, at)) if kind.homes[pool] else 0
        for at, kind in enumerate(question.kinds)
    )
    present = [at for at, n in enumerate(content) if n]
    if sum(content) > question.pools[pool].pods:
        return False
    if any(other != at and other in present for at in present for other in strangers(question, at)):
        return False
    room = question.pools[pool].room
    used = [
        sum(n * kind.needs[i] for n, kind in zip(content, question.kinds, strict=True))
        for i in range(len(room))
    ]
    return all(have >= amount for have, amount in zip(room, used, strict=True))


def has_room(question: Question, pool: int, content: Content, kind: int) -> bool:
    """Whether resources, pods per node and host ports let one more pod in."""
    node, one = question.pools[pool], question.kinds[kind]
    if sum(content) >= node.pods:
        return False
    if any(content[other] for other in one.clashes):
        return False
    return all(
        need == 0
        or need + sum(n * question.kinds[at].needs[i] for at, n in enumerate(content) if n) <= node.room[i]
        for i, need in enumerate(one.needs)
    )


def capacity(question: Question, pool: int, kind: int, beside: Content | None = None) -> int:
    """How many pods of a kind a node of the pool takes next to others, by everything that a node decides."""
    content = beside if beside is not None else empty(question)
    node, one = question.pools[pool], question.kinds[kind]
    apart = strangers(question, kind)
    if any(n for at, n in enumerate(content) if at in apart and at != kind):
        return 0
    most = node.pods - sum(content)
    for i, need in enumerate(one.needs):
        if need:
            used = sum(n * question.kinds[at].needs[i] for at, n in enumerate(content) if n)
            most = min(most, (node.room[i] - used) // need)
    if kind in apart:
        most = min(most, 1 - content[kind])
    return max(0, most)


def short_of(question: Question, pool: int, content: Content, kind: int) -> list[int]:
    """The resources that a node lacks for one more pod."""
    node, one = question.pools[pool], question.kinds[kind]
    return [
        i
        for i, need in enumerate(one.needs)
        if need
        and need + sum(n * question.kinds[at].needs[i] for at, n in enumerate(content) if n) > node.room[i]
    ]
