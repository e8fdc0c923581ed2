"""Exact answers by counting, for common runs: one kind of pods, or one pod next to another kind.

The work depends on the number of pools, not of nodes. `search` answers all other questions.

**One kind.** Nodes are independent, so pods are placed until every node is full: the total is the sum of the
nodes' capacities, regardless of the scheduler's choices. With one constraint over domains: anti-affinity to
itself allows one pod per domain; affinity to itself allows only the domain of the first pod. Under a spread
constraint of skew s, placement ends when each domain is full or s above the least full one. That one is full
too (otherwise it would take a pod), so it is the smallest domain, and the total is again one number.

**One pod next to another kind.** The best case is the best place for the one pod. The worst case is what an
adversary reaches who chooses among acceptable nodes: either all nodes that could take the one pod are filled
before it comes, as far as the other kind's number allows, or it is placed first where it costs the other kind
most.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.records import dataclass
from gangplan.validate.scheduler.model import HOST_KEY, FitQuestion, Packing
from gangplan.validate.scheduler.node import build_empty_content, count_pods_fitting_on_node


@dataclass(frozen=True, slots=True)
class EqualDomains:
    """`times` equal domains, each with room for pods in pools."""

    times: int
    parts: tuple[tuple[int, int], ...]  # pool, pods

    @property
    def room(self) -> int:
        """The number of pods that one of these domains takes."""
        return sum(pods for _, pods in self.parts)


def pack_single_pod_kind_on_nodes(question: FitQuestion, kind: int) -> Packing | None:
    """Return the answer for one kind that shares no node or constraint with others; None if not countable."""
    one = question.kinds[kind]
    keys = {*one.near, *(each.key for each in one.spreads)}
    room = [
        count_pods_fitting_on_node(question, at, kind)
        if home and _has_topology_keys(question, at, keys)
        else 0
        for at, home in enumerate(one.homes)
    ]
    apart = [key for key, kinds in one.apart if key != HOST_KEY and kind in kinds]
    spreads = [each for each in one.spreads if kind in each.matched]
    every = [at for at in range(len(question.pools)) if room[at]]
    if len(one.near) + len(apart) + len(spreads) > 1:
        return None
    if one.near:
        return _pack_affine_pods_in_one_domain(
            question, kind, _group_equal_domains(question, one.near[0], room, every)
        )
    if apart:
        # Nodes without the label are in no domain, so anti-affinity does not apply there.
        free = [at for at in every if apart[0] != HOST_KEY and question.pools[at].places[apart[0]] is None]
        domains = _group_equal_domains(question, apart[0], room, [at for at in every if at not in free])
        loose = [EqualDomains(1, ((at, question.pools[at].count * room[at]),)) for at in free]
        return _pack_pods_evenly_over_domains(question, kind, domains, 1, loose)
    if spreads:
        (each,) = spreads
        keys = {other.key for other in one.spreads}
        counted = [
            at
            for at, is_counted in enumerate(each.counted)
            if is_counted and _has_topology_keys(question, at, keys)
        ]
        domains = _group_equal_domains(question, each.key, room, counted)
        least = min((domain.room for domain in domains), default=0)
        if sum(domain.times for domain in domains) < each.domains:
            least = 0
        return _pack_pods_evenly_over_domains(question, kind, domains, least + each.skew, ())
    return _pack_pods_evenly_over_domains(
        question, kind, [], 0, [EqualDomains(1, ((at, question.pools[at].count * room[at]),)) for at in every]
    )


def _has_topology_keys(question: FitQuestion, pool: int, keys: set[int]) -> bool:
    return all(key == HOST_KEY or question.pools[pool].places[key] is not None for key in keys)


def _group_equal_domains(
    question: FitQuestion, key: int, room: Sequence[int], pools: Sequence[int]
) -> list[EqualDomains]:
    """Return the domains of a key over some pools, with equal ones grouped."""
    found: list[EqualDomains] = []
    named: dict[str, list[tuple[int, int]]] = {}
    for at in pools:
        count = question.pools[at].count
        where = 1 if key == HOST_KEY else question.pools[at].places[key]
        if isinstance(where, str):
            if count:
                named.setdefault(where, []).append((at, count * room[at]))
            continue
        size = where or 1
        for times, nodes in ((count // size, size), (1 if count % size else 0, count % size)):
            if times:
                found.append(EqualDomains(times, ((at, nodes * room[at]),)))
    return [*found, *(EqualDomains(1, tuple(parts)) for parts in named.values())]


def _pack_affine_pods_in_one_domain(question: FitQuestion, kind: int, domains: list[EqualDomains]) -> Packing:
    """Place all pods in the domain of the first pod."""
    one = question.kinds[kind]
    usable = [domain for domain in domains if domain.room] if kind in one.friends else []
    if not usable:
        return Packing(_build_placement_of_one_pod_kind(question, {}, kind), True, 0)
    best = max(usable, key=lambda domain: domain.room)
    worst = min(usable, key=lambda domain: domain.room)
    return Packing(
        _build_placement_of_one_pod_kind(question, _place_pods_in_pools_of_domain(best, one.count), kind),
        True,
        min(one.count, worst.room),
    )


def _pack_pods_evenly_over_domains(
    question: FitQuestion,
    kind: int,
    domains: Sequence[EqualDomains],
    limit: int,
    loose: Sequence[EqualDomains],
) -> Packing:
    """Place pods evenly in domains up to a limit in each, and in loose nodes without a limit."""
    one = question.kinds[kind]
    whole = sum(domain.times * min(domain.room, limit) for domain in domains)
    bound = min(one.count, whole + sum(domain.room for domain in loose))
    total: dict[int, int] = {}
    left = bound
    for domain in loose:
        for pool, pods in _place_pods_in_pools_of_domain(domain, left).items():
            total[pool] = total.get(pool, 0) + pods
            left -= pods
    level, rest = _compute_even_fill_level_of_domains(domains, limit, left)
    for domain in domains:
        filled = min(domain.room, level)
        more = min(rest, domain.times) if domain.room > level else 0
        rest -= more
        for times, pods in ((domain.times - more, filled), (more, filled + 1)):
            for pool, share in _place_pods_in_pools_of_domain(domain, pods).items():
                total[pool] = total.get(pool, 0) + times * share
    return Packing(_build_placement_of_one_pod_kind(question, total, kind), True, bound)


def _compute_even_fill_level_of_domains(
    domains: Sequence[EqualDomains], limit: int, pods: int
) -> tuple[int, int]:
    """Return the level to which pods fill domains evenly, and the number of pods above it."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if sum(domain.times * min(domain.room, middle) for domain in domains) <= pods:
            low = middle
        else:
            high = middle - 1
    return low, pods - sum(domain.times * min(domain.room, low) for domain in domains)


def _place_pods_in_pools_of_domain(domain: EqualDomains, pods: int) -> dict[int, int]:
    """Distribute pods over the pools of one domain, one pool after another."""
    out: dict[int, int] = {}
    for pool, room in domain.parts:
        out[pool] = min(room, pods - sum(out.values()))
    return out


def _build_placement_of_one_pod_kind(
    question: FitQuestion, by_pool: dict[int, int], kind: int
) -> tuple[tuple[int, ...], ...]:
    """Return the placement as a table in which only this kind has pods."""
    mine = tuple(by_pool.get(at, 0) for at in range(len(question.pools)))
    nothing = (0,) * len(question.pools)
    return tuple(mine if at == kind else nothing for at in range(len(question.kinds)))


def pack_one_pod_beside_many_on_nodes(question: FitQuestion, many: int, single: int) -> Packing | None:
    """Return the answer for one pod and another kind on the same nodes; None if not countable."""
    kinds = question.kinds
    for kind in (many, single):
        if kinds[kind].near or kinds[kind].spreads or any(key != HOST_KEY for key, _ in kinds[kind].apart):
            return None
    full, with_single = _count_node_room_beside_single_pod(question, many, single)
    counts = [pool.count for pool in question.pools]
    wanted, total = kinds[many].count, sum(n * c for n, c in zip(full, counts, strict=True))
    places = [at for at, room in enumerate(with_single) if room >= 0 and counts[at]]
    if not places:
        return Packing(
            _build_placement_of_two_pod_kinds(question, many, single, full, wanted, None, with_single),
            True,
            min(wanted, total),
        )
    best = min(places, key=lambda at: full[at] - with_single[at])
    first = 1 + min(wanted, total - full[best] + with_single[best])
    at_most = max(first, min(wanted, total))
    # If one pod is left over either way, it is the one that comes later.
    is_later = question.kinds[single].stage > question.kinds[many].stage and first < 1 + wanted
    chosen = None if is_later and first == min(wanted, total) else best if at_most == first else None
    return Packing(
        _build_placement_of_two_pod_kinds(question, many, single, full, wanted, chosen, with_single),
        True,
        _count_scheduled_pods_in_worst_case(question, many, single, full, with_single, places),
    )


def _count_node_room_beside_single_pod(
    question: FitQuestion, many: int, single: int
) -> tuple[list[int], list[int]]:
    """Return by pool: how many of the many fit on an empty node, and next to the single one (-1 if not)."""
    guest = tuple(int(at == single) for at in range(len(question.kinds)))
    full, with_single = [], []
    for at in range(len(question.pools)):
        is_home = question.kinds[many].homes[at]
        full.append(count_pods_fitting_on_node(question, at, many) if is_home else 0)
        fits = (
            question.kinds[single].homes[at]
            and count_pods_fitting_on_node(question, at, single, build_empty_content(question)) > 0
        )
        with_single.append(
            (count_pods_fitting_on_node(question, at, many, guest) if is_home else 0) if fits else -1
        )
    return full, with_single


def _count_scheduled_pods_in_worst_case(
    question: FitQuestion, many: int, single: int, full: list[int], with_single: list[int], places: list[int]
) -> int:
    """Return the worst case: an adversary chooses the nodes and, unless stages fix it, the order."""
    counts = [pool.count for pool in question.pools]
    wanted = question.kinds[many].count
    total = sum(n * c for n, c in zip(full, counts, strict=True))
    # One more pod than `with_single` keeps the single pod off a node, unless the node cannot take that many.
    can_block = all(with_single[at] < full[at] for at in places)
    cost = sum(counts[at] * (with_single[at] + 1) for at in places)
    blocked = can_block and cost <= min(wanted, total)
    outcomes = []
    if question.kinds[single].stage <= question.kinds[many].stage:
        outcomes.append(1 + min(wanted, min(total - full[at] + with_single[at] for at in places)))
    if question.kinds[many].stage <= question.kinds[single].stage:
        outcomes.append(min(wanted, total) + (0 if blocked else 1))
    return min(outcomes)


def _build_placement_of_two_pod_kinds(
    question: FitQuestion,
    many: int,
    single: int,
    full: list[int],
    wanted: int,
    chosen: int | None,
    with_single: list[int],
) -> tuple[tuple[int, ...], ...]:
    """Return the pods by kind and pool, with the single one in the chosen pool."""
    room = [pool.count * full[at] for at, pool in enumerate(question.pools)]
    if chosen is not None:
        room[chosen] += with_single[chosen] - full[chosen]
    placed: list[int] = []
    for each in room:
        placed.append(min(each, wanted - sum(placed)))
    alone_in = tuple(int(at == chosen) for at in range(len(question.pools)))
    nothing = (0,) * len(question.pools)
    rows = {many: tuple(placed), single: alone_in}
    return tuple(rows.get(at, nothing) for at in range(len(question.kinds)))
